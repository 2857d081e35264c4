/* SPDX-License-Identifier: MIT */
/*
 * probe_places.c: where the triggers' functions and lines are in a file, and the two engines that set probes there. A file
 * is searched once, however many processes have it mapped.
 *
 * In a program whose functions are patched (functrace.h), the first instructions of a function run
 * elsewhere: a line among them counts as the function's entry, where the jump is.
 *
 * Breakpoints are debug registers. There is an event for each thread and CPU (an event of a thread
 * on all CPUs cannot have a ring and be inherited), which new threads and children inherit. Threads
 * that are made while the events are opened are found by reading the list of threads again until
 * nothing in it is new. Uprobes are events of a place in a file, one for each CPU.
 */
#include "capture/probe_state.h"

#include "base/array.h"
#include "base/fail.h"
#include "process/proc.h"
#include "process/symbol_table.h"

#include <dirent.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * ---- lines ----
 *
 * The line table that the compiler left (DWARF) says where the code of a line is. One line may be in many places: inlined
 * and instantiated functions, and what the optimiser spread. All addresses at which a statement of the line begins are
 * found, but of rows that follow each other only the first. Units that do not name the file are skipped.
 */

#define LINE_PLACES_MAX 64u

struct line_places {
	uint64_t offsets[LINE_PLACES_MAX]; /* in the file */
	uint32_t count;
	/* Without any: the nearest lines of that file that have code; 0: none. */
	uint32_t before, after;
	bool has_lines; /* the program has a line table */
	bool has_file;  /* and the file is in it */
};

static bool is_file(const char *path, const char *wanted)
{
	if (!path)
		return false;
	const size_t path_bytes = strlen(path), wanted_bytes = strlen(wanted);
	if (path_bytes < wanted_bytes || strcmp(path + path_bytes - wanted_bytes, wanted) != 0)
		return false;
	return path_bytes == wanted_bytes || wanted[0] == '/' ||
	       path[path_bytes - wanted_bytes - 1] == '/';
}

static bool names_file(Dwarf_Die *unit, const char *wanted)
{
	Dwarf_Files *files;
	size_t count;
	if (dwarf_getsrcfiles(unit, &files, &count) != 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (is_file(dwarf_filesrc(files, i, NULL, NULL), wanted))
			return true;
	return false;
}

static void add_line_place(struct line_places *places, const struct ky_program_file *file,
			   uint64_t address)
{
	uint64_t offset;
	if (places->count == LINE_PLACES_MAX || !ky_program_file_offset(file, address, &offset))
		return;
	for (uint32_t i = 0; i < places->count; i++)
		if (places->offsets[i] == offset)
			return;
	places->offsets[places->count++] = offset;
}

static void note_nearest(struct line_places *places, uint32_t has, uint32_t wanted)
{
	if (has < wanted && has > places->before)
		places->before = has;
	if (has > wanted && (!places->after || has < places->after))
		places->after = has;
}

static void look_into_unit(struct line_places *places, const struct ky_program_file *file,
			   Dwarf_Die *unit, const char *wanted, uint32_t line)
{
	Dwarf_Lines *lines;
	size_t count;
	bool on_line = false;
	if (dwarf_getsrclines(unit, &lines, &count) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		Dwarf_Line *row = dwarf_onesrcline(lines, i);
		Dwarf_Addr address;
		int number;
		bool statement, ends;
		if (!row || dwarf_lineno(row, &number) != 0 || dwarf_lineaddr(row, &address) != 0 ||
		    dwarf_linebeginstatement(row, &statement) != 0 ||
		    dwarf_lineendsequence(row, &ends) != 0)
			continue;
		const bool here =
			!ends && number > 0 && is_file(dwarf_linesrc(row, NULL, NULL), wanted);
		if (here && statement && number > 0)
			note_nearest(places, (uint32_t)number, line);
		if (here && statement && (uint32_t)number == line && !on_line)
			add_line_place(places, file, address);
		on_line = here && (uint32_t)number == line && (statement || on_line);
	}
}

static void find_places(struct line_places *places, const struct ky_program_file *file,
			const char *wanted, uint32_t line)
{
	Elf *elf = ky_program_file_lines(file);
	Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	if (!dwarf)
		return;
	places->has_lines = true;
	while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
		if (!names_file(&die, wanted))
			continue;
		places->has_file = true;
		look_into_unit(places, file, &die, wanted, line);
	}
	dwarf_end(dwarf);
}

/* ---- files ---- */

/* The most bytes of a function that are moved, except for a few that begin with very long instructions. */
#define MOVED_BYTES 16u

struct search {
	struct ky_probes *probes;
	struct ky_probe_file *file;
};

