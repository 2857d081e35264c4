/* SPDX-License-Identifier: MIT */
/*
 * probe.c: see probe.h. Choose the engine, and for each process the files, places and events. The
 * message reports what could not be set; what was set before stays.
 */
#include "capture/probe.h"

#include "base/array.h"
#include "base/fail.h"
#include "capture/probe_state.h"
#include "process/proc.h"
#include "process/program_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- open and close ---- */

static bool is_probe(const struct ky_trigger *trigger)
{
	return ky_trigger_needs(trigger, 1, KY_TRIGGER_BY_PROBES);
}

static int choose_engine(struct ky_probes *probes)
{
	probes->engine = probes->options.engine;
	if (probes->engine == KY_PROBE_BREAKPOINT)
		return 0;
	probes->uprobe_type = ky_probe_uprobe_type();
	if (probes->uprobe_type >= 0) {
		probes->engine = KY_PROBE_UPROBE;
		return 0;
	}
	if (probes->engine == KY_PROBE_UPROBE)
		return probes->uprobe_type;
	probes->engine = KY_PROBE_BREAKPOINT;
	snprintf(probes->why, sizeof(probes->why),
		 "probes are hardware breakpoints, at most four places: uprobes are unavailable "
		 "(%s)%s",
		 strerror(-probes->uprobe_type),
		 probes->uprobe_type == -ENODEV ? "; the kernel has none" : "; they need root");
	return 0;
}

int ky_probes_open(struct ky_probes **out, const struct ky_probes_options *options)
{
	struct ky_probes *probes = calloc(1, sizeof(*probes));
	*out = NULL;
	if (!probes)
		return -ENOMEM;
	probes->options = *options;
	probes->rings.poll_fd = -1;
	probes->lines = calloc(options->count ? options->count : 1, sizeof(*probes->lines));
	probes->alike = calloc(options->count ? options->count : 1, sizeof(*probes->alike));
	probes->placed = calloc(options->count ? options->count : 1, sizeof(*probes->placed));
	const bool fits = probes->lines && probes->alike && probes->placed;
	int error = fits ? choose_engine(probes) : -ENOMEM;
	if (!error)
		error = ky_probe_rings_open(probes);
	if (error) {
		ky_probes_close(&probes);
		return error;
	}
	*out = probes;
	return 0;
}

void ky_probes_close(struct ky_probes **out)
{
	struct ky_probes *probes = *out;
	*out = NULL;
	if (!probes)
		return;
	ky_probe_rings_close(probes);
	for (uint32_t i = 0; i < probes->files_count; i++)
		KY_ARRAY_FREE(probes->files[i].places, probes->files[i].room);
	KY_ARRAY_FREE(probes->files, probes->files_room);
	free(probes->lines);
	free(probes->alike);
	free(probes->placed);
	free(probes);
}

/* ---- messages ---- */

static void describe_symbol(const struct ky_nearest *alike, pid_t pid, char *text, size_t room)
{
	char names[256];
	ky_nearest_text(alike, names, sizeof(names));
	snprintf(text, room, "no function of that name in process %d or its libraries; %s%s",
		 (int)pid, *names ? "similar: " : "symbol:? lists all", names);
}

static void describe_line(const struct ky_probe_line *line, const struct ky_trigger *trigger,
			  pid_t pid, char *text, size_t room)
{
	const uint32_t nearest =
		!line->after ? line->before
		: line->before && trigger->line - line->before < line->after - trigger->line
			? line->before
			: line->after;
	if (!line->has_lines)
		snprintf(text, room,
			 "process %d has no line numbers; build it with -g, or install its debug "
			 "symbols",
			 (int)pid);
	else if (!line->has_file || !nearest)
		snprintf(text, room,
			 "no code of process %d is from such a file: use the end of its path",
			 (int)pid);
	else
		snprintf(text, room, "that line has no code; the nearest that has is %u",
			 (unsigned)nearest);
}

static int fail_place(const struct ky_probes *probes, uint32_t index, pid_t pid,
		      char message[KY_MESSAGE_BYTES])
{
	char text[384];
	const struct ky_trigger *trigger = &probes->options.triggers[index];
	if (trigger->kind == KY_TRIGGER_SYMBOL)
		describe_symbol(&probes->alike[index], pid, text, sizeof(text));
	else
		describe_line(&probes->lines[index], trigger, pid, text, sizeof(text));
	return ky_fail(message, -ENOENT, "--trigger %s: %s", trigger->text, text);
}

static int fail_nowhere(struct ky_probes *probes, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	for (uint32_t i = 0; i < probes->options.count; i++)
		if (is_probe(&probes->options.triggers[i]))
			return fail_place(probes, i, pid, message);
	return ky_fail(message, -ENOENT, "no trigger needs a probe");
}

