/* SPDX-License-Identifier: MIT */
/* doctor_functions.h: what kymo doctor PROGRAM found, for those that tell it. */
#ifndef KY_CLI_DOCTOR_FUNCTIONS_H
#define KY_CLI_DOCTOR_FUNCTIONS_H

#include "functrace/functions.h"
#include "functrace/functrace.h"

#define KY_DOCTOR_EXAMPLES 3u

/* Functions of a module or of all of them. */
struct ky_doctor_sums {
	uint32_t count, named;
	uint32_t how[KY_FUNCTION_SLED + 1];
	uint32_t why[KY_WHY_COUNT];
	const char *examples[KY_WHY_COUNT][KY_DOCTOR_EXAMPLES];
};

struct ky_doctor_module {
	struct ky_functions *functions;
	struct ky_doctor_sums sums;
};

struct ky_doctor_modules {
	struct ky_doctor_module *items;
	size_t count;
	int error;
	char message[KY_FUNCTRACE_MESSAGE_BYTES];
	struct ky_doctor_sums sums;
	enum ky_functrace_engine engine;
	char engine_why[KY_FUNCTRACE_MESSAGE_BYTES];
};

/* How many can be traced, of all. */
uint32_t ky_doctor_traced(const struct ky_doctor_sums *sums);
double ky_doctor_percent(const struct ky_doctor_sums *sums);

/* all: every function that is left out, not only a few of each reason. */
void ky_doctor_print_text(const struct ky_doctor_modules *modules, bool all);
void ky_doctor_print_json(const struct ky_doctor_modules *modules, bool all);

#endif
