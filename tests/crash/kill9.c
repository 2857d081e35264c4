/* SPDX-License-Identifier: MIT */
/*
 * kill9.c: what a process recorded before it died is in the file that KYMO_DRUM_DIR left.
 *
 *   child: event n ─▶ ring       parent: SIGKILL at some moment, then reads the file
 *          n + 1   ─▶ shared page        at least that many events, in order, each as written
 *
 * The page is outside the drum: what it says was committed must be there. Exits 77 when there is no
 * folder to write to.
 */
#include "core/drum.h"
#include "formats/drum/drum_file.h"
#include "os/os.h"

#include <kymo/kymo.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 2u

struct page {
	_Atomic uint64_t committed[THREADS];
};
static struct page *page;
static uint32_t crash_after; /* 0: killed from outside */
static char folder[] = "/tmp/kymo-kill9-XXXXXX";

static void fill_text(char text[40], uint64_t number)
{
	const size_t bytes = number * 7 % 37;
	for (size_t i = 0; i < bytes; i++)
		text[i] = (char)('A' + (number + i) % 26);
	text[bytes] = '\0';
}

static void *write_events(void *context)
{
	const uint32_t self = (uint32_t)(uintptr_t)context;
	for (uint64_t n = 0;; n++) {
		char text[40];
		const char *const t = text;
		fill_text(text, n);
		if (n % 2)
			KYMO_INSTANT("net", "text", "number", n, "self", self, "text", t);
		else
			KYMO_INSTANT("net", "plain", "number", n, "self", self, "inverse", ~n);
		atomic_store_explicit(&page->committed[self], n + 1, memory_order_release);
		if (self == 1 && crash_after && n + 1 == crash_after)
			*(volatile int *)0 = 1;
	}
	return NULL;
}

static void run_child(void)
{
	pthread_t thread;
	signal(SIGSEGV, SIG_DFL); /* a sanitizer's own would end the process in its way */
	ky_limits.dir = folder;
	ky_limits.categories = "*";
	ky_limits.ring_bytes = 256u << 10;
	ky_limits.total_bytes = 2u << 20;
	(void)ky_drum_get(); /* as the library does itself when KYMO_DRUM_DIR is set */
	if (pthread_create(&thread, NULL, write_events, (void *)1) == 0)
		write_events((void *)0);
	_exit(1);
}

struct reading {
	uint64_t next[THREADS];
	uint64_t read, lost;
	uint64_t last_ns;
	const char *wrong;
};

static const struct kymo_arg *arg_of(const struct ky_event *e, uint32_t index, const char *key)
{
	static const struct kymo_arg none = {.string = ""};
	return index < e->args_count && strcmp(e->args[index].key, key) == 0 ? &e->args[index]
									     : &none;
}

static bool as_written(const struct ky_event *e, uint64_t number)
{
	char text[40];
	fill_text(text, number);
	if (number % 2)
		return strcmp(e->name.data, "text") == 0 &&
		       strcmp(arg_of(e, 2, "text")->string, text) == 0;
	return strcmp(e->name.data, "plain") == 0 && arg_of(e, 2, "inverse")->value.u == ~number;
}

/*
 * A thread is known by its number. What was overwritten is at its beginning, unless a kymo that records all programs made
 * it move to a larger ring: then the sums agree.
 */
static void on_event(void *context, const struct ky_event *e)
{
	struct reading *r = context;
	if (e->kind == KYMO_KIND_LOST)
		r->lost += e->id;
	if (e->kind == KYMO_KIND_LOST || r->wrong)
		return;
	const uint64_t number = arg_of(e, 0, "number")->value.u;
	const uint64_t self = arg_of(e, 1, "self")->value.u;
	if (e->args_count != 3 || self >= THREADS || !as_written(e, number))
		r->wrong = "an event is not as it was written";
	else if (number < r->next[self])
		r->wrong = "an event is there twice, or in the wrong place";
	else if (e->time_ns < r->last_ns)
		r->wrong = "time runs backwards";
	else
		r->next[self] = number + 1;
	r->read++;
	r->last_ns = e->time_ns;
}

/* Whether the file has what the page says was committed. */
static const char *check_file(const char *path, uint64_t *events)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_drum_file *file;
	struct ky_stream *stream;
	struct ky_drum_facts facts;
	struct reading reading = {.wrong = NULL};
	const uint64_t now = ky_os_boottime();
	if (ky_drum_file_open(&file, path, message) != 0 ||
	    ky_drum_file_stream(file, NULL, false, &stream, message) != 0) {
		fprintf(stderr, "%s\n", message);
		return "the file cannot be read";
	}
	stream->sink = (struct ky_stream_sink){.event = on_event, .context = &reading};
	if (ky_drum_file_read(file, true) != 0)
		reading.wrong = "not enough memory";
	ky_drum_file_facts(file, &facts);
	for (uint32_t i = 0; i < THREADS; i++)
		if (!reading.wrong && reading.next[i] < page->committed[i])
			reading.wrong = "a committed event is missing";
	if (!reading.wrong && reading.read + reading.lost != reading.next[0] + reading.next[1])
		reading.wrong = "an event is neither there nor counted as lost";
	if (facts.damaged || facts.exited || facts.lost_ringless || facts.lost_nested)
		reading.wrong = "it is damaged, or incomplete, or says that it ended in order";
	if (facts.events && (reading.last_ns > now || reading.last_ns < facts.made_boottime_ns))
		reading.wrong = "the last event is not of the process's lifetime";
	*events += facts.events;
	ky_drum_file_close(&file);
	return reading.wrong;
}

static void wait_a_while(pid_t pid, unsigned microseconds)
{
	siginfo_t ended = {.si_pid = 0};
	while (page->committed[0] == 0 && ended.si_pid == 0 &&
	       waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0)
		sched_yield();
	const struct timespec delay = {0, (long)microseconds * 1000};
	nanosleep(&delay, NULL);
}

static int run_once(unsigned seed, bool crash, uint64_t *events)
{
	char path[128];
	memset(page, 0, sizeof(*page));
	crash_after = crash ? 1 + seed % 20000 : 0;
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0)
		run_child();
	if (!crash) {
		wait_a_while(pid, seed % 3000);
		kill(pid, SIGKILL);
	}
	int status = 0;
	waitpid(pid, &status, 0);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != (crash ? SIGSEGV : SIGKILL)) {
		fprintf(stderr, "seed %u: the child ended by itself, status %#x\n", seed, status);
		return 1;
	}
	snprintf(path, sizeof(path), "%s/kymo-%d.drum", folder, (int)pid);
	const char *wrong = check_file(path, events);
	if (wrong)
		fprintf(stderr, "%s, seed %u: %s (%llu and %llu committed)\n", path, seed, wrong,
			(unsigned long long)page->committed[0],
			(unsigned long long)page->committed[1]);
	else
		unlink(path);
	return wrong != NULL;
}

int main(int argc, char **argv)
{
	const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
	uint64_t events = 0;
	int failed = 0;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || !mkdtemp(folder)) {
		perror(folder);
		return 77;
	}
	for (unsigned i = 0; i < rounds; i++)
		failed += run_once(i * 2654435761u >> 8, false, &events);
	for (unsigned i = 0; i < rounds / 4; i++)
		failed += run_once(i * 40503u + 1, true, &events);
	printf("%u killed, %u crashed, %llu events read, %d wrong\n", rounds, rounds / 4,
	       (unsigned long long)events, failed);
	if (!failed)
		rmdir(folder);
	return failed != 0;
}
