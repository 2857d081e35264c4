/* SPDX-License-Identifier: MIT */
/*
 * ftrace_page.c: a page of the kernel's ring buffer.
 *
 *   0    8        16 (12)                       commit
 *   ts   commit   event event event ...         [count of lost ones]
 *
 *   commit  bits 0..26 bytes of events, bit 30: a count of lost events follows them, bit 31: events
 *           before this page were lost
 *   event   u32: type and length in 5 bits, time since the last one in 27; then its data
 *           1..28 data of 4 bytes each; 0: the length is in the next u32; 29 padding; 30 more of the time;
 *           31 the absolute time
 *
 * libtraceevent's kbuffer walks pages too, but trusts what they say about lengths; pages of a file that
 * anybody may have written are walked here, within their bounds.
 */
#include "formats/ftrace/ftrace_format.h"

#define COMMIT_BYTES_MASK 0x07FFFFFFu
#define MISSED_STORED (1u << 30)
#define MISSED (1u << 31)

#define TYPE_PADDING 29u
#define TYPE_EXTEND 30u
#define TYPE_ABSOLUTE 31u
/* An absolute time has 59 bits; those above are the page's. */
#define ABSOLUTE_BITS 59u

struct page_walk {
	const uint8_t *at;
	const uint8_t *end;
	uint64_t ts;
};

static int64_t nanoseconds(const struct ky_ftrace_clock *clock, uint64_t ts)
{
	if (clock->mult)
		ts = (uint64_t)((__uint128_t)ts * clock->mult >> (clock->shift & 63));
	return (int64_t)(ts + (uint64_t)clock->offset);
}

/*
 * Get the next event's data; NULL at the end of the page or for an entry without an event. Return false when the
 * page is damaged from here on.
 */
static bool next_event(const struct ky_ftrace_format *format, struct page_walk *walk,
		       const uint8_t **data, size_t *bytes)
{
	uint32_t head = (uint32_t)ky_ftrace_load(format, walk->at, 4);
	uint32_t type = format->big_endian ? head >> 27 : head & 31;
	uint64_t delta = format->big_endian ? head & 0x07FFFFFF : head >> 5;
	size_t left = (size_t)(walk->end - walk->at) - 4;
	walk->at += 4;
	*data = NULL;
	if (type >= 1 && type < TYPE_PADDING) {
		*bytes = type * 4;
	} else {
		if (type == TYPE_PADDING && !delta) {
			walk->at = walk->end;
			return true;
		}
		if (left < 4)
			return false;
		uint32_t word = (uint32_t)ky_ftrace_load(format, walk->at, 4);
		if (type >= TYPE_EXTEND) {
			uint64_t time = delta | (uint64_t)word << 27;
			walk->at += 4;
			walk->ts = type == TYPE_EXTEND
					   ? walk->ts + time
					   : (walk->ts >> ABSOLUTE_BITS << ABSOLUTE_BITS) | time;
			return true;
		}
		/* The length counts itself. */
		if (word < 4 || word > left)
			return false;
		walk->at += 4;
		left -= 4;
		*bytes = word - 4;
	}
	if (*bytes > left)
		return false;
	walk->ts += delta;
	*data = type == TYPE_PADDING ? NULL : walk->at;
	size_t step = (*bytes + 3) & ~(size_t)3;
	walk->at += step < left ? step : left;
	return true;
}

static void put_missed(struct ky_ftrace_format *format, uint32_t cpu, uint32_t commit,
		       const struct page_walk *walk, const uint8_t *page_end)
{
	uint64_t missed = 0;
	if (commit & MISSED_STORED && (size_t)(page_end - walk->end) >= format->commit_bytes)
		missed = ky_ftrace_load(format, walk->end, format->commit_bytes);
	format->missed += missed;
	ky_put_lost(format->trace, nanoseconds(&format->clock, walk->ts), KY_NONE, cpu, missed,
		    "ftrace ring buffer");
}

void ky_ftrace_page(struct ky_ftrace_format *format, uint32_t cpu, const uint8_t *page,
		    size_t bytes, uint64_t at)
{
	size_t head = 8 + format->commit_bytes;
	if (bytes < head) {
		ky_problem(format->trace, "ftrace_page", KY_DATA_LOSS, at,
			   "a page of %zu bytes; expected at least %zu", bytes, head);
		return;
	}
	uint32_t commit = (uint32_t)ky_ftrace_load(format, page + 8, format->commit_bytes);
	size_t used = commit & COMMIT_BYTES_MASK;
	if (used > bytes - head) {
		ky_problem(format->trace, "ftrace_page", KY_DATA_LOSS, at,
			   "a page with %zu bytes of events that has room for %zu", used,
			   bytes - head);
		used = bytes - head;
	}
	struct page_walk walk = {page + head, page + head + used, ky_ftrace_load(format, page, 8)};
	if (commit & MISSED)
		put_missed(format, cpu, commit, &walk, page + bytes);
	while (walk.end - walk.at >= 4) {
		const uint8_t *data;
		size_t length = 0;
		const uint8_t *begin = walk.at;
		if (!next_event(format, &walk, &data, &length)) {
			ky_problem(format->trace, "ftrace_page", KY_DATA_LOSS,
				   at + (uint64_t)(begin - page),
				   "an event is longer than the rest of its page");
			return;
		}
		if (data)
			ky_ftrace_record(format, cpu, nanoseconds(&format->clock, walk.ts), data,
					 length, at + (uint64_t)(begin - page));
	}
}
