/* SPDX-License-Identifier: MIT */
/*
 * view_serve.c: kymo view as it is mostly used: a server first, so that the page is there at once and tells how far
 * loading is; then the trace; then, while files grow, the next generations of it. Loading is in this thread, answers
 * are in the server's, so a page is answered from the generation before while the next one is loaded.
 *
 * How often: a load costs the machine time, so at most a fifth of it goes into loading.
 */
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/view_verb.h"
#include "server/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- signals ---- */

/* Respect signals that were ignored when kymo started (nohup, a background job). */
static void add_unless_ignored(sigset_t *set, int number)
{
	struct sigaction action;
	if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
		sigaddset(set, number);
}

int ky_stop_open(struct ky_stop *stop)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigset_t set;
	*stop = (struct ky_stop){.fd = -1};
	sigemptyset(&set);
	add_unless_ignored(&set, SIGINT);
	add_unless_ignored(&set, SIGTERM);
	add_unless_ignored(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &stop->before);
	/* A client that goes away does not end kymo. */
	sigaction(SIGPIPE, &ignore, NULL);
	stop->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return stop->fd >= 0 ? 0 : -errno;
}

void ky_stop_close(struct ky_stop *stop)
{
	if (stop->fd >= 0)
		close(stop->fd);
	stop->fd = -1;
	sigprocmask(SIG_SETMASK, &stop->before, NULL);
}

static bool stop_asked(struct ky_stop *stop)
{
	struct signalfd_siginfo info;
	if (!stop->asked && read(stop->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		stop->asked = true;
		sigprocmask(SIG_SETMASK, &stop->before, NULL);
	}
	return stop->asked;
}

bool ky_stop_wait(struct ky_stop *stop, int milliseconds)
{
	struct pollfd ready = {.fd = stop->fd, .events = POLLIN};
	if (!stop->asked)
		poll(&ready, 1, milliseconds);
	return stop_asked(stop);
}

/* ---- recording a process for -p ---- */

#define LOOK_FOR_FILE_MS 20

/* A `kymo attach` of our own, as a process, so that signals, limits and failures are handled as there. */
struct attach {
	pid_t pid; /* 0: has ended */
	int code;  /* of its exit */
	char path[PATH_MAX];
};

/* Run in the child: in a group of its own, because Ctrl-C is for the parent; it ends with the parent. */
static _Noreturn void run_attach(const struct ky_view_command *command, const char *path,
				 pid_t parent, const sigset_t *mask)
{
	const char *arguments[2 * KY_VIEW_INPUTS_MAX + 6] = {"kymo", "attach", "--quiet", "-o",
							     path};
	size_t count = 5;
	for (uint32_t i = 0; i < command->targets_count; i++) {
		arguments[count++] = "-p";
		arguments[count++] = command->targets[i];
	}
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGINT);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
	/* Standard output is for the address only. */
	dup2(STDERR_FILENO, STDOUT_FILENO);
	if (getppid() == parent)
		execv("/proc/self/exe", (char *const *)(uintptr_t)arguments);
	_exit(127);
}

static void take_status(struct attach *attach, int status)
{
	attach->pid = 0;
	attach->code = WIFEXITED(status) ? WEXITSTATUS(status) : KY_EXIT_FAILED;
}

/* Report whether it has ended because the processes have. */
static bool attach_ended(struct attach *attach)
{
	int status;
	if (attach->pid && waitpid(attach->pid, &status, WNOHANG) == attach->pid)
		take_status(attach, status);
	return !attach->pid;
}

static bool has_file(const struct attach *attach, const struct stat *before)
{
	struct stat now;
	return stat(attach->path, &now) == 0 && now.st_size > 0 && now.st_ino != before->st_ino;
}

