/* SPDX-License-Identifier: MIT */
/* victim.c: all of it in one process at once. Only what the recorder itself does may go wrong. */
#include "victim.h"

#include "core/drum.h"
#include "core/stream.h"

#include <dlfcn.h>
#include <errno.h>
#include <kymo/session.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILD_EVENTS 50u
#define SHORT_EVENTS 3u
#define SHORT_AT_ONCE 32u
#define NESTING 6 /* deeper than the recorder has levels */

static struct ledger *ledger;
static const struct torment *torment;
static _Atomic bool stopping;

/* ---- recording ---- */

struct worker {
	pthread_t thread;
	_Atomic int32_t tid;
	uint32_t stream, handler_stream;
	_Atomic uint64_t next;          /* number of the next event */
	volatile uint64_t returned;     /* number of the last event that returned, plus one */
	_Atomic uint64_t handler_next;  /* the same for the handler's */
	volatile sig_atomic_t may_jump; /* the jump buffer is valid */
	volatile sig_atomic_t depth;
	sigjmp_buf jump;
};
static struct worker workers[WORKERS_MAX];
static __thread struct worker *self;
static _Atomic int forked_in_handler; /* in the child */

static uint32_t new_stream(void)
{
	return atomic_fetch_add(&ledger->streams, 1) % STREAMS_MAX;
}

static void record_one(uint32_t stream, uint64_t number)
{
	const uint32_t check = checksum(stream, number);
	if (number % 3 == 0) {
		char text[TEXT_BYTES];
		const char *const t = text;
		make_text(text, stream, number);
		KYMO_INSTANT("stress", "text", "stream", stream, "number", number, "check", check,
			     "text", t);
	} else {
		KYMO_INSTANT("stress", "plain", "stream", stream, "number", number, "check", check);
	}
}

static void pause_ns(long ns)
{
	const struct timespec pause = {0, ns};
	nanosleep(&pause, NULL);
}

/* ---- children ---- */

struct own_events {
	uint32_t stream;
	uint64_t next;
	bool wrong;
};

static void on_own_event(void *context, const struct ky_event *e)
{
	struct own_events *own = context;
	if (e->kind == KYMO_KIND_LOST || e->args_count < 3 || e->args[0].value.u != own->stream ||
	    e->args[1].value.u != own->next++)
		own->wrong = true;
}

static void no_thread(void *context, const struct ky_thread *thread)
{
	(void)context;
	(void)thread;
}

/* Read back what this child recorded: that, and nothing of its parent's. */
static bool reads_back(uint32_t stream, uint64_t count)
{
	struct own_events own = {.stream = stream};
	struct ky_stream reader;
	const char *what;
	const struct ky_drum *drum = ky_drum_peek();
	if (!drum) /* no room on a full disk: the events are off */
		return ky_drum_error() == -ENOSPC;
	if (ky_stream_open(&reader, drum->base, drum->bytes, NULL, false, 0, &what) != 0)
		return false;
	reader.sink = (struct ky_stream_sink){
		.thread = no_thread, .event = on_own_event, .context = &own};
	ky_stream_read_all(&reader);
	return !own.wrong && own.next + drum->header->lost_ringless == count &&
	       reader.damaged == 0 && reader.lost == 0;
}

static int be_child(uint32_t stream)
{
	for (uint64_t i = 0; i < CHILD_EVENTS; i++)
		record_one(stream, i);
	return reads_back(stream, CHILD_EVENTS) ? 0 : 1;
}

static void reap(pid_t pid)
{
	int status = -1;
	if (pid < 0)
		return;
	while (waitpid(pid, &status, 0) < 0)
		;
	atomic_fetch_add(&ledger->forks, 1);
	if (status != 0)
		atomic_fetch_add(&ledger->forks_wrong, 1);
}

static void *fork_children(void *context)
{
	(void)context;
	while (!stopping) {
		const uint32_t stream = new_stream();
		const pid_t pid = fork();
		if (pid == 0)
			_exit(be_child(stream));
		reap(pid);
		pause_ns(3000000);
	}
	return NULL;
}

