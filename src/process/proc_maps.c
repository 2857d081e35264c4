/* SPDX-License-Identifier: MIT */
/* proc_maps.c: see proc_maps.h. */
#include "process/proc_maps.h"

#include "process/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ky_proc_maps_open(struct ky_proc_maps *maps, pid_t pid)
{
	char path[64];
	*maps = (struct ky_proc_maps){0};
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps->file = fopen(path, "re");
	return maps->file ? 0 : errno == ENOENT ? -ESRCH : -errno;
}

bool ky_proc_maps_next(struct ky_proc_maps *maps, struct ky_proc_mapping *mapping)
{
	while (maps->file && getline(&maps->line, &maps->room, maps->file) > 0)
		if (ky_proc_maps_parse(maps->line, mapping))
			return true;
	return false;
}

void ky_proc_maps_close(struct ky_proc_maps *maps)
{
	free(maps->line);
	if (maps->file)
		fclose(maps->file);
	*maps = (struct ky_proc_maps){0};
}

/* Reads a number and the character that must end it. */
static bool take_number(char **at, int base, char end, uint64_t *number)
{
	char *behind;
	*number = strtoull(*at, &behind, base);
	if (behind == *at || *behind != end)
		return false;
	*at = behind + 1;
	return true;
}

/* "55d0c0000000-55d0c0100000 r-xp 00001000 fd:01 1234      /usr/bin/x" */
bool ky_proc_maps_parse(char *line, struct ky_proc_mapping *mapping)
{
	uint64_t device_major, device_minor;
	char *at = line;
	line[strcspn(line, "\n")] = '\0';
	if (!take_number(&at, 16, '-', &mapping->start) ||
	    !take_number(&at, 16, ' ', &mapping->end) || strlen(at) < 5 || at[4] != ' ' ||
	    mapping->start >= mapping->end)
		return false;
	mapping->readable = at[0] == 'r';
	mapping->writable = at[1] == 'w';
	mapping->executable = at[2] == 'x';
	mapping->shared = at[3] == 's';
	at += 5;
	if (!take_number(&at, 16, ' ', &mapping->offset) ||
	    !take_number(&at, 16, ':', &device_major) || !take_number(&at, 16, ' ', &device_minor))
		return false;
	mapping->device = device_major << 32 | (uint32_t)device_minor;
	mapping->inode = strtoull(at, &at, 10);
	mapping->path = at + strspn(at, " ");
	return true;
}
