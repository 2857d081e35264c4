/* SPDX-License-Identifier: MIT */
/*
 * marker.c: write each event as a line to ftrace's trace_marker, in the thread that records it, so that the kernel's own
 * time and thread are right. That is a system call per event, which the choice of this backend accepts. Events take the
 * slow path while it runs and come here through its hook; they are in the rings as well.
 *
 * The descriptor is opened once and kept, so that the program, and children that it forks, can use
 * it after they entered a sandbox. From then on an event makes one system call, write(), and no
 * other.
 *
 *   readable   17 net Enter: recv - (bytes: 12)(peer: "a")      atrace   B|1234|recv
 *              17 net Exit: recv                                         E|1234
 *              the text of a print
 *
 * The readable form is that of crosvm's cros_tracing, whose users have tools for it.
 *
 * Any thread may be in the hook when the session ends: it counts itself in and out, and the session
 * is freed only when nobody is inside.
 */
#include "core/print.h"
#include "core/writer.h"
#include "sink/session.h"

#include "core/glob.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LINE_BYTES 1024u /* of one write, which the kernel takes in one piece */
#define DEPTH_MAX 32u
#define WAIT_NS UINT64_C(1000000000)

/*
 * The one session that writes to ftrace. All accesses are sequentially consistent, as an event costs a system call anyway.
 * What pairs: the store of session comes last in ky_marker_start(), so a hook that loads it finds fd, pid and epoch;
 * hook() counts itself in and then loads session, ky_marker_stop() clears session and then loads inside.
 */
static struct {
	struct kymo_session *_Atomic session;
	_Atomic bool taken; /* by a session, from before it begins until after its end */
	_Atomic int inside; /* threads in the hook */
	_Atomic int fd;     /* of the session */
	_Atomic int kept;   /* ftrace's own, after the first use */
	_Atomic int pid;
	_Atomic uint32_t epoch; /* the session's number */
	_Atomic uint64_t ids;
} marker = {.fd = -1, .kept = -1};

/*
 * Ids of a thread's open spans, so that an exit has the number of its enter. One for each slot of slots.c, from the start of
 * the first session on: thread-local storage is scarce in a library that is loaded later.
 */
struct open_spans {
	uint32_t epoch;
	uint32_t depth;
	uint64_t ids[DEPTH_MAX];
};
static struct open_spans *_Atomic spans_of_slots;

struct line {
	char text[LINE_BYTES];
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
	const size_t room = sizeof(line->text) - 1 - line->used; /* keep a byte for the newline */
	va_list list;
	va_start(list, format);
	const int bytes = vsnprintf(line->text + line->used, room, format, list);
	va_end(list);
	if (bytes > 0)
		line->used += (size_t)bytes < room ? (size_t)bytes : room - 1;
}

/* An event with its items sorted out. */
struct marker_event {
	const struct kymo_site_info *info;
	const char *name;
	uint64_t id;
	bool end;
	uint32_t args_count;
	struct kymo_arg args[KYMO_ARGS_MAX];
};

static void set_arg(struct kymo_arg *arg, const char *key, uint32_t type, uint64_t word)
{
	*arg = (struct kymo_arg){.key = key, .type = type, .value.u = word};
	if (type != KYMO_TYPE_STRING)
		return;
	arg->string = word ? (const char *)(uintptr_t)word : "(null)";
	arg->string_bytes = (uint32_t)strnlen(arg->string, KYMO_STRING_MAX + 1);
	arg->cut = arg->string_bytes > KYMO_STRING_MAX;
	arg->string_bytes -= arg->cut ? 1 : 0;
}

static void split(struct marker_event *p, const struct kymo_site_info *info, bool end,
		  const uint64_t *values)
{
	p->info = info;
	p->name = info->name;
	p->end = end;
	p->id = 0;
	p->args_count = 0;
	if (end || !values)
		return;
	uint32_t at =
		(info->flags & KYMO_SITE_TIME ? 1u : 0) + (info->flags & KYMO_SITE_TID ? 1u : 0);
	if (info->flags & KYMO_SITE_NAME)
		p->name = (const char *)(uintptr_t)values[at++];
	if (!p->name)
		p->name = "(null)";
	if (info->flags & KYMO_SITE_ID)
		p->id = values[at++];
	for (; p->args_count < info->args && p->args_count < KYMO_ARGS_MAX; at++)
		set_arg(&p->args[p->args_count++], info->keys[at],
			(uint32_t)(info->types >> (4 * at) & 15), values[at]);
}

