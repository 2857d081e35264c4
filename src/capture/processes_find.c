/* SPDX-License-Identifier: MIT */
/* processes_find.c: what `-p` means: a number, or the name of processes. */
#include "base/file.h"
#include "capture/processes.h"

#include "base/fail.h"
#include "base/nearest.h"
#include "capture/drum_map.h"
#include "process/drum_find.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTED_MAX 5u

/* The name by kymo_process_name(). */
struct own_name {
	char text[64];
};

/* Return the program's file without its folders; "" when it cannot be read. */
static void program_of(pid_t pid, char *name, size_t room)
{
	char link[PATH_MAX];
	(void)ky_proc_exe(pid, link, sizeof(link));
	char *const deleted = strstr(link, " (deleted)");
	if (deleted)
		*deleted = '\0';
	snprintf(name, room, "%.*s", (int)room - 1, ky_file_name(link));
}

static bool is_called(pid_t pid, const char *text)
{
	struct ky_proc_stat stat;
	char program[NAME_MAX + 1];
	if (ky_proc_stat(pid, 0, &stat) != 0 || stat.state == 'Z')
		return false;
	if (strcmp(stat.name, text) == 0)
		return true;
	program_of(pid, program, sizeof(program));
	return program[0] && strcmp(program, text) == 0;
}

/* Copy the name that the process gave itself, if it did, and stop at its first drum. */
static int take_name(void *context, int fd)
{
	struct own_name *const own = context;
	struct ky_drum_map map;
	struct ky_drum_view view;
	char message[KY_MESSAGE_BYTES];
	const char *what;
	if (ky_drum_map_open(&map, fd, "", message) != 0)
		return 1;
	if (ky_drum_view_open(&view, map.base, map.bytes, &what) == 0) {
		const struct ky_text name = ky_drum_view_string(
			&view, __atomic_load_n(&view.live->process_name, __ATOMIC_ACQUIRE));
		snprintf(own->text, sizeof(own->text), "%.*s", (int)name.bytes, name.data);
	}
	ky_drum_map_close(&map);
	return 1;
}

/* Find what 'kymo list' calls the process; false: it has no drum. */
static bool name_of(pid_t pid, struct own_name *own)
{
	struct ky_proc_stat stat;
	own->text[0] = '\0';
	if (ky_drum_find(pid, take_name, own) <= 0)
		return false;
	if (!own->text[0] && ky_proc_stat(pid, 0, &stat) == 0)
		snprintf(own->text, sizeof(own->text), "%s", stat.name);
	return own->text[0] != '\0';
}

static bool calls_itself(pid_t pid, const char *text)
{
	struct own_name own;
	return name_of(pid, &own) && strcmp(own.text, text) == 0;
}

/* "; with trace points: demo (41), server (57)" */
static void list_drums(const struct ky_pids *all, char *text, size_t room)
{
	size_t used = 0;
	uint32_t listed = 0;
	text[0] = '\0';
	for (uint32_t i = 0; i < all->count && used < room; i++) {
		struct own_name own;
		if (!name_of(all->at[i], &own))
			continue;
		if (listed == LISTED_MAX) {
			snprintf(text + used, room - used, " ...");
			return;
		}
		used += (size_t)snprintf(text + used, room - used, "%s%s (%d)",
					 listed++ ? ", " : "; with trace points: ", own.text,
					 (int)all->at[i]);
	}
	if (listed == 0)
		snprintf(text, room, "; no process that you may inspect has trace points");
}

/* Takes text as a number. 0: it is something else; -ESRCH: no process has it. */
static int find_number(const char *text, struct ky_pids *found, char *message)
{
	char *end;
	struct ky_proc_stat stat;
	errno = 0;
	const long number = strtol(text, &end, 10);
	if (end == text || *end)
		return 0;
	if (errno || number <= 0 || number > INT_MAX || ky_proc_stat((pid_t)number, 0, &stat) != 0)
		return ky_fail(message, -ESRCH,
			       "no process with PID %.20s; 'kymo list' "
			       "shows those that trace",
			       text);
	if (stat.state == 'Z')
		return ky_fail(message, -ECHILD,
			       "process %.20s (%s) is a zombie: it has ended, and its "
			       "parent (%d) has not asked for its exit code",
			       text, stat.name, (int)stat.parent);
	return ky_pids_add(found, (pid_t)number);
}

/* Note names of processes like the one that no process has. */
static void note_names(const struct ky_pids *all, const char *text, struct ky_nearest *nearest)
{
	struct ky_proc_stat stat;
	for (uint32_t i = 0; i < all->count; i++)
		if (all->at[i] != getpid() && ky_proc_stat(all->at[i], 0, &stat) == 0 &&
		    stat.state != 'Z')
			ky_nearest_note(nearest, text, stat.name);
}

static int find_name(const char *text, struct ky_pids *found, char *message)
{
	struct ky_pids all = {0};
	char drums[256], names[KY_NEAREST_TEXT_BYTES];
	struct ky_nearest nearest = {0};
	int error = ky_proc_all(&all);
	for (uint32_t i = 0; error == 0 && i < all.count; i++)
		if (all.at[i] != getpid() && is_called(all.at[i], text))
			error = ky_pids_add(found, all.at[i]);
	const bool by_itself = found->count == 0;
	for (uint32_t i = 0; error == 0 && by_itself && i < all.count; i++)
		if (all.at[i] != getpid() && calls_itself(all.at[i], text))
			error = ky_pids_add(found, all.at[i]);
	if (error == 0 && found->count == 0) {
		list_drums(&all, drums, sizeof(drums));
		note_names(&all, text, &nearest);
		ky_nearest_text(&nearest, names, sizeof(names));
		error = ky_fail(message, -ESRCH, "no process is called '%.64s'%s%s%s", text,
				names[0] ? "; similar: " : "", names, drums);
	} else if (error) {
		ky_fail(message, error, "cannot read /proc: %s", strerror(-error));
	}
	ky_pids_free(&all);
	return error;
}

int ky_processes_find(const char *text, struct ky_pids *pids, char message[KY_MESSAGE_BYTES])
{
	struct ky_pids found = {0};
	int error = find_number(text, &found, message);
	if (error == 0 && found.count == 0)
		error = find_name(text, &found, message);
	for (uint32_t i = 0; error == 0 && i < found.count; i++)
		error = ky_pids_add(pids, found.at[i]);
	if (error == -ENOMEM)
		ky_fail(message, error, "not enough memory to list the processes");
	ky_pids_free(&found);
	return error;
}
