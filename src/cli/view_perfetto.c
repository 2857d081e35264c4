/* SPDX-License-Identifier: MIT */
/*
 * view_perfetto.c: kymo view --perfetto: serves the trace to ui.perfetto.dev, which fetches it from this machine when
 * a link says so: https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/... Formats that this page reads are served
 * unchanged, others as .pftrace.
 */
#include "cli/view_verb.h"
#include "formats/export.h"
#include "formats/load.h"
#include "server/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PERFETTO "https://ui.perfetto.dev"

/* ---- what it reads itself ---- */

/* Report packings that the page does not unpack: zstd and archives; it unpacks gzip. */
static bool is_packed_for_us(const char *path)
{
	static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd}, zip[] = {'P', 'K', 3, 4};
	uint8_t head[4] = {0};
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t bytes = fd < 0 ? -1 : read(fd, head, sizeof(head));
	if (fd >= 0)
		close(fd);
	return bytes != (ssize_t)sizeof(head) || memcmp(head, zstd, sizeof(zstd)) == 0 ||
	       memcmp(head, zip, sizeof(zip)) == 0;
}

static const char *format_of(const char *path)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_input *input = NULL;
	struct ky_probe probe;
	if (ky_input_open(&input, path, NULL, NULL, message) != 0)
		return "";
	ky_load_probe(input, &probe);
	const struct ky_reader *const reader = ky_load_reader(&probe);
	ky_input_close(&input);
	return reader ? reader->name : "";
}

static bool is_as_it_is(const struct ky_view_command *command)
{
	static const char *const formats[] = {"pftrace", "json", "fxt"};
	const char *const path = command->paths[0];
	if (command->paths_count != 1 || command->format || strcmp(path, "-") == 0 ||
	    is_packed_for_us(path))
		return false;
	const char *const format = format_of(path);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(format, formats[i]) == 0)
			return true;
	return false;
}

/* ---- the file ---- */

/* Convert the inputs. With --json the trace is left in *kept, for the line about its losses and problems. */
static bool convert(const struct ky_view_command *command, const char *path, struct ky_trace **kept)
{
	struct ky_export_left left = {0};
	char message[KY_MESSAGE_BYTES] = "", text[512];
	struct ky_trace *trace = ky_view_load(
		command, &(struct ky_cli_load){.quiet = command->quiet || command->json});
	if (!trace)
		return false;
	const int error = ky_export(trace, NULL, path, "pftrace", &left, ky_cli_on_stage,
				    "converting", message);
	ky_cli_progress_end();
	if (command->json)
		*kept = trace;
	else
		ky_trace_close(&trace);
	if (error && !ky_cli_interrupted())
		ky_cli_error("%s", message);
	ky_export_left_text(&left, text, sizeof(text));
	if (!error && !command->quiet && text[0])
		ky_cli_error("the format cannot carry %s", text);
	return !error;
}

/* Return the descriptor, or -1 after a message. A converted file has no name any more. */
static int open_file(const struct ky_view_command *command, bool as_it_is, struct ky_trace **kept)
{
	struct ky_scratch scratch = {0};
	char path[PATH_MAX];
	if (as_it_is) {
		snprintf(path, sizeof(path), "%s", command->paths[0]);
	} else {
		if (!ky_scratch_open(&scratch))
			return -1;
		ky_scratch_name(&scratch, "converted.pftrace", path);
		if (!convert(command, path, kept)) {
			ky_scratch_close(&scratch);
			return -1;
		}
	}
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		ky_cli_error("cannot read %s: %s", path, strerror(errno));
	ky_scratch_close(&scratch);
	return fd;
}

static char *name_file(const struct ky_view_command *command, bool as_it_is)
{
	char *const name = ky_view_name(command);
	char *with = NULL;
	if (as_it_is || !name)
		return name;
	if (asprintf(&with, "%s.pftrace", name) < 0)
		with = NULL;
	free(name);
	return with;
}

/* ---- serving ---- */

/* Print losses and problems behind the address; a file that is served unchanged is read for this alone. */
static void print_faults(const struct ky_view_command *command, const char *name,
			 struct ky_trace **kept)
{
	if (!*kept)
		*kept = ky_view_load(command, &(struct ky_cli_load){.quiet = true});
	if (*kept)
		ky_view_print_faults(*kept, name);
	ky_trace_close(kept);
}

static int serve(const struct ky_view_command *command, int fd, const char *name,
		 struct ky_trace **kept, struct ky_stop *stop)
{
	const struct ky_serve_file_options options = {
		.fd = fd, .name = name, .origin = PERFETTO, .port = (uint16_t)command->port};
	char message[KY_MESSAGE_BYTES], link[512];
	struct ky_scratch scratch = {0};
	struct ky_serve_file *server = NULL;
	if (ky_serve_file_open(&server, &options, message) != 0)
		return ky_cli_error("%s", message);
	snprintf(link, sizeof(link), PERFETTO "/#!/?url=%s", ky_serve_file_address(server));
	const bool printed = ky_view_print_address(command, link);
	if (printed && !command->no_browser && ky_browser_may_open())
		ky_browser_open(link, &scratch, &stop->before);
	if (printed && command->json)
		print_faults(command, name, kept);
	if (printed && !command->quiet)
		fprintf(stderr, "kymo view: %s is served to ui.perfetto.dev until Ctrl-C\n", name);
	while (printed && !ky_stop_wait(stop, -1))
		;
	ky_serve_file_close(&server);
	ky_scratch_close(&scratch);
	return printed ? KY_EXIT_DONE : KY_EXIT_FAILED;
}

int ky_view_perfetto(const struct ky_view_command *command)
{
	const bool as_it_is = is_as_it_is(command);
	struct ky_stop stop;
	struct ky_trace *kept = NULL;
	const int fd = open_file(command, as_it_is, &kept);
	char *const name = fd >= 0 ? name_file(command, as_it_is) : NULL;
	int code = KY_EXIT_FAILED;
	if (name && ky_stop_open(&stop) == 0) {
		code = serve(command, fd, name, &kept, &stop);
		ky_stop_close(&stop);
	}
	free(name);
	ky_trace_close(&kept);
	if (fd >= 0)
		close(fd);
	return code;
}