/* Add a value in the form of its type. The decimal separator is always a point, whatever the locale. */
static void add_value(struct line *line, const struct kymo_arg *arg)
{
	char *const text = line->text + line->used;
	line->used += ky_print(text, sizeof(line->text) - 1 - line->used, "%s", arg, 1);
	char *const comma = arg->type == KYMO_TYPE_DOUBLE ? strchr(text, ',') : NULL;
	if (comma)
		*comma = '.';
}

/* Add a string in quotes, with quotes, backslashes and newlines in it escaped. */
static void add_quoted(struct line *line, const struct kymo_arg *arg)
{
	add(line, "\"");
	for (uint32_t i = 0; i < arg->string_bytes; i++) {
		const char c = arg->string[i];
		if (c == '\n')
			add(line, "\\n");
		else
			add(line, c == '"' || c == '\\' ? "\\%c" : "%c", c);
	}
	add(line, arg->cut ? "...\"" : "\"");
}

static void add_args(struct line *line, const struct marker_event *p)
{
	for (uint32_t i = 0; i < p->args_count; i++) {
		add(line, "%s(%s: ", i ? "" : " - ", p->args[i].key);
		if (p->args[i].type == KYMO_TYPE_STRING)
			add_quoted(line, &p->args[i]);
		else
			add_value(line, &p->args[i]);
		add(line, ")");
	}
}

/* Add the name. field: another follows in the atrace form, where '|' ends one. */
static void add_name(struct line *line, const struct marker_event *p, bool field)
{
	const size_t before = line->used;
	if (p->info->kind == KYMO_KIND_PRINT)
		line->used += ky_print(line->text + before, sizeof(line->text) - 1 - before,
				       p->name, p->args, p->args_count);
	else
		add(line, "%.*s", KYMO_STRING_MAX, p->name);
	for (size_t i = before; field && i < line->used; i++)
		if (line->text[i] == '|')
			line->text[i] = '/';
}

static const char *verb(const struct marker_event *p)
{
	static const char *const verbs[] = {
		[KYMO_KIND_BEGIN] = "Enter",
		[KYMO_KIND_END] = "Exit",
		[KYMO_KIND_INSTANT] = "Instant",
		[KYMO_KIND_COUNTER] = "Counter",
		[KYMO_KIND_ASYNC_BEGIN] = "Async enter",
		[KYMO_KIND_ASYNC_INSTANT] = "Async instant",
		[KYMO_KIND_ASYNC_END] = "Async exit",
		[KYMO_KIND_FLOW_BEGIN] = "Flow begin",
		[KYMO_KIND_FLOW_STEP] = "Flow step",
		[KYMO_KIND_FLOW_END] = "Flow end",
		[KYMO_KIND_SNAPSHOT] = "Snapshot",
	};
	const uint32_t kind = p->end ? KYMO_KIND_END : p->info->kind;
	const char *text = kind < sizeof(verbs) / sizeof(verbs[0]) ? verbs[kind] : NULL;
	return text ? text : "Event";
}

static uint64_t new_id(void)
{
	/* The pid is part of it: a child's numbers differ from its parent's. */
	return (uint64_t)atomic_load(&marker.pid) << 32 |
	       (atomic_fetch_add(&marker.ids, 1) & UINT32_MAX);
}

/*
 * Return a number for the event; a span's end has that of its beginning. A signal handler may come anywhere: the place is
 * taken before it is written, and read before it is given back.
 */
static uint64_t number_of(const struct marker_event *p, struct open_spans *spans)
{
	const uint32_t epoch = atomic_load(&marker.epoch);
	if (spans->epoch != epoch)
		spans->depth = 0;
	spans->epoch = epoch;
	const uint32_t depth = spans->depth;
	if ((p->end || p->info->kind == KYMO_KIND_END) && depth > 0) {
		const uint64_t id = depth <= DEPTH_MAX ? spans->ids[depth - 1] : 0;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		spans->depth = depth - 1;
		return id;
	}
	const uint64_t id = new_id();
	if (p->info->kind == KYMO_KIND_BEGIN && !p->end) {
		spans->depth = depth + 1;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (depth < DEPTH_MAX)
			spans->ids[depth] = id;
	}
	return id;
}

