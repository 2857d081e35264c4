/* SPDX-License-Identifier: MIT */
#include "lives.h"

#include "core/drum.h"
#include "formats/drum/drum_file.h"

#include <dirent.h>
#include <kymo/kymo.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "lives: %s\n", what);
	abort();
}

struct life *lives_of(struct lives *lives, pid_t pid)
{
	for (uint32_t i = lives->count; i-- > 0;)
		if (lives->life[i].pid == pid)
			return &lives->life[i];
	return NULL;
}

bool lives_ended(struct lives *lives, pid_t pid)
{
	const struct life *const life = lives_of(lives, pid);
	return life && life->ended;
}

uint32_t lives_drums(struct lives *lives, pid_t pid)
{
	const struct life *const life = lives_of(lives, pid);
	return life ? life->drums : 0;
}

uint32_t lives_all_ended(const struct lives *lives)
{
	uint32_t ended = 0;
	for (uint32_t i = 0; i < lives->count; i++)
		ended += lives->life[i].ended;
	return ended;
}

static void appeared(void *context, pid_t pid)
{
	struct lives *const lives = context;
	const struct life *const before = lives_of(lives, pid);
	if (before && !before->ended)
		lives->mistakes++;
	if (lives->count == LIVES_MAX)
		give_up("too many");
	lives->life[lives->count++] = (struct life){.pid = pid};
}

static void drum(void *context, pid_t pid, int fd)
{
	struct lives *const lives = context;
	struct life *const life = lives_of(lives, pid);
	char message[KY_MESSAGE_BYTES];
	if (!life || life->ended || life->drums == LIFE_DRUMS_MAX) {
		lives->mistakes++;
		return;
	}
	/* One that cannot be read is that of a test that runs beside this one. */
	if (ky_drum_file_open_fd(&life->files[life->drums], fd, "a drum", message) == 0)
		life->drums++;
}

static void count_event(void *context, const struct ky_event *event)
{
	*(uint64_t *)context += event->kind != KYMO_KIND_LOST;
}

static void read_drum(struct life *life, struct ky_drum_file **file)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_stream *stream;
	if (ky_drum_file_stream(*file, NULL, false, &stream, message) != 0)
		give_up(message);
	stream->sink = (struct ky_stream_sink){.event = count_event, .context = &life->events};
	if (ky_drum_file_read(*file, true) != 0)
		give_up("no memory");
	ky_drum_file_close(file);
}

static void ended(void *context, pid_t pid, int status)
{
	struct lives *const lives = context;
	struct life *const life = lives_of(lives, pid);
	if (!life || life->ended) {
		lives->mistakes++;
		return;
	}
	life->ended = true;
	life->status = status;
	for (uint32_t i = 0; i < life->drums; i++)
		read_drum(life, &life->files[i]);
}

void lives_begin(struct lives *lives, enum ky_processes_scope scope)
{
	const struct ky_processes_events events = {appeared, drum, ended, lives};
	memset(lives, 0, sizeof(*lives));
	if (ky_processes_open(&lives->processes, scope, &events) != 0)
		give_up("cannot be opened");
}

void lives_end(struct lives *lives)
{
	ky_processes_close(&lives->processes);
	for (uint32_t i = 0; i < lives->count; i++)
		for (uint32_t d = 0; d < lives->life[i].drums; d++)
			ky_drum_file_close(&lives->life[i].files[d]);
}

void lives_round(struct lives *lives)
{
	ky_processes_round(lives->processes);
}

void lives_wait(struct lives *lives)
{
	struct pollfd fd = {.fd = ky_processes_fd(lives->processes), .events = POLLIN};
	poll(&fd, 1, -1);
}

pid_t start(void (*body)(void *context), void *context, const char *mailbox)
{
	fflush(NULL);
	const pid_t pid = fork();
	if (pid < 0)
		give_up("no fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ky_limits.ring_bytes = 64u << 10;
		ky_limits.total_bytes = 1u << 20;
		ky_limits.categories = "*";
		ky_limits.mailbox = mailbox;
		body(context);
		_exit(0);
	}
	return pid;
}

void trace_events(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		KYMO_INSTANT("net", "event", "number", i);
}

void meeting_open(struct meeting *meeting)
{
	if (pipe(meeting->to_child) != 0 || pipe(meeting->to_parent) != 0)
		give_up("no pipe");
}

void meeting_close(struct meeting *meeting)
{
	for (int i = 0; i < 2; i++) {
		close(meeting->to_child[i]);
		close(meeting->to_parent[i]);
	}
}

static void tell(int fd)
{
	if (write(fd, "", 1) != 1)
		give_up("the other side is gone");
}

static void wait_for(int fd)
{
	char byte;
	if (read(fd, &byte, 1) != 1)
		give_up("the other side is gone");
}

void arrive(const struct meeting *meeting)
{
	tell(meeting->to_parent[1]);
}

void await_go(const struct meeting *meeting)
{
	wait_for(meeting->to_child[0]);
}

void await_child(const struct meeting *meeting)
{
	wait_for(meeting->to_parent[0]);
}

void let_go(const struct meeting *meeting)
{
	tell(meeting->to_child[1]);
}

uint32_t descriptors(void)
{
	uint32_t count = 0;
	DIR *const folder = opendir("/proc/self/fd");
	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}
