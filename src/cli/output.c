/* SPDX-License-Identifier: MIT */
/* output.c: writes traces for the verbs; see cli.h. */

#include "base/file.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what had the name before ---- */

/*
 * An existing file has both names until the new file takes the first one; on a file system without links it has only
 * the second.
 */
struct kept {
	struct ky_place place; /* dir is -1: no existing file */
	char old[KY_PLACE_NAME_BYTES];
	char waiting[KY_PLACE_NAME_BYTES]; /* the second name while the new file is written */
	bool renamed;                      /* it has only the second name */
};

static bool keep_failed(const char *path, const char *name, int error)
{
	ky_cli_error("cannot keep %s as %s: %s; name another output with -o", path, name,
		     strerror(error));
	return false;
}

static bool give_second_name(struct kept *kept)
{
	const int dir = kept->place.dir;
	if (linkat(dir, kept->place.name, dir, kept->waiting, 0) == 0)
		return true;
	kept->renamed = renameat(dir, kept->place.name, dir, kept->waiting) == 0;
	return kept->renamed;
}

static bool keep(struct kept *kept, const char *path)
{
	struct stat st;
	int error = ky_place_find(&kept->place, path);
	if (!error)
		error = ky_place_stat(&kept->place, &st);
	if (error == -ENOENT || (!error && !S_ISREG(st.st_mode))) {
		ky_place_close(&kept->place);
		return true;
	}
	if (!error && (snprintf(kept->old, sizeof(kept->old), "%s.old", kept->place.name) >=
			       (int)sizeof(kept->old) ||
		       snprintf(kept->waiting, sizeof(kept->waiting), "%s.%ld.tmp", kept->old,
				(long)getpid()) >= (int)sizeof(kept->waiting)))
		error = -ENAMETOOLONG;
	if (!error && !give_second_name(kept))
		error = -errno;
	if (!error)
		return true;
	ky_place_close(&kept->place);
	return keep_failed(path, kept->old, -error);
}

static bool settle(struct kept *kept, const char *path, bool written)
{
	const int dir = kept->place.dir;
	const char *const name = written ? kept->old : kept->place.name;
	bool done = true;
	if (dir < 0)
		return true;
	if (written || kept->renamed)
		done = renameat(dir, kept->waiting, dir, name) == 0 ||
		       keep_failed(path, written ? name : kept->waiting, errno);
	else
		unlinkat(dir, kept->waiting, 0);
	ky_place_close(&kept->place);
	return done;
}

/* ---- writing ---- */

static int write_trace(const struct ky_output_target *output, const struct ky_trace *trace,
		       const struct ky_export_selection *selection, struct ky_export_left *left)
{
	char message[KY_MESSAGE_BYTES], text[512];
	const int error = ky_export(trace, selection, output->path, output->format, left,
				    ky_cli_on_stage, "writing", message);
	ky_cli_progress_end();
	if (error) {
		if (error != -EINTR)
			ky_cli_error("%s", message);
		return error == -EINVAL ? KY_EXIT_USAGE : KY_EXIT_FAILED;
	}
	ky_export_left_text(left, text, sizeof(text));
	if (!output->quiet && text[0])
		ky_cli_error("%s: the format cannot carry %s", output->path, text);
	return KY_EXIT_DONE;
}

int ky_output_write(const struct ky_output_target *output, const struct ky_trace *trace,
		    const struct ky_export_selection *selection, struct ky_export_left *left)
{
	struct kept kept = {.place.dir = -1};
	if (output->default_name && !keep(&kept, output->path))
		return KY_EXIT_FAILED;
	const int code = write_trace(output, trace, selection, left);
	return settle(&kept, output->path, code == KY_EXIT_DONE) ? code : KY_EXIT_FAILED;
}

int ky_output_convert(const struct ky_output_target *output, const char *captured)
{
	struct ky_export_left left = {0};
	struct ky_trace *trace = ky_cli_load(captured, NULL, true);
	const int code = trace ? ky_output_write(output, trace, NULL, &left) : KY_EXIT_FAILED;
	ky_trace_close(&trace);
	return code;
}

int ky_output_write_by(const struct ky_output_target *output, ky_export_fn write, void *context)
{
	char message[KY_MESSAGE_BYTES];
	struct kept kept = {.place.dir = -1};
	if (output->default_name && !keep(&kept, output->path))
		return KY_EXIT_FAILED;
	const int error = ky_export_by(output->path, output->format, write, context, message);
	ky_cli_progress_end();
	if (error && error != -EINTR)
		ky_cli_error("%s", message);
	return settle(&kept, output->path, !error) && !error ? KY_EXIT_DONE : KY_EXIT_FAILED;
}

/* ---- names ---- */

/* Return where the known suffixes begin. */
static size_t stem_bytes(const char *path)
{
	static const char *const suffixes[] = {
		".gz",  ".zst",  ".speedscope.json", ".json", ".pftrace",
		".fxt", ".kymo", ".perfetto-trace",  ".pb",   ".folded"};
	size_t bytes = strlen(path);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		const size_t n = strlen(suffixes[i]);
		if (bytes > n && memcmp(path + bytes - n, suffixes[i], n) == 0) {
			bytes -= n;
			if (i > 1)
				break;
		}
	}
	return bytes;
}

char *ky_output_name(const char *path, const char *middle, const char *suffix)
{
	const size_t stem = stem_bytes(path);
	const char *end = suffix ? suffix : path + stem;
	char *name = NULL;
	if (asprintf(&name, "%.*s.%s%s", (int)stem, path, middle, end) < 0)
		return NULL;
	return name;
}

const char *ky_output_suffix(const char *format)
{
	for (uint32_t i = 0; format && ky_exporters[i]; i++)
		if (strcmp(ky_exporters[i]->format->name, format) == 0)
			return ky_exporters[i]->format->suffix;
	return NULL;
}

const struct ky_choice *ky_output_formats(void)
{
	static struct ky_choice formats[16];
	for (unsigned i = 0; ky_exporters[i] && i + 1 < sizeof(formats) / sizeof(formats[0]); i++)
		formats[i].name = ky_exporters[i]->format->name;
	return formats;
}

int ky_output_unknown(const char *path, const char *format)
{
	char list[128];
	ky_options_list(ky_output_formats(), list, sizeof(list));
	if (format)
		return ky_cli_usage("--format %s cannot be written: use %s", format, list);
	return ky_cli_usage("%s: unknown suffix; use that of %s, or --format", path, list);
}

void ky_output_json_left(struct ky_json_out *json, const struct ky_export_left *left)
{
	ky_json_out_begin(json, "left_out", '{');
	ky_json_out_uint(json, "slices", left->slices);
	ky_json_out_uint(json, "instants", left->instants);
	ky_json_out_uint(json, "counters", left->counters);
	ky_json_out_uint(json, "flows", left->flows);
	ky_json_out_uint(json, "args", left->args);
	ky_json_out_uint(json, "sched", left->sched);
	ky_json_out_uint(json, "samples", left->samples);
	ky_json_out_uint(json, "logs", left->logs);
	ky_json_out_uint(json, "kernel_events", left->raw_events);
	ky_json_out_uint(json, "tracks", left->tracks);
	ky_json_out_uint(json, "ends", left->ends);
	ky_json_out_uint(json, "frames", left->frames);
	ky_json_out_uint(json, "metadata", left->metadata);
	ky_json_out_uint(json, "clock_snapshots", left->snapshots);
	ky_json_out_uint(json, "cut_texts", left->cut);
	ky_json_out_end(json, '}');
}
