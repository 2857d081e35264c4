/* SPDX-License-Identifier: MIT */
/*
 * task_state.c: the letters of a task's state out of the bits that sched_switch has. Which bit means what
 * changed with the kernel:
 *
 *           0x01 0x02 0x04 0x08 0x10 0x20 0x40 0x80 0x100 0x200 0x400 0x800 0x1000
 *   4.14 on  S    D    T    t    X    Z    P    I    +
 *   4.8      S    D    T    t    X    Z    x    K    W     P     N           +
 *   before   S    D    T    t    X    Z    x    K    W     P     N     +
 */
#include "model/kernel.h"

struct bit_letter {
	uint16_t bit;
	char letter;
};

/* Letters in the order in which they are written. */
static const struct bit_letter modern[] = {{0x01, 'S'}, {0x02, 'D'}, {0x04, 'T'}, {0x08, 't'},
					   {0x10, 'X'}, {0x20, 'Z'}, {0x40, 'P'}, {0x80, 'I'}};
static const struct bit_letter old[] = {{0x01, 'S'}, {0x02, 'D'},  {0x04, 'T'},  {0x08, 't'},
					{0x10, 'X'}, {0x20, 'Z'},  {0x200, 'P'}, {0x40, 'x'},
					{0x80, 'K'}, {0x100, 'W'}, {0x400, 'N'}};

#define RELEASE(major, minor) ((major) << 8 | (minor))
/* What a kernel writes for an uninterruptible sleep that is no load: idle. */
#define OLD_IDLE 0x402u
#define OLD_BITS 0x7FFu

static uint32_t write_letters(struct ky_trace *trace, uint32_t mask, const struct bit_letter *bits,
			      size_t count)
{
	char text[16];
	size_t used = 0;
	for (size_t i = 0; i < count; i++)
		if (mask & bits[i].bit)
			text[used++] = bits[i].letter;
	return ky_string(trace, text, used);
}

uint32_t ky_task_state(struct ky_trace *trace, uint64_t mask, uint32_t release)
{
	uint32_t bits = (uint32_t)(mask & 0xFFFF);
	bool is_modern = release >= RELEASE(4, 14);
	uint32_t preempted = is_modern ? 0x100 : release >= RELEASE(4, 8) ? 0x1000 : 0x800;
	uint32_t known = is_modern ? 0xFFu : OLD_BITS;
	if (is_modern && bits & 0xFE00)
		return 0;
	if (!(bits & known))
		return ky_string_z(trace, bits & preempted ? "R+" : "R");
	if (!is_modern && (bits & OLD_BITS) == OLD_IDLE)
		return ky_string_z(trace, "I");
	return is_modern ? write_letters(trace, bits, modern, sizeof(modern) / sizeof(modern[0]))
			 : write_letters(trace, bits, old, sizeof(old) / sizeof(old[0]));
}