/* ---- handlers ---- */

/* The child goes back into the event that the handler interrupted, and ends at the worker's next. */
static void fork_here(void)
{
	const pid_t pid = fork();
	if (pid == 0) {
		alarm(60);
		atomic_store(&forked_in_handler, 1);
		return;
	}
	reap(pid);
}

static void on_signal(int number)
{
	struct worker *w = self;
	if (!w || atomic_load(&forked_in_handler))
		return;
	const uint64_t number_here = atomic_fetch_add(&w->handler_next, 1);
	record_one(w->handler_stream, number_here);
	if (torment->nested && w->depth < NESTING) {
		w->depth = w->depth + 1;
		raise(number);
		w->depth = w->depth - 1;
	}
	if (torment->handler_forks && number_here % 64 == 0 && !atomic_load(&forked_in_handler))
		fork_here();
	if (torment->jumps && w->may_jump && !atomic_load(&forked_in_handler)) {
		w->may_jump = 0;
		siglongjmp(w->jump, 1);
	}
}

static void install_handler(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	if (torment->nested)
		action.sa_flags |= SA_NODEFER;
	else
		sigfillset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
}

static void *send_signals(void *context)
{
	uint32_t random = torment->seed | 1;
	(void)context;
	while (!stopping) {
		random = random * 1664525 + 1013904223;
		const int32_t tid = workers[(random >> 16) % torment->workers].tid;
		if (tid)
			syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
		pause_ns(random >> 13 & 0x3ffff);
	}
	return NULL;
}

/* ---- threads ---- */

/* A child of a fork in a handler has finished the interrupted event: it must be in neither drum. */
static void end_forked_child(void)
{
	if (!atomic_load(&forked_in_handler))
		return;
	const uint32_t stream = new_stream();
	for (uint64_t i = 0; i < CHILD_EVENTS; i++)
		record_one(stream, i);
	_exit(0);
}

static void work(struct worker *w)
{
	/* Back here by siglongjmp(): whether the event was recorded is not known. */
	if (torment->jumps && sigsetjmp(w->jump, 1) != 0 && w->returned != w->next)
		atomic_fetch_add(&ledger->unsure, 1);
	while (!stopping) {
		const uint64_t number = w->next;
		w->next = number + 1;
		w->may_jump = torment->jumps;
		record_one(w->stream, number);
		w->returned = number + 1;
		w->may_jump = 0;
		end_forked_child();
		if (w->stream < COMMITTED_MAX)
			atomic_store_explicit(&ledger->committed[w->stream], number + 1,
					      memory_order_release);
		if (torment->pause && number % torment->pause == 0)
			pause_ns(50000);
	}
}

static void *run_worker(void *context)
{
	struct worker *w = context;
	self = w;
	w->tid = (int32_t)syscall(SYS_gettid);
	work(w);
	w->tid = 0;
	/* No handler from here on: a signal may be on its way. */
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	end_forked_child(); /* the last signal may have come after the last event */
	atomic_fetch_add(&ledger->recorded, w->next + w->handler_next);
	return NULL;
}

static void *run_short(void *context)
{
	const uint32_t stream = new_stream();
	char name[32];
	(void)context;
	snprintf(name, sizeof(name), "short %u", stream);
	if (stream % 4 == 0)
		kymo_thread_name(name);
	for (uint64_t i = 0; i < SHORT_EVENTS; i++)
		record_one(stream, i);
	atomic_fetch_add(&ledger->recorded, SHORT_EVENTS);
	return NULL;
}

static void run_short_threads(void)
{
	pthread_t threads[SHORT_AT_ONCE];
	for (uint32_t left = torment->short_threads; left > 0;) {
		uint32_t count = 0;
		while (count < SHORT_AT_ONCE && count < left &&
		       pthread_create(&threads[count], NULL, run_short, NULL) == 0)
			count++;
		for (uint32_t i = 0; i < count; i++)
			pthread_join(threads[i], NULL);
		left -= count;
	}
}

