/* SPDX-License-Identifier: MIT */
/*
 * view_export.c: kymo view --export: writes the trace, or a range of it, and the page as one HTML file. The file gets
 * its name when it is complete: an existing file is never replaced by half a file.
 */
#include "cli/view_verb.h"
#include "server/html_export.h"
#include "server/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int progress(void *context, const char *stage, uint64_t done, uint64_t all)
{
	(void)context;
	return ky_cli_progress(stage, done, all);
}

static struct ky_view *open_view(const struct ky_view_command *command)
{
	struct ky_view *view = NULL;
	struct ky_trace *const trace =
		ky_view_load(command, &(struct ky_cli_load){.quiet = command->quiet});
	char *const name = trace ? ky_view_name(command) : NULL;
	if (!trace)
		return NULL;
	const struct ky_view_options options = {.name = name ? name : "trace",
						.generation = 1,
						.base_ns = KY_TIME_NONE,
						.progress = progress};
	const int error = ky_view_open(&view, trace, &options);
	ky_cli_progress_end();
	free(name);
	if (error && !ky_cli_interrupted())
		ky_cli_error("cannot make the view: %s", strerror(-error));
	return view;
}

static int cannot_write(const char *path, int error, const char *message)
{
	if (message && *message)
		ky_cli_error("%s", message);
	else
		ky_cli_error("cannot write %s: %s", path, strerror(error));
	return KY_EXIT_FAILED;
}

/* Write the file and give it its name. Return 0 or -errno, and its size. */
static int write_file(const char *waiting, const char *path, const struct ky_html_export *what,
		      uint64_t *size, char message[256])
{
	struct stat status;
	const int fd = open(waiting, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	int error = ky_html_export(fd, what, message);
	if (!error)
		error = ky_cli_progress("writing", 1, 1);
	*size = fstat(fd, &status) == 0 ? (uint64_t)status.st_size : 0;
	if (close(fd) != 0 && !error)
		error = -errno;
	if (!error && rename(waiting, path) != 0)
		error = -errno;
	if (error)
		unlink(waiting);
	return error;
}

static int write_view(const struct ky_view_command *command, const struct ky_view *view,
		      const char *waiting)
{
	char message[256] = "", text[KY_QUANTITY_BYTES];
	const struct ky_stats_filter filter = ky_cli_filter_of(&command->filter, view->trace);
	const struct ky_html_export what = {
		.view = view, .from_ns = filter.from_ns, .to_ns = filter.to_ns};
	uint64_t size = 0;
	ky_cli_progress("writing", 0, 0); /* from here on Ctrl-C leaves nothing behind */
	const int error = write_file(waiting, command->export, &what, &size, message);
	ky_cli_progress_end();
	if (error && ky_cli_interrupted())
		return KY_EXIT_FAILED;
	if (error)
		return cannot_write(command->export, -error, message);
	if (!command->quiet)
		fprintf(stderr, "kymo view: %s, %s; any browser opens it\n", command->export,
			ky_quantity_bytes(text, size));
	return KY_EXIT_DONE;
}

int ky_view_export(const struct ky_view_command *command)
{
	char *waiting = NULL;
	if (!ky_page_bytes) {
		ky_cli_error("this kymo was built without the page: 'make viewer' builds it, and "
			     "then kymo is to be built again");
		return KY_EXIT_IMPOSSIBLE;
	}
	if (asprintf(&waiting, "%s.%ld.tmp", command->export, (long)getpid()) < 0) {
		ky_cli_error("not enough memory");
		return KY_EXIT_FAILED;
	}
	struct ky_view *view = open_view(command);
	const int code = view ? write_view(command, view, waiting) : KY_EXIT_FAILED;
	ky_view_close(&view);
	free(waiting);
	return code;
}
