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
	const char *name;
	enum ky_check_state state;
	char detail[200];
	char remedy[200]; /* a command, or what to do; may be empty */
};

typedef void (*ky_check_fn)(struct ky_check *check);

void ky_check_set(struct ky_check *check, enum ky_check_state state, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void ky_check_remedy(struct ky_check *check, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Read the first line of a small file; false: it cannot be read. */
bool ky_check_read(const char *path, char *text, unsigned bytes);
/* Return where tracefs is mounted, or NULL. */
const char *ky_check_tracefs(void);

/* doctor_kernel.c */
void ky_check_kernel(struct ky_check *check);
void ky_check_tracefs_access(struct ky_check *check);
void ky_check_kernel_events(struct ky_check *check);
void ky_check_kprobes(struct ky_check *check);
void ky_check_uprobes(struct ky_check *check);
void ky_check_ptrace(struct ky_check *check);
void ky_check_bpf(struct ky_check *check);
/* doctor_perf.c */
void ky_check_perf_software(struct ky_check *check);
void ky_check_perf_hardware(struct ky_check *check);
void ky_check_perf_system(struct ky_check *check);
void ky_check_perf_tracepoints(struct ky_check *check);
void ky_check_intel_pt(struct ky_check *check);
void ky_check_clock(struct ky_check *check);
void ky_check_memfd(struct ky_check *check);
void ky_check_zlib(struct ky_check *check);
void ky_check_zstd(struct ky_check *check);

/* ---- functions of a program (doctor_functions.c) ---- */

struct ky_doctor_options {
	const char *program;
	bool all; /* list every function that is left out */
	bool json;
};
/* Show which functions of a program can be traced. Return an enum ky_exit. */
int ky_doctor_functions(const struct ky_doctor_options *options);

#endif
