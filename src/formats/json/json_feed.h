/* SPDX-License-Identifier: MIT */
/*
 * json_feed.h: JSON out of a buffer of the input that moves: steps through objects and arrays of
 * any size, whose keys and smaller values are taken whole.
 */
#ifndef KY_FORMATS_JSON_JSON_FEED_H
#define KY_FORMATS_JSON_JSON_FEED_H

#include "formats/input.h"
#include "formats/json/json_scan.h"

/* Double what the buffer has from at on; false when there is nothing more. */
bool ky_json_feed_grow(struct ky_input *input);
/* Skip white space and commas; the next byte, or -1 at the end. */
int ky_json_feed_next(struct ky_input *input);
/* Skip this byte, after white space; false when another is there. */
bool ky_json_feed_take(struct ky_input *input, uint8_t byte);
/* Make the value at at whole in the buffer: where it ends, or NULL. */
const uint8_t *ky_json_feed_value(struct ky_input *input, enum ky_json_fault *fault);
/* Skip the value at at, whatever it is. False: cut off or wrong. */
bool ky_json_feed_skip(struct ky_input *input, enum ky_json_fault *fault);

#define KY_JSON_KEY_BYTES 64u
/*
 * Step to the value of the next key of an object, and copies the key (cut to fit). 1; 0 behind the
 * object's end; -1 when it is cut off or no object.
 */
int ky_json_feed_key(struct ky_input *input, char key[KY_JSON_KEY_BYTES],
		     enum ky_json_fault *fault);
/* Step to the next element of an array. 1; 0 behind the array's end; -1 when it is cut off. */
int ky_json_feed_element(struct ky_input *input, enum ky_json_fault *fault);

#endif
