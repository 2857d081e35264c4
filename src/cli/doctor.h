/* SPDX-License-Identifier: MIT */
/*
 * doctor.h: what this machine allows (checks), and which functions of a program can be traced. A check only looks: it
 * opens and closes, and leaves nothing behind.
 */
#ifndef KY_CLI_DOCTOR_H
#define KY_CLI_DOCTOR_H

#include <stdbool.h>

enum ky_check_state { KY_CHECK_OK, KY_CHECK_LIMITED, KY_CHECK_NO };

struct ky_check {
	enum ky_check_state state;
	char detail[200];
	char remedy[200]; /* a command, or what to do; may be empty */
};

struct ky_doctor_check {
	const char *name;
	void (*fill)(struct ky_check *check);
};
/* All checks, in the order of their display; one without a name ends the list. */
extern const struct ky_doctor_check ky_doctor_checks[];
void ky_check_ptrace(struct ky_check *check);

/* ---- functions of a program (doctor_functions.c) ---- */

struct ky_doctor_options {
	const char *program;
	bool all; /* list every function that is left out */
	bool json;
};
/* Show which functions of a program can be traced. Return an enum ky_exit. */
int ky_doctor_functions(const struct ky_doctor_options *options);

#endif