/* Start it and wait until the file exists. Return an enum ky_exit, after a message on failure. */
static int attach_start(struct attach *attach, const struct ky_view_command *command,
			const char *path, struct ky_stop *stop)
{
	const pid_t parent = getpid();
	struct stat before = {0};
	*attach = (struct attach){0};
	snprintf(attach->path, sizeof(attach->path), "%s", path);
	stat(path, &before);
	attach->pid = fork();
	if (attach->pid == 0)
		run_attach(command, path, parent, &stop->before);
	if (attach->pid < 0) {
		attach->pid = 0;
		return ky_cli_error("cannot start the recording: %s", strerror(errno));
	}
	while (!has_file(attach, &before)) {
		if (attach_ended(attach) && !has_file(attach, &before))
			return attach->code ? attach->code : KY_EXIT_FAILED;
		if (ky_stop_wait(stop, LOOK_FOR_FILE_MS))
			return KY_EXIT_FAILED;
	}
	return KY_EXIT_DONE;
}

/* End it and wait for it. */
static void attach_stop(struct attach *attach)
{
	int status = 0;
	if (!attach->pid)
		return;
	kill(attach->pid, SIGINT);
	while (waitpid(attach->pid, &status, 0) < 0 && errno == EINTR)
		;
	take_status(attach, status);
}

/* ---- serving ---- */

#define LOOK_MS 500
#define RELOAD_NS_MIN INT64_C(1000000000)
#define RELOAD_TIMES 4

struct session {
	struct ky_view_command command;
	struct ky_stop stop;
	struct ky_serve *serve;
	struct ky_scratch scratch;
	struct attach attach;
	struct ky_follow follow;
	char *name;
	uint32_t generation;
	int64_t base_ns;
	bool shown_live;                   /* what the last generation says */
	bool reported_failure;             /* that it cannot be loaded */
	uint64_t told_lost, told_problems; /* in the last line of JSON */
	int64_t load_next_ns;              /* not before */
};

/* ---- a generation ---- */

static int progress(void *context, const char *stage, uint64_t done, uint64_t all)
{
	struct session *const session = context;
	if (stop_asked(&session->stop))
		return -ECANCELED;
	if (session->generation)
		return 0;
	ky_serve_progress(session->serve, stage, done, all);
	return ky_cli_progress(stage, done, all);
}

/* A file that is being written may end in the middle of something: that is not damage. */
static bool is_its_end(const struct ky_trace *trace, uint32_t problem)
{
	static const char cut[] = "_truncated";
	const char *const name = ky_text_of(trace, trace->problems.name[problem]);
	const char *const text = ky_text_of(trace, trace->problems.first[problem]);
	const size_t bytes = name ? strlen(name) : 0, end = sizeof(cut) - 1;
	if (trace->problems.number[problem] != 1)
		return false;
	return (bytes > end && strcmp(name + bytes - end, cut) == 0) ||
	       (text && strcmp(text, "the file ends without an index") == 0);
}

static void excuse_its_end(struct ky_trace *trace)
{
	for (uint32_t i = 0; i < trace->problems.rows.count; i++)
		if (is_its_end(trace, i))
			trace->problems.severity[i] = KY_INFO;
}

/* Print losses and problems as JSON when they are others than last time. */
static void print_faults(struct session *session, const struct ky_trace *trace)
{
	uint64_t problems = 0;
	for (uint32_t i = 0; i < trace->problems.rows.count; i++)
		problems += trace->problems.number[i];
	if (!session->command.json || (session->generation && session->told_lost == trace->lost &&
				       session->told_problems == problems))
		return;
	session->told_lost = trace->lost;
	session->told_problems = problems;
	ky_view_print_faults(trace, session->name);
}

static int show(struct session *session, struct ky_trace *trace)
{
	struct ky_view *view = NULL;
	if (session->follow.live)
		excuse_its_end(trace);
	const struct ky_view_options options = {.name = session->name,
						.generation = session->generation + 1,
						.live = session->follow.live,
						.base_ns = session->base_ns,
						.progress = progress,
						.context = session};
	int error = ky_view_open(&view, trace, &options);
	ky_cli_progress_end();
	if (error)
		return error;
	/* A trace without events has no beginning, either. */
	if (view->trace->begin_ns || view->trace->end_ns)
		session->base_ns = view->base_ns;
	print_faults(session, view->trace);
	error = ky_serve_show(session->serve, view);
	if (!error)
		session->generation++;
	return error;
}

