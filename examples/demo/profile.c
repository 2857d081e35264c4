/* SPDX-License-Identifier: MIT */
/*
 * profile.c: SIGPROF arrives on a thread that is using the CPU, and its handler records an instant.
 *
 * Events may be recorded in a signal handler, also when the signal interrupted the recording of
 * another event: neither is damaged.
 */
#include "profile.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/time.h>

#include "vm.h"

#include <kymo/kymo.h>

#define INTERVAL_US 10000

static atomic_ulong samples;

static void take_sample(int signal_number)
{
	(void)signal_number;
	const char *verb = vm_current_verb;
	const unsigned long number = atomic_fetch_add(&samples, 1) + 1;
	KYMO_INSTANT("profile", "sample", "number", number, "verb", verb ? verb : "");
}

void profile_start(void)
{
	struct sigaction action = {.sa_handler = take_sample, .sa_flags = SA_RESTART};
	const struct itimerval every = {{0, INTERVAL_US}, {0, INTERVAL_US}};
	sigemptyset(&action.sa_mask);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
}

uint64_t profile_stop(void)
{
	const struct itimerval never = {{0, 0}, {0, 0}};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	setitimer(ITIMER_PROF, &never, NULL);
	sigaction(SIGPROF, &ignore, NULL);
	return atomic_load(&samples);
}
