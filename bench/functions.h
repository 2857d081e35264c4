/* SPDX-License-Identifier: MIT */
/* functions.h: what bench_functions measures, in the order of its output. */
#ifndef BENCH_FUNCTIONS_H
#define BENCH_FUNCTIONS_H

enum functions_time {
	FUNCTIONS_BARE,      /* the bare loop */
	FUNCTIONS_CALL,      /* of a function that is not traced */
	FUNCTIONS_PATCHED,   /* entry and exit */
	FUNCTIONS_ENTERED,   /* entry alone */
	FUNCTIONS_UNCOUNTED, /* entry and exit, without reading the counter */
	FUNCTIONS_NOPS_OFF,  /* compiled with -fpatchable-function-entry, not traced */
	FUNCTIONS_NOPS_ON,
	FUNCTIONS_TIMES
};

#endif