static void plan_next(struct session *session, int64_t begin)
{
	const int64_t now = ky_clock_monotonic();
	const int64_t wait = (now - begin) * RELOAD_TIMES;
	session->load_next_ns = now + (wait > RELOAD_NS_MIN ? wait : RELOAD_NS_MIN);
}

/*
 * Load the next generation. A file that is being written may be unreadable for a while: report it only when it still is at
 * the end.
 */
static bool load(struct session *session)
{
	const int64_t begin = ky_clock_monotonic();
	ky_follow_begin_load(&session->follow);
	const bool live = session->follow.live, mute = live || session->reported_failure;
	const struct ky_cli_load how = {.quiet = live || session->generation > 0 ||
						 session->command.quiet || session->command.json,
					.mute = mute,
					.progress = progress,
					.context = session};
	struct ky_trace *trace = ky_view_load(&session->command, &how);
	/* Wait for the first event: it is the page's time 0. */
	if (trace && live && strcmp(trace->format, "empty") == 0)
		ky_trace_close(&trace);
	const int error = trace ? show(session, trace) : 0;
	if (error && error != -ECANCELED && error != -EINTR && !mute)
		ky_cli_error("%s: cannot show it: %s", session->name, strerror(-error));
	session->reported_failure = (!trace || error) && !live;
	session->shown_live = live;
	plan_next(session, begin);
	return trace && !error;
}

/* ---- until Ctrl-C ---- */

static void look_at_recording(struct session *session)
{
	if (!session->attach.pid || !attach_ended(&session->attach))
		return;
	if (session->attach.code)
		ky_cli_error("the recording failed; what there was until then is shown");
	else if (!session->command.quiet)
		ky_cli_error("%s has ended; its recording is shown until Ctrl-C", session->name);
}

static void follow(struct session *session)
{
	struct ky_follow *const files = &session->follow;
	while (!ky_stop_wait(&session->stop, LOOK_MS)) {
		look_at_recording(session);
		ky_follow_look(files);
		if ((files->changed || files->live != session->shown_live) &&
		    ky_clock_monotonic() >= session->load_next_ns)
			load(session);
	}
}

/* A recording that has just begun may not be readable yet. */
static bool load_first(struct session *session)
{
	bool loaded = load(session);
	if (!loaded && session->follow.live && !session->stop.asked && !session->command.quiet)
		ky_cli_error("%s: there is nothing to show yet; waiting for more of it",
			     session->name);
	while (!loaded && session->follow.live && !ky_stop_wait(&session->stop, LOOK_MS))
		loaded = ky_clock_monotonic() >= session->load_next_ns && load(session);
	return loaded;
}

/* ---- begin and end ---- */

static void warn_of_bind(const struct ky_view_command *command)
{
	if (command->bind && strcmp(command->bind, "127.0.0.1") != 0 &&
	    strcmp(command->bind, "localhost") != 0 && strcmp(command->bind, "::1") != 0)
		ky_cli_error("--bind %s: who can reach that and sees the address can read the "
			     "trace, and nothing is encrypted; 'ssh -L' to 127.0.0.1 is safer",
			     command->bind);
}

static int begin_recording(struct session *session)
{
	char path[PATH_MAX];
	struct ky_view_command *const command = &session->command;
	if (!command->targets_count)
		return KY_EXIT_DONE;
	if (command->output)
		snprintf(path, sizeof(path), "%s", command->output);
	else if (ky_scratch_open(&session->scratch))
		ky_scratch_name(&session->scratch, "live.kymo", path);
	else
		return KY_EXIT_FAILED;
	const int code = attach_start(&session->attach, command, path, &session->stop);
	command->paths[0] = session->attach.path;
	command->paths_count = 1;
	return code;
}

