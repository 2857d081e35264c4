/* SPDX-License-Identifier: MIT */
/*
 * test_copies.c: plugins that have a copy of the library each, in a program that has none, with
 * KYMO_TRACE: one file for all of them, whichever comes and goes. KYMO_TARGET_COPY_PLUGIN names the plugin;
 * copies of its file are plugins of their own.
 */
#include "child.h"
#include "json_trace.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define COPIES 200
#define ROUNDS 500
/* glibc takes static TLS back in reverse order only: two copies that overlap may keep 8 bytes each time, of 1,600. */
#define ROUNDS_OF_TWO 75
#define EACH 10

typedef void work_fn(unsigned from, unsigned count);

static char original[512]; /* the plugin's file */

/* ---- the program with plugins ---- */

static void make_copy(unsigned number)
{
	char name[32];
	struct stat status;
	snprintf(name, sizeof(name), "./plugin%u.so", number);
	const int from = open(original, O_RDONLY | O_CLOEXEC);
	const int to = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	MUST(from >= 0 && to >= 0 && fstat(from, &status) == 0);
	MUST(sendfile(to, from, NULL, (size_t)status.st_size) == status.st_size);
	close(from);
	close(to);
}

static void make_copies(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		make_copy(i);
}

static void remove_copies(unsigned count)
{
	char name[32];
	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "./plugin%u.so", i);
		MUST(unlink(name) == 0);
	}
}

static void *load(unsigned number)
{
	char name[32];
	snprintf(name, sizeof(name), "./plugin%u.so", number);
	void *plugin = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!plugin)
		child_fail(__FILE__, __LINE__, dlerror());
	return plugin;
}

static void work(void *plugin, unsigned from, unsigned count)
{
	void *at = dlsym(plugin, "plugin_work");
	work_fn *fn;
	MUST(at);
	memcpy(&fn, &at, sizeof(at));
	fn(from, count);
}

static unsigned count_lines(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned lines = 0;
	for (int c; (c = fgetc(file)) != EOF;)
		lines += c == '\n';
	fclose(file);
	return lines;
}

static void record_in_many(void)
{
	make_copies(COPIES);
	for (unsigned i = 0; i < COPIES; i++) {
		void *plugin = load(i);
		MUST(!dlsym(plugin, "kymo_version") && !dlsym(plugin, "kymo_i_tls"));
		work(plugin, i * EACH, EACH);
	}
	remove_copies(COPIES);
}

static void load_again_and_again(void)
{
	unsigned mappings = 0;
	make_copy(0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		void *plugin = load(0);
		work(plugin, i * EACH, EACH);
		MUST(dlclose(plugin) == 0);
		if (i == 10)
			mappings = count_lines("/proc/self/maps");
	}
	MUST(SANITIZED || count_lines("/proc/self/maps") <= mappings + 10);
	remove_copies(1);
}

/* The first copy has the session. It leaves while the second records, and the third when that is gone, too. */
static void outlive_the_first(void)
{
	make_copies(3);
	void *first = load(0), *second = load(1), *third = load(2);
	work(first, 0, 10);
	work(second, 10, 10);
	MUST(dlclose(first) == 0);
	work(second, 20, 20000);
	work(third, 20020, 5);
	MUST(dlclose(second) == 0);
	work(third, 20025, 5);
	remove_copies(3);
}

struct job {
	unsigned plugin, from, rounds;
};

static void *come_and_go(void *context)
{
	const struct job *job = context;
	for (unsigned i = 0; i < job->rounds; i++) {
		void *plugin = load(job->plugin);
		work(plugin, job->from + i * EACH, EACH);
		MUST(dlclose(plugin) == 0);
	}
	return NULL;
}

