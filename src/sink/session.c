/* SPDX-License-Identifier: MIT */
/*
 * session.c: start and stop sessions. Running sessions are in one list (under list_lock), so that the end of the process
 * can finish their files and a forked child can forget them: their threads and files are the parent's.
 */
#include "sink/session.h"

#include "core/heap.h"
#include "core/init.h"
#include "sink/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_MS 5000u

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kymo_session *list;
static struct kymo_session *forgotten; /* the parent's, in a forked child: for leak checkers */

static void lock_list(void)
{
	pthread_mutex_lock(&list_lock);
}

static void unlock_list(void)
{
	pthread_mutex_unlock(&list_lock);
}

/*
 * Forget the sessions in a forked child. The parent's threads may have left them half changed: close descriptors only. The
 * list itself is whole at any moment, and a session is taken out of it before it is freed.
 */
static void forget_list(void)
{
	pthread_mutex_init(&list_lock, NULL);
	struct kymo_session **end = &list;
	for (; *end; end = &(*end)->next)
		ky_record_forget(*end);
	*end = forgotten;
	forgotten = list;
	list = NULL;
	ky_marker_forget();
}

static void list_add(struct kymo_session *s)
{
	lock_list();
	s->next = list;
	/* A child that is forked here finds the session whole. */
	__atomic_store_n(&list, s, __ATOMIC_RELEASE);
	unlock_list();
}