static int open_files(struct session *session)
{
	session->name = ky_view_name(&session->command);
	const struct ky_view_command *const command = &session->command;
	const uint32_t followed = command->no_follow ? 0 : command->paths_count;
	if (session->name && ky_follow_open(&session->follow, command->paths, followed) == 0)
		return KY_EXIT_DONE;
	return ky_cli_error("not enough memory");
}

static int begin_serving(struct session *session)
{
	const struct ky_view_command *const command = &session->command;
	char message[KY_MESSAGE_BYTES] = "";
	const struct ky_serve_options options = {.bind = command->bind,
						 .port = (uint16_t)command->port};
	if (ky_serve_open(&session->serve, &options, message) == 0)
		return KY_EXIT_DONE;
	return ky_cli_error("%s", message);
}

static int serve(struct session *session)
{
	const struct ky_view_command *const command = &session->command;
	const char *const address = ky_serve_address(session->serve);
	warn_of_bind(command);
	if (!ky_view_print_address(command, address))
		return KY_EXIT_FAILED;
	if (!command->no_browser && ky_browser_may_open())
		ky_browser_open(address, &session->scratch, &session->stop.before);
	if (load_first(session)) {
		if (!command->quiet)
			fprintf(stderr, "kymo view: %s is shown%s until Ctrl-C\n", session->name,
				session->shown_live ? ", and followed," : "");
		follow(session);
	}
	return session->generation ? KY_EXIT_DONE : KY_EXIT_FAILED;
}

int ky_view_serve(const struct ky_view_command *command)
{
	struct session session = {.command = *command, .base_ns = KY_TIME_NONE};
	int code = KY_EXIT_FAILED;
	if (!ky_page_bytes) {
		ky_cli_error("this kymo was built without the page: 'make viewer' builds it, and "
			     "then kymo is to be built again; --perfetto works without");
		return KY_EXIT_IMPOSSIBLE;
	}
	if (ky_stop_open(&session.stop) == 0)
		code = begin_serving(&session);
	if (code == KY_EXIT_DONE)
		code = begin_recording(&session);
	if (code == KY_EXIT_DONE)
		code = open_files(&session);
	if (code == KY_EXIT_DONE)
		code = serve(&session);
	ky_serve_close(&session.serve);
	attach_stop(&session.attach);
	ky_scratch_close(&session.scratch);
	ky_follow_close(&session.follow);
	free(session.name);
	ky_stop_close(&session.stop);
	return session.stop.asked ? KY_EXIT_DONE : code;
}

/* ---- the browser ---- */

bool ky_browser_may_open(void)
{
	const char *const x11 = getenv("DISPLAY"), *const wayland = getenv("WAYLAND_DISPLAY");
	return (x11 && *x11) || (wayland && *wayland);
}

static bool write_page(const char *path, const char *address)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	const int bytes = dprintf(fd,
				  "<!doctype html><meta charset=\"utf-8\"><title>kymo</title>"
				  "<meta name=\"referrer\" content=\"no-referrer\">"
				  "<meta http-equiv=\"refresh\" content=\"0;url=%s\">"
				  "<a href=\"%s\">kymo view</a>\n",
				  address, address);
	return close(fd) == 0 && bytes > 0;
}

/* Run in the child of a child that ends at once, so that nobody waits for it and Ctrl-C does not reach it. */
static _Noreturn void run_browser(const char *page, const sigset_t *mask)
{
	const int null = open("/dev/null", O_RDWR);
	sigprocmask(SIG_SETMASK, mask, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	if (fork() != 0)
		_exit(0);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execlp("xdg-open", "xdg-open", page, (char *)NULL);
	_exit(127);
}

bool ky_browser_open(const char *address, struct ky_scratch *scratch, const sigset_t *mask)
{
	char page[PATH_MAX];
	if (!ky_scratch_open(scratch))
		return false;
	ky_scratch_name(scratch, "open.html", page);
	const pid_t child = write_page(page, address) ? fork() : -1;
	if (child == 0)
		run_browser(page, mask);
	if (child > 0 && waitpid(child, NULL, 0) == child)
		return true;
	ky_cli_error("cannot open a browser: %s; open the address yourself", strerror(errno));
	return false;
}
