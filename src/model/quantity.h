/* SPDX-License-Identifier: MIT */
/*
 * quantity.h: durations, counts and bytes for people: three digits and a unit, whatever the size; and durations as
 * people type them. The tool's messages and the reasons of snapshots read the same.
 */
#ifndef KY_MODEL_QUANTITY_H
#define KY_MODEL_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

#define KY_QUANTITY_BYTES 32

/* Write "1.25 ms", always 3 digits and a unit, to KY_QUANTITY_BYTES of buf, and return buf. */
const char *ky_quantity_duration(char *buf, int64_t ns);
/* Write "us" for microseconds from now on, for a terminal that shows ASCII alone. */
void ky_quantity_set_ascii(bool only);
/* "12.3 M", "123" */
const char *ky_quantity_count(char *buf, uint64_t n);
/* "12.3 MiB" */
const char *ky_quantity_bytes(char *buf, uint64_t bytes);
#define KY_QUANTITY_DATE_BYTES 48
/* Write a time since 1970 as "2026-11-15T12:00:00.123456789Z" to KY_QUANTITY_DATE_BYTES of buf, and return buf. */
const char *ky_quantity_date(char *buf, int64_t ns);
/* Parse "1.5ms", "200us", "3s" or "0"; false for anything else, and for a number without a unit. */
bool ky_quantity_parse_duration(const char *text, int64_t *ns);
/* Parse the same; a number without a unit is nanoseconds. */
bool ky_quantity_parse_ns(const char *text, int64_t *ns);
/* Report whether it is a time but for its unit. 0 needs none. */
bool ky_quantity_lacks_unit(const char *text);

#endif