static void list_remove(struct kymo_session *s)
{
	lock_list();
	for (struct kymo_session **at = &list; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
	unlock_list();
}

/*
 * Finish all files at exit. The sessions stay, because the program may still hold them. The lock keeps them from being
 * freed, and makes this wait for one that another thread is stopping.
 */
static void finish_all(void)
{
	const int cancel = ky_drain_cancel_hold();
	lock_list();
	for (struct kymo_session *s = list; s; s = s->next)
		if (s->pid == getpid())
			ky_drain_finish(&s->drain);
	unlock_list();
	ky_drain_cancel_restore(cancel);
}

__attribute__((constructor(102))) static void prepare(void)
{
	ky_init_on_fork(forget_list);
	at_quick_exit(finish_all);
}

__attribute__((destructor(102))) static void finish(void)
{
	finish_all();
}

/* The caller's struct may be older and shorter than ours. */
static int copy_options(struct kymo_options *to, const struct kymo_options *from)
{
	if (!from || from->size < offsetof(struct kymo_options, mode))
		return KYMO_EOPTIONS;
	memset(to, 0, sizeof(*to));
	memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	return 0;
}

/* Return the format of "marker:", "marker:atrace" and "none:", as KYMO_TRACE may have them. */
static int format_by_prefix(const char *path)
{
	if (strcmp(path, "marker:") == 0)
		return KYMO_FORMAT_MARKER;
	if (strcmp(path, "marker:atrace") == 0)
		return KYMO_FORMAT_MARKER_ATRACE;
	return strcmp(path, "none:") == 0 ? KYMO_FORMAT_NONE : 0;
}

static int choose_format(const struct kymo_options *options)
{
	int format = options->format;
	if (format == KYMO_FORMAT_AUTO && options->path)
		format = format_by_prefix(options->path);
	if (format == KYMO_FORMAT_AUTO)
		format = options->path ? ky_format_by_name(options->path) : KYMO_FORMAT_KYMO;
	if (format <= 0 || format > KYMO_FORMAT_NONE)
		return KYMO_EFORMAT;
	if (format < KYMO_FORMAT_MARKER && !options->path && options->fd <= 0)
		return KYMO_EOPTIONS;
	return format;
}

static int keep_strings(struct kymo_session *s)
{
	const struct kymo_options *o = &s->options;
	char *path = o->path ? strdup(o->path) : NULL;
	char *categories = o->categories ? strdup(o->categories) : NULL;
	const bool good = (path || !o->path) && (categories || !o->categories);
	s->options.path = path;
	s->options.categories = categories;
	return good ? 0 : -ENOMEM;
}

static int take_options(struct kymo_session *s, const struct kymo_options *options)
{
	int error = copy_options(&s->options, options);
	if (error)
		return error;
	struct ky_config config = {0};
	if (s->options.perfetto_config) {
		error = ky_config_decode(&config, s->options.perfetto_config,
					 s->options.perfetto_config_bytes);
		if (error) {
			s->options.path = s->options.categories = NULL;
			return error;
		}
		ky_config_apply(&config, &s->options);
	}
	error = keep_strings(s);
	ky_config_free(&config);
	if (error)
		return error;
	if (s->options.flush_ms == 0)
		s->options.flush_ms = FLUSH_MS;
	if (s->options.mode != KYMO_MODE_STREAM && s->options.mode != KYMO_MODE_RING)
		return KYMO_EOPTIONS;
	s->format = choose_format(&s->options);
	return s->format < 0 ? s->format : 0;
}

static void size_rings(struct kymo_session *s)
{
	const bool stream = s->options.mode == KYMO_MODE_STREAM && s->format < KYMO_FORMAT_MARKER;
	const uint64_t ring = s->options.ring_bytes ? s->options.ring_bytes
			      : stream              ? KY_DRAIN_RING_BYTES
						    : 0;
	const uint64_t total = s->options.total_bytes ? s->options.total_bytes
			       : stream               ? KY_DRAIN_TOTAL_BYTES
						      : 0;
	if (ring || total)
		ky_drum_grow(s->drum, ring, total);
}

void ky_session_fail(struct kymo_session *s, int error)
{
	int none = 0;
	if (error)
		atomic_compare_exchange_strong(&s->error, &none, error);
}

void ky_session_stop_recording(struct kymo_session *s)
{
	if (s->slot >= 0)
		ky_heap_recorder_release(s->drum, (uint32_t)s->slot);
	s->slot = -1;
}

bool ky_session_is_over(const struct kymo_session *s, uint64_t now_ns)
{
	return s->options.duration_ms &&
	       now_ns - s->start_ns >= s->options.duration_ms * UINT64_C(1000000);
}

/* A session without a file has nothing to drain: its thread only ends it in time. */
static enum ky_drain_wish idle_round(void *self, bool flush, bool last)
{
	(void)flush;
	struct kymo_session *s = self;
	if (!last && !ky_session_is_over(s, ky_drain_now_ns()))
		return KY_DRAIN_REST;
	ky_session_stop_recording(s);
	ky_marker_stop(s);
	return KY_DRAIN_END;
}

static int begin(struct kymo_session *s)
{
	s->start_ns = ky_drain_now_ns();
	if (s->format < KYMO_FORMAT_MARKER)
		return ky_record_begin(s);
	return s->format < KYMO_FORMAT_NONE ? ky_marker_start(s) : 0;
}

/* Do all that may fail without a trace before the file is opened and emptied. */
static int start(struct kymo_session *s)
{
	s->drum = ky_drum_get();
	if (!s->drum)
		return KYMO_EDRUM;
	s->slot = ky_heap_recorder_take(s->drum);
	if (s->slot < 0)
		return KYMO_ESLOTS;
	size_rings(s);
	int error = begin(s);
	if (error == 0)
		error = ky_heap_recorder_set(s->drum, (uint32_t)s->slot,
					     s->options.categories ? s->options.categories : "*");
	if (error == 0 && s->format < KYMO_FORMAT_MARKER)
		error = ky_drain_start(&s->drain, s, ky_record_round);
	else if (error == 0 && s->options.duration_ms)
		error = ky_drain_start(&s->drain, s, idle_round);
	return error;
}

static void free_session(struct kymo_session *s)
{
	ky_session_stop_recording(s);
	if (!ky_marker_stop(s))
		return; /* a thread still uses it: better to leak the memory */
	if (s->format > 0 && s->format < KYMO_FORMAT_MARKER && s->drum)
		ky_record_free(s);
	free((void *)(uintptr_t)s->options.path);
	free((void *)(uintptr_t)s->options.categories);
	free(s);
}

int kymo_session_start(struct kymo_session **session, const struct kymo_options *options)
{
	return ky_session_start(session, options, NULL);
}

int ky_session_start(struct kymo_session **session, const struct kymo_options *options,
		     const struct ky_session_env *env)
{
	if (!session)
		return KYMO_EOPTIONS;
	*session = NULL;
	struct kymo_session *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->slot = -1;
	s->reader = -1;
	s->pid = getpid();
	s->fd = -1;
	s->output.fd = -1;
	s->by_env = env != NULL;
	if (env)
		s->env = *env;
	const int cancel = ky_drain_cancel_hold();
	int error = take_options(s, options);
	if (error == 0)
		error = start(s);
	if (error) {
		free_session(s);
	} else {
		list_add(s);
		*session = s;
	}
	ky_drain_cancel_restore(cancel);
	return error;
}

int kymo_session_flush(struct kymo_session *session)
{
	if (!session)
		return KYMO_EOPTIONS;
	if (session->pid != getpid())
		return KYMO_EFORKED;
	const int cancel = ky_drain_cancel_hold();
	ky_drain_flush(&session->drain);
	ky_drain_cancel_restore(cancel);
	return kymo_session_error(session);
}

int kymo_session_error(const struct kymo_session *session)
{
	return session ? atomic_load(&session->error) : KYMO_EOPTIONS;
}

int kymo_session_stats(const struct kymo_session *session, struct kymo_stats *stats)
{
	if (!session || !stats || stats->size < offsetof(struct kymo_stats, events) ||
	    stats->size > 4096)
		return KYMO_EOPTIONS;
	struct kymo_stats all = {.size = stats->size,
				 .events = atomic_load(&session->events),
				 .lost = atomic_load(&session->lost),
				 .stalled = KYMO_I_LOAD(&session->drum->header->stalled),
				 .stalled_ns = KYMO_I_LOAD(&session->drum->header->stalled_ns),
				 .bytes = atomic_load(&session->bytes),
				 .files = atomic_load(&session->files)};
	memcpy(stats, &all, stats->size < sizeof(all) ? stats->size : sizeof(all));
	return 0;
}

int kymo_session_stop(struct kymo_session **session)
{
	if (!session || !*session)
		return 0;
	struct kymo_session *s = *session;
	*session = NULL;
	if (s->pid != getpid())
		return KYMO_EFORKED; /* the thread is the parent's, and so is the file */
	const int cancel = ky_drain_cancel_hold();
	/* It stays in the list until the file is finished: exit() waits for that. */
	ky_drain_finish(&s->drain);
	list_remove(s);
	ky_drain_stop(&s->drain);
	const int error = kymo_session_error(s);
	free_session(s);
	ky_drain_cancel_restore(cancel);
	return error;
}

void ky_session_each_fd(void (*visit)(int fd, void *context), void *context)
{
	lock_list();
	for (struct kymo_session *s = list; s; s = s->next) {
		visit(__atomic_load_n(&s->output.fd, __ATOMIC_RELAXED), context);
		visit(s->fd, context);
	}
	unlock_list();
}

void ky_session_leave(struct kymo_session **session)
{
	struct kymo_session *s = *session;
	const int cancel = ky_drain_cancel_hold();
	ky_drain_finish(&s->drain);
	struct ky_drum_header *h = s->drum->header;
	h->left_identity = ky_output_identity(&s->output);
	const struct ky_lost_counts losses = ky_losses_read(h, 0);
	memcpy(h->left_losses, &losses, sizeof(losses));
	h->left_rotation = s->rotation;
	h->left_files += s->output.files;
	ky_drain_cancel_restore(cancel);
	kymo_session_stop(session);
	/* Pairs with the acquire in claim(), env.c. */
	__atomic_store_n(&h->env_state, KY_ENV_LEFT, __ATOMIC_RELEASE);
}

/* Return the text of a positive errno, or NULL: the same for ever, whichever thread asks. */
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 32)
static const char *errno_text(int error)
{
	return strerrordesc_np(error);
}
#else
static const char *errno_text(int error)
{
	return error <= EHWPOISON ? strerror(error)
				  : NULL; /* beyond these older ones use a buffer */
}
#endif

const char *kymo_strerror(int error)
{
	switch (error) {
#define TEXT(name, value, text)                                                                    \
	case name:                                                                                 \
		return text;
		KYMO_ERRORS(TEXT)
#undef TEXT
	default:
		break;
	}
	const char *text = errno_text(error < 0 ? -error : error);
	return text ? text : "unknown error";
}