static int add_place(struct ky_probe_file *file, uint32_t trigger, uint64_t offset)
{
	uint32_t of_trigger = 0;
	for (uint32_t i = 0; i < file->count; i++) {
		if (file->places[i].trigger != trigger)
			continue;
		if (file->places[i].offset == offset || ++of_trigger == KY_PROBE_PLACES_MAX)
			return 0;
	}
	return KY_ARRAY_ADD(file->places, file->count, file->room,
			    (struct ky_probe_place){trigger, offset})
		       ? 0
		       : -ENOMEM;
}

static int match_function(void *context, const struct ky_program_function *function)
{
	const struct search *search = context;
	const struct ky_probes_options *options = &search->probes->options;
	char *readable = ky_demangle(function->linked);
	int error = 0;
	for (uint32_t i = 0; !error && i < options->count; i++) {
		const char *wanted = options->triggers[i].symbol;
		if (options->triggers[i].kind != KY_TRIGGER_SYMBOL)
			continue;
		if (ky_symbol_match(wanted, function->linked, readable))
			error = add_place(search->file, i, function->offset);
		else
			ky_nearest_note(&search->probes->alike[i], wanted,
					readable ? readable : function->linked);
	}
	free(readable);
	return error;
}

static int find_line(struct search *search, const struct ky_program_file *program, uint32_t trigger)
{
	const struct ky_trigger *wanted = &search->probes->options.triggers[trigger];
	struct ky_probe_line *line = &search->probes->lines[trigger];
	struct line_places places = {.before = line->before, .after = line->after};
	int error = 0;
	find_places(&places, program, wanted->file, wanted->line);
	line->before = places.before;
	line->after = places.after;
	line->has_lines |= places.has_lines;
	line->has_file |= places.has_file;
	for (uint32_t i = 0; !error && i < places.count; i++)
		error = add_place(search->file, trigger, places.offsets[i]);
	return error;
}

static int move_to_entry(void *context, const struct ky_program_function *function)
{
	const struct search *search = context;
	for (uint32_t i = 0; i < search->file->count; i++) {
		struct ky_probe_place *place = &search->file->places[i];
		if (place->offset > function->offset &&
		    place->offset - function->offset < MOVED_BYTES)
			place->offset = function->offset;
	}
	return 0;
}

static int look_through(struct ky_probes *probes, struct ky_probe_file *file, int fd)
{
	struct search search = {probes, file};
	struct ky_program_file *program;
	int error = ky_program_file_open(&program, fd);
	if (error)
		return error == -ENOEXEC ? 0 : error;
	error = ky_program_file_functions(program, match_function, &search);
	for (uint32_t i = 0; !error && i < probes->options.count; i++)
		if (probes->options.triggers[i].kind == KY_TRIGGER_LINE)
			error = find_line(&search, program, i);
	if (!error && probes->options.patched)
		error = ky_program_file_functions(program, move_to_entry, &search);
	ky_program_file_close(&program);
	return error;
}

static int find_known(const struct ky_probes *probes, uint64_t device, uint64_t inode)
{
	for (uint32_t i = 0; i < probes->files_count; i++)
		if (probes->files[i].device == device && probes->files[i].inode == inode)
			return (int)i;
	return -1;
}

int ky_probe_places_find(struct ky_probes *probes, int fd)
{
	struct stat status;
	if (fstat(fd, &status) != 0)
		return -errno;
	const int known = find_known(probes, status.st_dev, status.st_ino);
	if (known >= 0)
		return known;
	struct ky_probe_file file = {.device = status.st_dev, .inode = status.st_ino};
	int error = look_through(probes, &file, fd);
	if (!error && !KY_ARRAY_ADD(probes->files, probes->files_count, probes->files_room, file))
		error = -ENOMEM;
	if (!error)
		return (int)probes->files_count - 1;
	KY_ARRAY_FREE(file.places, file.room);
	return error;
}

/* ---- engines ---- */

#define SCANS_MAX 100u

struct target {
	pid_t pid;
	struct ky_probe_event event;
	struct ky_pair_map done; /* threads */
	bool first;              /* of its threads */
};

static int open_on(struct ky_probes *probes, const struct target *target, pid_t tid,
		   const struct ky_perf_cpu *cpu, bool remove_on_exec)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
				       .bp_type = HW_BREAKPOINT_X,
				       .bp_addr = target->event.address,
				       .bp_len = sizeof(long),
				       .exclude_kernel = 1,
				       .exclude_hv = 1,
				       .inherit = 1,
				       .task = 1,
				       .remove_on_exec = remove_on_exec};
	return ky_probe_rings_event(probes, &attr, tid, cpu, &target->event);
}

static int open_thread(struct ky_probes *probes, const struct target *target, pid_t tid)
{
	for (uint32_t c = 0; c < probes->rings.cpus_count; c++) {
		const struct ky_perf_cpu *const cpu = &probes->rings.cpus[c];
		int error = open_on(probes, target, tid, cpu, true);
		if (error == -EINVAL) /* before Linux 5.13 */
			error = open_on(probes, target, tid, cpu, false);
		if (error)
			return error;
	}
	return 0;
}