static void *load_and_unload(void *context)
{
	const uint32_t stream = new_stream();
	uint64_t number = 0;
	(void)context;
	while (!stopping) {
		void *plugin = dlopen(torment->plugin, RTLD_NOW | RTLD_LOCAL);
		void *at = plugin ? dlsym(plugin, "plugin_record") : NULL;
		void (*record)(uint32_t, uint64_t, uint32_t);
		if (!at) {
			fprintf(stderr, "%s\n", dlerror());
			_exit(1);
		}
		memcpy(&record, &at, sizeof(at));
		for (int i = 0; i < 100; i++, number++)
			record(stream, number, checksum(stream, number));
		dlclose(plugin);
	}
	atomic_fetch_add(&ledger->recorded, number);
	return NULL;
}

/* ---- the process ---- */

static struct tally *subscribed;

static void on_events(const struct kymo_event *events, size_t count, void *context)
{
	struct tally *tally = context;
	for (size_t i = 0; i < count; i++) {
		const struct kymo_event *e = &events[i];
		if (e->kind == KYMO_KIND_LOST)
			tally->lost += e->id;
		else if (e->args_count < 3)
			tally->wrong++;
		else
			tally_note(tally, e->args[0].value.u, e->args[1].value.u,
				   e->args[2].value.u);
	}
}

static struct kymo_session *session;
static int subscription = -1;

static void start_readers(void)
{
	const struct kymo_options options = {.size = sizeof(options),
					     .path = torment->session,
					     .categories = torment->categories};
	if (torment->session && kymo_session_start(&session, &options) != 0)
		_exit(1);
	if (!torment->subscriber)
		return;
	subscribed = tally_open();
	subscription = kymo_subscribe(on_events, subscribed, torment->categories);
	if (subscription < 0)
		_exit(1);
}

static void stop_readers(void)
{
	struct kymo_stats stats = {.size = sizeof(stats)};
	if (subscription >= 0) {
		kymo_unsubscribe(subscription);
		ledger->subscriber_events = subscribed->events;
		ledger->subscriber_lost = subscribed->lost;
		ledger->subscriber_wrong = subscribed->wrong + subscribed->duplicates;
	}
	if (!session)
		return;
	ledger->session_error = (uint64_t)(int64_t)-kymo_session_flush(session);
	kymo_session_stats(session, &stats);
	ledger->session_events = stats.events;
	ledger->session_lost = stats.lost;
	kymo_session_stop(&session);
}

static void start_thread(pthread_t *thread, void *(*body)(void *), void *context)
{
	if (pthread_create(thread, NULL, body, context) != 0)
		_exit(1);
}

_Noreturn void victim_run(struct ledger *shared, const struct torment *how)
{
	pthread_t others[3];
	unsigned count = 0;
	ledger = shared;
	torment = how;
	const struct ky_drum *drum = ky_drum_get();
	start_readers();
	atomic_store(&ledger->ready, 1);
	install_handler();
	for (uint32_t i = 0; i < how->workers; i++) {
		workers[i].stream = new_stream();
		workers[i].handler_stream = new_stream();
		start_thread(&workers[i].thread, run_worker, &workers[i]);
	}
	if (how->signals)
		start_thread(&others[count++], send_signals, NULL);
	if (how->forks)
		start_thread(&others[count++], fork_children, NULL);
	if (how->plugin)
		start_thread(&others[count++], load_and_unload, NULL);
	run_short_threads();
	pause_ns(how->ms * 1000000L);
	stopping = true;
	for (uint32_t i = 0; i < how->workers; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < count; i++)
		pthread_join(others[i], NULL);
	ledger->recorded -= ledger->unsure;
	if (drum)
		ledger->drum_lost = drum->header->lost_ringless + drum->header->lost_nested;
	stop_readers();
	atomic_store(&ledger->done, 1);
	_exit(0);
}