bool ky_probes_missing(const struct ky_probes *probes, uint32_t *at, pid_t pid,
		       char message[KY_MESSAGE_BYTES])
{
	while (*at < probes->options.count) {
		const uint32_t i = (*at)++;
		if (!is_probe(&probes->options.triggers[i]) || probes->placed[i])
			continue;
		fail_place(probes, i, pid, message);
		return true;
	}
	return false;
}

/* ---- processes ---- */

/* Return an id of where things lie in a process: it changes with each exec, not with a fork. 0: unknown. */
static uint64_t image_of(pid_t pid)
{
	struct ky_proc_stat stat;
	return ky_proc_stat(pid, 0, &stat) == 0 ? stat.code_start ^ stat.stack_start << 1 : 0;
}

static struct ky_probe_process *join(struct ky_probes *probes, pid_t pid)
{
	struct ky_probe_process *process = ky_probe_rings_process(probes, pid);
	const uint64_t image = image_of(pid);
	/* Breakpoints end with the program that they were set in. */
	if (process && image && process->image != image) {
		const uint64_t before = process->image;
		*process = (struct ky_probe_process){.image = image};
		ky_probe_rings_image_left(probes, before);
	}
	return process;
}

struct addition {
	struct ky_probes *probes;
	const struct ky_program_map *map;
	uint32_t *places; /* by trigger: how many */
	uint32_t left_out;
	char *message;
};

/* Return the index of a mapping's file, or -errno. Uprobes are set in it at once. */
static int take_file(struct addition *add, const struct ky_proc_mapping *mapping)
{
	struct ky_probes *probes = add->probes;
	bool made = false;
	const uint64_t *known = ky_pair_map_find(&probes->mapped, mapping->device, mapping->inode);
	if (known)
		return (int)*known - 1;
	const int fd = ky_proc_maps_open_file(add->map->pid, mapping);
	if (fd < 0)
		return fd;
	const int index = ky_probe_places_find(probes, fd);
	int error = index < 0 ? index : 0;
	if (!error && probes->engine == KY_PROBE_UPROBE)
		error = ky_probe_uprobe_set(probes, &probes->files[index], fd, add->message);
	close(fd);
	if (error)
		return error;
	uint64_t *at = ky_pair_map_add(&probes->mapped, mapping->device, mapping->inode, &made);
	if (!at)
		return -ENOMEM;
	*at = 1 + (uint64_t)index;
	return index;
}

static bool has_address(const struct ky_probe_process *process, uint64_t address)
{
	for (uint32_t i = 0; i < process->count; i++)
		if (process->addresses[i] == address)
			return true;
	return false;
}

/*
 * Set a breakpoint at one place. Return 0 also when it was left out because no register is left after others had one.
 */
static int set_breakpoint(struct addition *add, const struct ky_proc_mapping *mapping,
			  const struct ky_probe_place *place)
{
	struct ky_probe_process *process = ky_probe_rings_process(add->probes, add->map->pid);
	const uint64_t address =
		ky_program_map_address(add->map, mapping->device, mapping->inode, place->offset);
	if (!process)
		return -ENOMEM;
	if (!address || has_address(process, address)) {
		add->places[place->trigger] += address != 0;
		return 0;
	}
	const struct ky_probe_event event = {
		.trigger = place->trigger, .address = address, .image = process->image};
	const int error =
		process->count == KY_PROBE_ADDRESSES_MAX
			? -ENOSPC
			: ky_probe_breakpoint_set(add->probes, add->map->pid, &event, add->message);
	if (error == -ENOSPC && process->count) {
		add->left_out++;
		return 0;
	}
	if (error)
		return error;
	process->addresses[process->count++] = address;
	add->places[place->trigger]++;
	return 0;
}

static int add_mapping(struct addition *add, const struct ky_proc_mapping *mapping)
{
	const int index = take_file(add, mapping);
	if (index < 0) /* an unreadable file has no places, but a failure must be reported */
		return add->message[0] || index == -ENOMEM ? index : 0;
	const struct ky_probe_file *file = &add->probes->files[index];
	int error = 0;
	for (uint32_t i = 0; !error && i < file->count; i++) {
		if (add->probes->engine == KY_PROBE_BREAKPOINT)
			error = set_breakpoint(add, mapping, &file->places[i]);
		else
			add->places[file->places[i].trigger]++;
	}
	return error;
}