/* Look at the list of threads once more. Return the number of new ones, or -errno. */
static int scan(struct ky_probes *probes, struct target *target)
{
	int found = 0, error = 0;
	DIR *const tasks = ky_proc_tasks(target->pid);
	if (!tasks)
		return -errno;
	for (pid_t tid; !error && (tid = ky_proc_next(tasks)) > 0;) {
		bool made = false;
		if (!ky_pair_map_add(&target->done, (uint64_t)tid, 0, &made))
			error = -ENOMEM;
		if (!made)
			continue;
		found++;
		error = open_thread(probes, target, tid);
		/* The thread ended, or it inherited the events, so that all its registers are in use. */
		if (error == -ESRCH || (error == -ENOSPC && !target->first))
			error = 0;
		else
			target->first = false;
	}
	ky_proc_close(tasks);
	return error ? error : found;
}

static int fail(const struct ky_probes *probes, const struct target *target, int error,
		char message[KY_MESSAGE_BYTES])
{
	const char *text = probes->options.triggers[target->event.trigger].text;
	const int pid = (int)target->pid;
	if (error == -ESRCH)
		return ky_fail(message, error, "--trigger %s: process %d has ended", text, pid);
	if (error == -ENOSPC)
		return ky_fail(
			message, error,
			"--trigger %s: no debug register of process %d is free; a CPU has four, and a debugger may use them: use fewer places, or uprobes as root",
			text, pid);
	if (error == -EMFILE || error == -ENFILE)
		return ky_fail(
			message, error,
			"--trigger %s: too many threads for the limit of open files: raise it (ulimit -n), or use uprobes as root",
			text);
	if (error == -EACCES || error == -EPERM)
		return ky_fail(
			message, error,
			"--trigger %s: a breakpoint in process %d: %s; run as root, or trace your own process with kernel.perf_event_paranoid at most 2 (it is %d)",
			text, pid, strerror(-error),
			ky_proc_setting("/proc/sys/kernel/perf_event_paranoid"));
	return ky_fail(message, error, "--trigger %s: a breakpoint in process %d: %s", text, pid,
		       strerror(-error));
}

int ky_probe_breakpoint_set(struct ky_probes *probes, pid_t pid, const struct ky_probe_event *event,
			    char message[KY_MESSAGE_BYTES])
{
	struct target target = {.pid = pid, .event = *event, .first = true};
	int found = scan(probes, &target);
	for (uint32_t i = 1; found > 0 && i < SCANS_MAX; i++)
		found = scan(probes, &target);
	ky_pair_map_free(&target.done);
	return found < 0 ? fail(probes, &target, found, message) : 0;
}

/* ---- uprobes ---- */

static int read_type(void)
{
	int type = -1;
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	if (!file)
		return -ENODEV;
	if (fscanf(file, "%d", &type) != 1 || type < 0)
		type = -ENODEV;
	fclose(file);
	return type;
}

/* An event without a file fails, but a missing permission is reported first. */
int ky_probe_uprobe_type(void)
{
	const int type = read_type();
	if (type < 0)
		return type;
	struct perf_event_attr attr = {
		.type = (uint32_t)type, .size = sizeof(attr), .sample_period = 1, .disabled = 1};
	const long fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		close((int)fd);
	else if (errno == EACCES || errno == EPERM || errno == ENOSYS)
		return -errno;
	return type;
}

static int uprobe_failed(const struct ky_probes *probes, uint32_t trigger, int error,
			 char message[KY_MESSAGE_BYTES])
{
	return ky_fail(
		message, error,
		"--trigger %s: cannot set a uprobe: %s; try --probe breakpoint: no root, up to four places",
		probes->options.triggers[trigger].text, strerror(-error));
}

int ky_probe_uprobe_set(struct ky_probes *probes, struct ky_probe_file *file, int fd,
			char message[KY_MESSAGE_BYTES])
{
	char path[64];
	if (file->set)
		return 0;
	file->set = true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (uint32_t i = 0; i < file->count; i++) {
		const struct ky_probe_place *place = &file->places[i];
		for (uint32_t c = 0; c < probes->rings.cpus_count; c++) {
			struct perf_event_attr attr = {.type = (uint32_t)probes->uprobe_type,
						       .config1 = (uintptr_t)path,
						       .config2 = place->offset,
						       .task = probes->events_count <
							       probes->rings.cpus_count};
			const struct ky_probe_event event = {.trigger = place->trigger};
			const int error = ky_probe_rings_event(probes, &attr, -1,
							       &probes->rings.cpus[c], &event);
			if (error)
				return uprobe_failed(probes, place->trigger, error, message);
		}
	}
	return 0;
}