static void two_threads(unsigned second, unsigned rounds)
{
	struct job jobs[] = {{0, 0, rounds}, {second, rounds * EACH, rounds}};
	pthread_t threads[2];
	make_copies(2);
	for (unsigned i = 0; i < 2; i++)
		MUST(pthread_create(&threads[i], NULL, come_and_go, &jobs[i]) == 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	remove_copies(2);
}

static void two_threads_one_plugin(void)
{
	two_threads(0, ROUNDS);
}

static void two_threads_two_plugins(void)
{
	two_threads(1, ROUNDS_OF_TWO);
}

static void complain_once(void)
{
	make_copies(6);
	for (unsigned i = 0; i < 6; i++)
		load(i);
	remove_copies(6);
}

/* ---- the tests ---- */

static void run(const char *body, const char *trace)
{
	char plugin[600];
	snprintf(plugin, sizeof(plugin), "KYMO_TARGET_COPY_PLUGIN=%s", original);
	/* What a copy leaves for exit(), a semaphore, looks lost when the copy is unloaded. */
	char *const environment[] = {plugin, (char *)(uintptr_t)trace,
				     (char *)(uintptr_t) "ASAN_OPTIONS=detect_leaks=0", NULL};
	assert_int_equal(child_exec(body, environment), 0);
}

/* All events up to that number, each once, in one file. */
static void expect_all(unsigned count)
{
	struct json_trace trace;
	bool *seen = calloc(count, sizeof(*seen));
	assert_non_null(seen);
	assert_int_equal(folder_files(), 1);
	json_trace_read(&trace, "out.json");
	assert_true(trace.whole);
	assert_int_equal(json_trace_count(&trace, 'i', "work"), count);
	for (size_t i = 0; i < trace.count; i++) {
		if (trace.events[i].phase != 'i')
			continue;
		const int64_t number = json_trace_arg(&trace.events[i], "number");
		assert_true(number >= 0 && number < count && !seen[number]);
		seen[number] = true;
	}
	json_trace_free(&trace);
	free(seen);
}

static void two_hundred_copies_write_one_file(void **state)
{
	(void)state;
	run("record_in_many", "KYMO_TRACE=out.json");
	expect_all(COPIES * EACH);
}

static void a_copy_that_is_loaded_again_goes_on(void **state)
{
	(void)state;
	run("load_again_and_again", "KYMO_TRACE=out.json");
	expect_all(ROUNDS * EACH);
}

static void other_copies_go_on_when_one_leaves(void **state)
{
	(void)state;
	run("outlive_the_first", "KYMO_TRACE=out.json");
	expect_all(20030);
}

static void copies_come_and_go_in_two_threads(void **state)
{
	(void)state;
	/* glibc takes static TLS back in reverse order only, and the sanitizers slow one of the threads down. */
	if (SANITIZED) {
		print_message("skipped: sanitizers leave too little static TLS\n");
		skip();
	}
	run("two_threads_one_plugin", "KYMO_TRACE=out.json");
	expect_all(2 * ROUNDS * EACH);
	assert_int_equal(unlink("out.json"), 0);
	run("two_threads_two_plugins", "KYMO_TRACE=out.json");
	expect_all(2 * ROUNDS_OF_TWO * EACH);
}

/* A .kymo has one end: what comes later is in a file with a number. */
static void formats_that_cannot_go_on_get_more_files(void **state)
{
	(void)state;
	run("outlive_the_first", "KYMO_TRACE=out.kymo");
	assert_true(folder_files() > 1 && access("out.kymo", R_OK) == 0);
	assert_int_equal(unlink("out.kymo"), 0);
	run("outlive_the_first", "KYMO_TRACE=out.pftrace");
	assert_int_equal(access("out.pftrace", R_OK), 0);
}

static void copies_complain_once(void **state)
{
	(void)state;
	fflush(NULL);
	const int err = open("stderr", O_RDWR | O_CREAT, 0600), old = dup(STDERR_FILENO);
	assert_true(err >= 0 && dup2(err, STDERR_FILENO) >= 0);
	run("complain_once", "KYMO_TRACE=out.txt");
	assert_true(dup2(old, STDERR_FILENO) >= 0);
	close(old);
	close(err);
	assert_int_equal(count_lines("stderr"), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(int argc, char **argv)
{
	static const struct child_body bodies[] = {
		{"record_in_many", record_in_many},
		{"load_again_and_again", load_again_and_again},
		{"outlive_the_first", outlive_the_first},
		{"two_threads_one_plugin", two_threads_one_plugin},
		{"two_threads_two_plugins", two_threads_two_plugins},
		{"complain_once", complain_once},
		{NULL, NULL},
	};
	const char *const plugin = getenv("KYMO_TARGET_COPY_PLUGIN");
	if (!plugin) {
		printf("skipped: KYMO_TARGET_COPY_PLUGIN names no plugin\n");
		return 77;
	}
	snprintf(original, sizeof(original), "%s", plugin);
	child_main(argc, argv, bodies);
	const struct CMUnitTest tests[] = {
		TEST(two_hundred_copies_write_one_file),
		TEST(a_copy_that_is_loaded_again_goes_on),
		TEST(other_copies_go_on_when_one_leaves),
		TEST(copies_come_and_go_in_two_threads),
		TEST(formats_that_cannot_go_on_get_more_files),
		TEST(copies_complain_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
