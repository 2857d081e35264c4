/* SPDX-License-Identifier: MIT */
#include "readback.h"

#include "core/clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn void check_failed(const char *file, int line, const char *condition)
{
	char text[512];
	const int n =
		snprintf(text, sizeof(text), "%s:%d: does not hold: %s\n", file, line, condition);
	if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
		_exit(2);
	_exit(1);
}

int in_child(void (*body)(void))
{
	fflush(NULL);
	const pid_t pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* when the test is stopped, so is this */
		body();
		exit(0);
	}
	int status = 0;
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	if (WIFSIGNALED(status))
		fprintf(stderr, "the child died of signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* gcc defines a macro, clang has a feature. */
#if defined(__has_feature)
#define HAS(feature) __has_feature(feature)
#else
#define HAS(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS(address_sanitizer)
#define ADDRESS_SANITIZER true
#else
#define ADDRESS_SANITIZER false
#endif
#if defined(__SANITIZE_THREAD__) || HAS(thread_sanitizer)
#define THREAD_SANITIZER true
#else
#define THREAD_SANITIZER false
#endif

bool sanitized(void)
{
	return ADDRESS_SANITIZER || THREAD_SANITIZER;
}

bool thread_sanitized(void)
{
	return THREAD_SANITIZER;
}

static void ignore(void *context, const struct ky_event *event)
{
	(void)context;
	(void)event;
}

struct readback readback(readback_fn *on_event, void *context)
{
	struct ky_drum *drum = ky_drum_peek();
	static struct ky_stream stream;
	const char *what = "";
	if (!drum)
		return (struct readback){0};
	ky_clock_take(drum, true);
	CHECK(ky_stream_open(&stream, drum->base, drum->bytes, NULL, false, 0, &what) == 0);
	stream.sink =
		(struct ky_stream_sink){.event = on_event ? on_event : ignore, .context = context};
	CHECK(ky_stream_read_all(&stream) == 0);
	const struct readback totals = {
		.events = stream.events,
		.lost = stream.lost + drum->header->lost_ringless + drum->header->lost_nested,
		.overwritten = stream.lost,
		.damaged = stream.damaged,
	};
	ky_stream_close(&stream);
	return totals;
}

const struct kymo_arg *readback_arg(const struct ky_event *event, const char *key)
{
	for (uint32_t i = 0; i < event->args_count; i++)
		if (strcmp(event->args[i].key, key) == 0)
			return &event->args[i];
	check_failed(__FILE__, __LINE__, key);
}