static void readable(struct line *line, const struct marker_event *p, struct open_spans *spans)
{
	if (p->info->kind == KYMO_KIND_PRINT) {
		add_name(line, p, false);
		return;
	}
	add(line, "%llu %s %s: ", (unsigned long long)number_of(p, spans), p->info->category,
	    verb(p));
	add_name(line, p, false);
	if (p->info->flags & KYMO_SITE_ID && !p->end)
		add(line, " #0x%llx", (unsigned long long)p->id);
	add_args(line, p);
}

/* Round: the atrace form has counters of whole numbers only. */
static int64_t counter_value(const struct marker_event *p)
{
	if (p->args_count == 0)
		return 0;
	if (p->args[0].type != KYMO_TYPE_DOUBLE)
		return p->args[0].value.i;
	const double d = p->args[0].value.d;
	if (!(d > -9e18 && d < 9e18)) /* also if it is NaN */
		return d > 0 ? INT64_MAX : d < 0 ? INT64_MIN : 0;
	return (int64_t)(d < 0 ? d - 0.5 : d + 0.5);
}

/* Write the form that Android's tools and Perfetto read. */
static void atrace(struct line *line, const struct marker_event *p)
{
	static const char letters[] = {[KYMO_KIND_BEGIN] = 'B',
				       [KYMO_KIND_END] = 'E',
				       [KYMO_KIND_COUNTER] = 'C',
				       [KYMO_KIND_ASYNC_BEGIN] = 'S',
				       [KYMO_KIND_ASYNC_END] = 'F'};
	const uint32_t kind = p->end ? KYMO_KIND_END : p->info->kind;
	const char letter = kind < sizeof(letters) && letters[kind] ? letters[kind] : 'I';
	add(line, "%c|%d", letter, atomic_load(&marker.pid));
	if (letter == 'E')
		return;
	add(line, "|");
	add_name(line, p, letter == 'S' || letter == 'F' || letter == 'C');
	if (letter == 'S' || letter == 'F')
		add(line, "|%lld", (long long)p->id);
	if (letter == 'C')
		add(line, "|%lld", (long long)counter_value(p));
}

/* End the line. A name or a value must not begin another. */
static void end_line(struct line *line)
{
	for (size_t i = 0; i < line->used; i++)
		if (line->text[i] == '\n' || line->text[i] == '\r')
			line->text[i] = ' ';
	line->text[line->used++] = '\n';
}

static void send_line(struct kymo_session *s, const struct line *line)
{
	const int fd = atomic_load(&marker.fd);
	/* Not write(), which is a cancellation point: no thread may be cancelled in an event. */
	if (syscall(SYS_write, fd, line->text, line->used) >= 0) {
		atomic_fetch_add(&s->events, 1);
		atomic_fetch_add(&s->bytes, line->used);
		return;
	}
	const int error = errno;
	atomic_fetch_add(&s->lost, 1);
	/* ftrace returns EBADF while tracing_on is 0, which may change; or the program closed fd. */
	if (error != EBADF || fcntl(fd, F_GETFD) < 0)
		ky_session_fail(s, -error);
}

static void hook(const struct kymo_site_info *info, bool end, const uint64_t *values, uint32_t slot)
{
	/*
	 	 * Sequentially consistent with the store of session and the load of inside in ky_marker_stop(): it
	 * sees this thread, or this thread sees no session.
	 */
	atomic_fetch_add(&marker.inside, 1);
	struct kymo_session *s = atomic_load(&marker.session);
	if (s && ky_glob_list_match(s->options.categories, info->category)) {
		struct marker_event p;
		struct line line;
		line.used = 0;
		split(&p, info, end, values);
		if (s->format == KYMO_FORMAT_MARKER)
			readable(&line, &p, &atomic_load(&spans_of_slots)[slot]);
		else
			atrace(&line, &p);
		end_line(&line);
		send_line(s, &line);
	}
	atomic_fetch_sub(&marker.inside, 1);
}

