/* SPDX-License-Identifier: MIT */
/*
 * main.c: the demo, demo --help. Read the files in this order to see how a program is
 * instrumented:
 *
 *	db.c		spans by hand, instants with arguments, counters
 *	vm.c builtin.c	dynamic names, results, log messages, slow spans
 *	task.c		async spans that nest, flows
 *	scheduler.c	named threads, more counters
 *	gateway.c client.c loadgen.c	requests across threads and processes
 *	profile.c	a signal handler
 *	recording.c	sessions: the files
 *	verb.c world.c	the little language and its words
 *
 *	client threads ─┐                      ┌▶ worker ─┐
 *	                ├─▶ gateway ─▶ queue ──┼▶ worker ─┼─▶ db
 *	loadgen process ┘                ▲     └▶ worker ─┘
 *	                                 └─ scheduler ◀─┘ suspended tasks
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "db.h"
#include "gateway.h"
#include "loadgen.h"
#include "options.h"
#include "profile.h"
#include "recording.h"
#include "scheduler.h"
#include "world.h"

#include <kymo/kymo.h>

/* The last client is the load generator. */
#define CLIENTS 3
#define LOADGEN (CLIENTS - 1)

struct server {
	struct db db;
	struct scheduler scheduler;
	struct gateway gateway;
	int links[CLIENTS];
	struct client clients[CLIENTS];
	int64_t sum_before;
	uint64_t samples;
};

static void make_clients(struct server *server, const struct options *options)
{
	for (int i = 0; i < CLIENTS; i++) {
		int link;
		const uint64_t share = (options->tasks + (uint64_t)i) / CLIENTS;
		link_pair(&server->links[i], &link);
		client_init(&server->clients[i], link, i, share, options->seconds, options->seed);
	}
}

/* Forks before any thread is started: a forked process has only the thread that forked. */
static pid_t fork_loadgen(struct server *server)
{
	const pid_t pid = fork();
	if (pid < 0) {
		perror("demo: cannot fork the load generator");
		exit(1);
	}
	for (int i = 0; i < CLIENTS; i++) {
		const int far = server->clients[i].link;
		if (pid == 0)
			close(server->links[i]);
		if ((pid == 0) != (i == LOADGEN))
			close(far);
	}
	return pid;
}

/* Does all the work there is. */
static void run(struct server *server, const struct options *options)
{
	KYMO_SCOPE("world", "run", "tasks", options->tasks, "workers", options->workers, "seconds",
		   options->seconds);
	db_open(&server->db);
	world_open(&server->db);
	server->sum_before = db_sum(&server->db);
	profile_start();
	scheduler_open(&server->scheduler, &server->db, options->workers);
	gateway_open(&server->gateway, &server->scheduler, server->links, CLIENTS);
	for (int i = 0; i < LOADGEN; i++)
		client_start(&server->clients[i]);
	for (int i = 0; i < LOADGEN; i++)
		client_join(&server->clients[i]);
	gateway_close(&server->gateway);
	scheduler_close(&server->scheduler);
	server->samples = profile_stop();
	KYMO_PRINT("log", "done after %" PRIu64 " tasks", server->scheduler.totals.tasks);
}

static void print_summary(const struct server *server)
{
	const struct scheduler_totals *totals = &server->scheduler.totals;
	const uint64_t remote = server->gateway.requests - server->clients[0].received -
				server->clients[1].received;
	const struct {
		const char *name;
		uint64_t value;
	} lines[] = {
		{"requests", server->gateway.requests},
		{"  from loadgen", remote},
		{"tasks", totals->tasks},
		{"  runs", totals->runs},
		{"  verb spans", totals->work.verb_spans},
		{"  builtin calls", totals->work.builtin_calls},
		{"commits", server->db.commits},
		{"conflicts", server->db.conflicts},
		{"samples", server->samples},
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		printf("%-16s %10" PRIu64 "\n", lines[i].name, lines[i].value);
}

/* Whether no update was lost and every request was answered. */
static bool check(struct server *server, const struct options *options)
{
	const int64_t sum = db_sum(&server->db);
	const int64_t expected = server->sum_before + server->db.added;
	const uint64_t tasks = server->scheduler.totals.tasks;
	printf("%-16s %10" PRId64 "\n", "gold", sum);
	if (sum != expected)
		fprintf(stderr,
			"demo: there is %" PRId64 " gold, but there should be %" PRId64 "\n", sum,
			expected);
	if (tasks != options->tasks)
		fprintf(stderr, "demo: %" PRIu64 " tasks done, but %" PRIu64 " asked for\n", tasks,
			options->tasks);
	return sum == expected && tasks == options->tasks;
}

static bool wait_for_loadgen(pid_t pid)
{
	int status = 0;
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int serve(struct server *server, const struct options *options, pid_t loadgen)
{
	static struct recording recording;
	const int code = recording_start(&recording, options, "");
	if (code) {
		recording_stop(&recording);
		return code;
	}
	kymo_process_name("demo server");
	kymo_thread_name("main");
	run(server, options);
	const bool loadgen_well = wait_for_loadgen(loadgen);
	print_summary(server);
	const bool work_well = check(server, options);
	const bool written = recording_stop(&recording);
	db_close(&server->db);
	return loadgen_well && work_well && written ? 0 : 1;
}

int main(int argc, char **argv)
{
	static struct server server;
	struct options options;
	const enum options_verdict verdict = options_parse(&options, argc, argv);
	if (verdict != OPTIONS_GO)
		return verdict == OPTIONS_HELP ? 0 : 2;
	make_clients(&server, &options);
	const pid_t loadgen = fork_loadgen(&server);
	if (loadgen == 0)
		return loadgen_main(&server.clients[LOADGEN], &options);
	return serve(&server, &options, loadgen);
}