/* Return how many triggers have a place; put what is worth a note into the message. */
static int sum_up(const struct addition *add)
{
	const struct ky_probes_options *options = &add->probes->options;
	int placed = 0;
	add->message[0] = '\0';
	for (uint32_t i = 0; i < options->count; i++) {
		placed += add->places[i] != 0;
		add->probes->placed[i] |= add->places[i] != 0;
		if (add->places[i] > 1 && !add->message[0])
			ky_fail(add->message, 0, "--trigger %s: %u places, all of them fire",
				options->triggers[i].text, (unsigned)add->places[i]);
	}
	if (add->left_out)
		ky_fail(add->message, 0,
			"triggers: %u places have no breakpoint: the CPU has no more debug registers; as root, uprobes have no limit",
			(unsigned)add->left_out);
	return placed;
}

int ky_probes_add(struct ky_probes *probes, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	struct ky_program_map map;
	message[0] = '\0';
	int error = ky_program_map_read(&map, pid);
	if (error)
		return ky_fail(
			message, error,
			"triggers in process %d: /proc/%d/maps: %s; it must be running, and yours unless you are root",
			(int)pid, (int)pid, strerror(-error));
	ky_probe_rings_read(probes); /* learn of forks first */
	struct addition add = {.probes = probes, .map = &map, .message = message};
	add.places = calloc(probes->options.count + 1, sizeof(*add.places));
	if (!add.places || !join(probes, pid))
		error = -ENOMEM;
	for (uint32_t i = 0; !error && i < map.count; i++)
		if (!ky_program_map_is_again(&map, i))
			error = add_mapping(&add, &map.mappings[i]);
	if (error && !message[0])
		ky_fail(message, error, "triggers in process %d: %s", (int)pid, strerror(-error));
	const int placed = error ? error : sum_up(&add);
	free(add.places);
	ky_program_map_free(&map);
	return placed == 0 ? fail_nowhere(probes, pid, message) : placed;
}

/* ---- programs that are to be started ---- */

struct preparation {
	struct ky_probes *probes;
	bool *placed; /* by trigger */
	int error;
	char *message;
};

static void prepare_file(void *context, const char *path)
{
	struct preparation *prepare = context;
	struct ky_probes *probes = prepare->probes;
	if (prepare->error)
		return;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const int index = fd >= 0 ? ky_probe_places_find(probes, fd) : -errno;
	prepare->error = index < 0 ? index : 0;
	if (!prepare->error && probes->engine == KY_PROBE_UPROBE)
		prepare->error =
			ky_probe_uprobe_set(probes, &probes->files[index], fd, prepare->message);
	if (fd >= 0)
		close(fd);
	for (uint32_t i = 0; !prepare->error && i < probes->files[index].count; i++) {
		const uint32_t trigger = probes->files[index].places[i].trigger;
		prepare->placed[trigger] = probes->placed[trigger] = true;
	}
	if (prepare->error && !prepare->message[0])
		ky_fail(prepare->message, prepare->error, "triggers in %s: %s", path,
			strerror(-prepare->error));
}

int ky_probes_add_file(struct ky_probes *probes, const char *path, char message[KY_MESSAGE_BYTES])
{
	struct preparation prepare = {.probes = probes, .message = message};
	message[0] = '\0';
	prepare.placed = calloc(probes->options.count + 1, sizeof(*prepare.placed));
	if (!prepare.placed)
		return ky_fail(message, -ENOMEM, "triggers in %s: out of memory", path);
	/* The program comes last: until then the loader, which is a child too, has no hits. */
	ky_program_libraries(path, prepare_file, &prepare);
	prepare_file(&prepare, path);
	if (!prepare.error && !ky_probe_rings_process(probes, getpid()))
		prepare.error = -ENOMEM;
	int placed = 0;
	for (uint32_t i = 0; i < probes->options.count; i++)
		placed += prepare.placed[i];
	free(prepare.placed);
	return prepare.error ? prepare.error : placed;
}

/* ---- hits ---- */

int ky_probes_fd(const struct ky_probes *probes)
{
	return probes->rings.poll_fd;
}

void ky_probes_round(struct ky_probes *probes)
{
	ky_probe_rings_read(probes);
	if (!ky_probe_rings_fire(probes))
		return;
	ky_probe_rings_read(probes);
	ky_probe_rings_fire(probes);
}

void ky_probes_ended(struct ky_probes *probes, pid_t pid)
{
	ky_probes_round(probes);
	ky_probe_rings_remove(probes, pid);
	ky_probe_rings_sweep(probes);
}

const char *ky_probes_why(const struct ky_probes *probes)
{
	return probes->why;
}

uint64_t ky_probes_lost(const struct ky_probes *probes)
{
	return probes->lost;
}