/* The program's threads write to tracefs only: a pipe could block or kill them. */
static bool is_tracefs(int fd)
{
	struct statfs st;
	return fstatfs(fd, &st) == 0 && (st.f_type == TRACEFS_MAGIC || st.f_type == DEBUGFS_MAGIC);
}

static int open_marker(void)
{
	static const char *const paths[] = {"/sys/kernel/tracing/trace_marker",
					    "/sys/kernel/debug/tracing/trace_marker"};
	int fd = atomic_load(&marker.kept);
	for (size_t i = 0; fd < 0 && i < sizeof(paths) / sizeof(paths[0]); i++)
		fd = open(paths[i], O_WRONLY | O_CLOEXEC | O_APPEND);
	if (fd >= 0 && fd <= STDERR_FILENO) {
		const int low = fd;
		fd = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		close(low);
	}
	if (fd < 0)
		return KYMO_EMARKER;
	atomic_store(&marker.kept, fd);
	return fd;
}

static int duplicate(int fd)
{
	const int own = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return own < 0 ? -errno : own;
}

static bool wait_a_while(void *context)
{
	const uint64_t *until_ns = context;
	ky_os_yield();
	return ky_drain_now_ns() < *until_ns;
}

/* Switch twice: a thread in the middle of an event may have read the old setting. */
static void slow_all(void)
{
	uint64_t until_ns = ky_drain_now_ns() + WAIT_NS;
	ky_slots_slow_only(true);
	ky_slots_settle(wait_a_while, &until_ns);
	ky_slots_slow_only(true);
}

static int make_spans(void)
{
	if (!atomic_load(&spans_of_slots))
		atomic_store(&spans_of_slots,
			     calloc(ky_limits.rings_max, sizeof(struct open_spans)));
	return atomic_load(&spans_of_slots) ? 0 : -ENOMEM;
}

int ky_marker_start(struct kymo_session *s)
{
	if (atomic_exchange(&marker.taken, true))
		return -EBUSY;
	int fd = make_spans();
	if (fd == 0)
		fd = s->options.fd > 0 ? duplicate(s->options.fd) : open_marker();
	if (fd >= 0 && !is_tracefs(fd)) {
		close(fd);
		fd = KYMO_EMARKER;
	}
	if (fd < 0) {
		atomic_store(&marker.taken, false);
		return fd;
	}
	atomic_store(&marker.fd, fd);
	atomic_store(&marker.pid, s->pid);
	atomic_fetch_add(&marker.epoch, 1);
	atomic_store(&marker.session, s);
	/* Pairs with the acquire load in record_slow(), writer.c. */
	__atomic_store_n(&ky_writer_hook, hook, __ATOMIC_RELEASE);
	slow_all();
	return 0;
}

static void unhook(void)
{
	__atomic_store_n(&ky_writer_hook, NULL, __ATOMIC_RELAXED);
	ky_slots_slow_only(false);
	atomic_store(&marker.session, NULL);
}

static void close_fd(void)
{
	const int fd = atomic_exchange(&marker.fd, -1);
	if (fd >= 0 && fd != atomic_load(&marker.kept))
		close(fd);
}

/* Wait a limited time: a thread that left the hook by longjmp() from a signal handler never counts itself out. */
static bool wait_for_empty(void)
{
	const uint64_t until_ns = ky_drain_now_ns() + WAIT_NS;
	while (atomic_load(&marker.inside) > 0) {
		if (ky_drain_now_ns() > until_ns)
			return false;
		ky_os_yield();
	}
	return true;
}

bool ky_marker_stop(struct kymo_session *s)
{
	if (atomic_load(&marker.session) != s)
		return true;
	unhook();
	const bool empty = wait_for_empty();
	if (empty)
		close_fd();
	atomic_store(&marker.taken, false);
	return empty;
}

void ky_marker_forget(void)
{
	if (!atomic_load(&marker.taken))
		return;
	unhook();
	close_fd();
	atomic_store(&marker.inside, 0); /* threads of the parent */
	atomic_store(&marker.taken, false);
}

int ky_marker_fd(void)
{
	const int fd = atomic_load(&marker.fd);
	return fd >= 0 ? fd : atomic_load(&marker.kept);
}
