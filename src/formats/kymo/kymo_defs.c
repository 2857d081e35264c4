/* SPDX-License-Identifier: MIT */
/*
 * kymo_defs.c: records of definitions, read back.
 *
 *   record ─ kind ─▶ SITE    ─▶ one block of memory: struct ky_site │ category NUL name NUL …
 *                    THREAD  ─▶ struct ky_thread, its name apart: it may be defined again
 *                    CLOCK   ─▶ the list of samples, sorted at the end: they come in any order
 *                    PROCESS ─▶ by pid; the last one is the file's own
 *                    SNAPSHOT, NOTE, LOSS ─▶ lists, each record once
 *
 * The first definition of a trace point counts: pointers to it may be out already.
 */
#include "formats/kymo/kymo_defs.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/layout.h"
#include "formats/xxh64.h"

/* The size of its first version. */
#define SNAPSHOT_BYTES_MIN (offsetof(struct ky_kymo_snapshot, stack_bytes) + sizeof(uint32_t))

/* The next bytes of a record. */
struct define_record {
	const uint8_t *at;
	size_t left;
	size_t fixed_bytes; /* of the part before the texts */
};

/* Return the key's index + 1, or 0. */
static uint32_t map_get(const struct ky_u64_map *map, uint64_t key)
{
	const uint32_t *value = ky_u64_map_find(map, key);
	return value ? *value : 0;
}

static bool map_put(struct ky_u64_map *map, uint64_t key, uint32_t value)
{
	bool made;
	uint32_t *at = ky_u64_map_add(map, key, &made);
	if (at)
		*at = value;
	return at != NULL;
}

/* The part before the texts, which may be longer than what we know of it. */
static bool take_fixed(struct define_record *record, void *to, size_t bytes)
{
	if (bytes > record->fixed_bytes || record->fixed_bytes > record->left)
		return false;
	memcpy(to, record->at, bytes);
	record->at += record->fixed_bytes;
	record->left -= record->fixed_bytes;
	return true;
}

/* Do the same for a struct that has grown since: an older one leaves zeros at its end. */
static bool take_grown(struct define_record *record, void *to, size_t bytes, size_t bytes_min)
{
	memset(to, 0, bytes);
	if (record->fixed_bytes < bytes_min)
		return false;
	return take_fixed(record, to, record->fixed_bytes < bytes ? record->fixed_bytes : bytes);
}

/* Copy a text of a record, up to a NUL, with a NUL behind it to *to, which moves on. */
static struct ky_text take_text(struct define_record *record, uint32_t bytes, char **to)
{
	char *text = *to;
	memcpy(text, record->at, bytes);
	text[bytes] = '\0';
	record->at += bytes;
	record->left -= bytes;
	*to += bytes + 1;
	return (struct ky_text){text, (uint32_t)strlen(text)};
}

/* Copy a text to a block of its own; data is NULL without memory. */
static struct ky_text copy_text(struct define_record *record, uint32_t bytes)
{
	char *copy = malloc((size_t)bytes + 1);
	return copy ? take_text(record, bytes, &copy) : (struct ky_text){NULL, 0};
}

static void replace_text(struct ky_text *old, struct ky_text text)
{
	free((void *)(uintptr_t)old->data);
	*old = text;
}

/* A later definition of the same pid replaces it. */
static int remember_process(struct ky_kymo_defs *defs, int32_t pid, struct ky_text name,
			    struct ky_text command)
{
	uint32_t index = map_get(&defs->by_pid, (uint32_t)pid);
	if (!index) {
		index = defs->processes_count + 1;
		if (!map_put(&defs->by_pid, (uint32_t)pid, index) ||
		    !KY_ARRAY_NEW(defs->processes, defs->processes_count, defs->processes_room))
			return -ENOMEM;
	}
	struct ky_kymo_process_name *process = &defs->processes[index - 1];
	process->pid = pid;
	replace_text(&process->name, name);
	replace_text(&process->command, command);
	return 0;
}

/* The first is whose drum it is; others are children that wrote into it, or of a file that was made of another trace. */
static int take_own(struct ky_kymo_defs *defs, const struct ky_kymo_process *fixed,
		    struct ky_text name, struct ky_text command)
{
	if (defs->processes_count && fixed->pid != defs->pid)
		return 0;
	char *own_name = strdup(name.data);
	char *own_command = strdup(command.data);
	if (!own_name || !own_command) {
		free(own_name);
		free(own_command);
		return -ENOMEM;
	}
	replace_text(&defs->process, (struct ky_text){own_name, name.bytes});
	replace_text(&defs->command, (struct ky_text){own_command, command.bytes});
	defs->pid = fixed->pid;
	defs->layer = fixed->layer;
	return 0;
}

static int add_process(struct ky_kymo_defs *defs, struct define_record *record)
{
	struct ky_kymo_process fixed;
	if (!take_fixed(record, &fixed, sizeof(fixed)) ||
	    (uint64_t)fixed.name_bytes + fixed.command_bytes > record->left)
		return -EBADMSG;
	struct ky_text name = copy_text(record, fixed.name_bytes);
	struct ky_text command = copy_text(record, fixed.command_bytes);
	if (name.data && command.data) {
		name.bytes = (uint32_t)strlen(name.data);
		command.bytes = (uint32_t)strlen(command.data);
	}
	int error = name.data && command.data ? take_own(defs, &fixed, name, command) : -ENOMEM;
	if (!error)
		error = remember_process(defs, fixed.pid, name, command);
	if (error) {
		free((void *)(uintptr_t)name.data);
		free((void *)(uintptr_t)command.data);
	}
	return error;
}

static int add_clock(struct ky_kymo_defs *defs, struct define_record *record)
{
	struct ky_kymo_clock fixed;
	if (!take_fixed(record, &fixed, sizeof(fixed)))
		return -EBADMSG;
	const struct ky_tick_reading reading = {fixed.ticks, fixed.boottime_ns, fixed.monotonic_ns,
						fixed.realtime_ns};
	if (!KY_ARRAY_ADD(defs->samples, defs->samples_count, defs->samples_room, reading))
		return -ENOMEM;
	return 0;
}

struct ky_thread *ky_kymo_defs_thread(struct ky_kymo_defs *defs, int32_t tid, bool *made)
{
	const uint32_t known = map_get(&defs->by_tid, (uint32_t)tid);
	*made = !known;
	if (known)
		return defs->threads[known - 1];
	if (!KY_ARRAY_GROW(defs->threads, defs->threads_room, (uint64_t)defs->threads_count + 1))
		return NULL;
	struct ky_thread *thread = calloc(1, sizeof(*thread));
	char *name = calloc(1, 1);
	if (!thread || !name || !map_put(&defs->by_tid, (uint32_t)tid, defs->threads_count + 1)) {
		free(thread);
		free(name);
		return NULL;
	}
	*thread = (struct ky_thread){
		.index = defs->threads_count, .pid = defs->pid, .tid = tid, .name = {name, 0}};
	defs->threads[defs->threads_count++] = thread;
	return thread;
}

static int add_thread(struct ky_kymo_defs *defs, struct define_record *record)
{
	struct ky_kymo_thread fixed;
	bool made;
	if (!take_fixed(record, &fixed, sizeof(fixed)) || fixed.name_bytes > record->left)
		return -EBADMSG;
	const struct ky_text name = copy_text(record, fixed.name_bytes);
	struct ky_thread *thread = name.data ? ky_kymo_defs_thread(defs, fixed.tid, &made) : NULL;
	if (!thread) {
		free((void *)(uintptr_t)name.data);
		return -ENOMEM;
	}
	thread->pid = fixed.pid;
	if (fixed.shown_tid) {
		thread->tid = fixed.shown_tid;
		thread->alias = fixed.tid;
	}
	replace_text(&thread->name, name);
	return 0;
}

/* Make the site and all its texts in one block of memory. */
static struct ky_site *make_site(const struct ky_kymo_site *fixed, struct define_record *record)
{
	struct ky_text texts[KY_KYMO_SITE_TEXTS];
	struct ky_site *site = malloc(sizeof(*site) + record->left + KY_KYMO_SITE_TEXTS);
	if (!site)
		return NULL;
	char *to = (char *)(site + 1);
	for (uint32_t i = 0; i < KY_KYMO_SITE_TEXTS; i++)
		texts[i] = take_text(record, fixed->text_bytes[i], &to);
	*site = (struct ky_site){
		.kind = fixed->kind,
		.flags = fixed->flags,
		.items = fixed->items,
		.args = fixed->args,
		.line = fixed->line,
		.types = fixed->types,
		.category = texts[KY_KYMO_CATEGORY],
		.name = texts[KY_KYMO_NAME],
		.file = texts[KY_KYMO_SOURCE],
		.function = texts[KY_KYMO_FUNCTION],
	};
	memcpy(site->keys, &texts[KY_KYMO_KEYS], sizeof(site->keys));
	return site;
}

/* Equal names have the same index. False without memory. */
static bool number_category(struct ky_kymo_defs *defs, struct ky_site *site)
{
	const uint64_t key = ky_xxh64(site->category.data, site->category.bytes);
	uint32_t index = map_get(&defs->by_category, key);
	if (!index) {
		index = defs->by_category.table.count + 1;
		if (!map_put(&defs->by_category, key, index))
			return false;
	}
	site->category_index = index - 1;
	return true;
}

static bool is_site(const struct ky_kymo_site *fixed, size_t left)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < KY_KYMO_SITE_TEXTS; i++)
		bytes += fixed->text_bytes[i];
	return bytes <= left && fixed->site < KY_KYMO_SITES &&
	       ky_event_kind_is_recorded(fixed->kind) && fixed->items <= KYMO_I_ITEMS_MAX &&
	       fixed->args <= KYMO_ARGS_MAX && fixed->args <= fixed->items;
}

static int add_site(struct ky_kymo_defs *defs, struct define_record *record)
{
	struct ky_kymo_site fixed;
	if (!take_fixed(record, &fixed, sizeof(fixed)) || !is_site(&fixed, record->left))
		return -EBADMSG;
	if (map_get(&defs->by_number, fixed.site))
		return 0;
	if (!KY_ARRAY_GROW(defs->sites, defs->sites_room, (uint64_t)defs->sites_count + 1))
		return -ENOMEM;
	struct ky_site *site = make_site(&fixed, record);
	if (!site || !number_category(defs, site) ||
	    !map_put(&defs->by_number, fixed.site, defs->sites_count + 1)) {
		free(site);
		return -ENOMEM;
	}
	site->index = defs->sites_count;
	defs->sites[defs->sites_count++] = site;
	return 0;
}

/* Return 1 if the same record was there before, 0 if it is the first, or -ENOMEM. */
static int is_repeated(struct ky_kymo_defs *defs, const struct define_record *record)
{
	const uint64_t hash = ky_xxh64(record->at, record->left);
	if (map_get(&defs->by_record, hash))
		return 1;
	return map_put(&defs->by_record, hash, 1) ? 0 : -ENOMEM;
}

static bool is_snapshot(const struct ky_kymo_snapshot *fixed, size_t left)
{
	return (uint64_t)fixed->trigger_bytes + fixed->reason_bytes + fixed->stack_bytes <= left;
}

static int add_snapshot(struct ky_kymo_defs *defs, struct define_record *record)
{
	struct ky_kymo_snapshot_record snapshot;
	const int repeated = is_repeated(defs, record);
	if (repeated)
		return repeated < 0 ? repeated : 0;
	if (!take_grown(record, &snapshot.at, sizeof(snapshot.at), SNAPSHOT_BYTES_MIN) ||
	    !is_snapshot(&snapshot.at, record->left))
		return -EBADMSG;
	if (!KY_ARRAY_GROW(defs->snapshots, defs->snapshots_room,
			   (uint64_t)defs->snapshots_count + 1))
		return -ENOMEM;
	/* All texts are in one block, which the first of them begins. */
	char *to = malloc(record->left + 3);
	if (!to)
		return -ENOMEM;
	snapshot.trigger = take_text(record, snapshot.at.trigger_bytes, &to);
	snapshot.reason = take_text(record, snapshot.at.reason_bytes, &to);
	snapshot.stack = take_text(record, snapshot.at.stack_bytes, &to);
	defs->snapshots[defs->snapshots_count++] = snapshot;
	return 0;
}

static int add_remark(struct ky_kymo_defs *defs, struct define_record *record)
{
	const int repeated = is_repeated(defs, record);
	if (repeated)
		return repeated < 0 ? repeated : 0;
	if (record->fixed_bytes > record->left)
		return -EBADMSG;
	record->at += record->fixed_bytes;
	record->left -= record->fixed_bytes;
	if (!KY_ARRAY_GROW(defs->remarks, defs->remarks_room, (uint64_t)defs->remarks_count + 1))
		return -ENOMEM;
	const struct ky_text text = copy_text(record, (uint32_t)record->left);
	if (!text.data)
		return -ENOMEM;
	defs->remarks[defs->remarks_count++] = text;
	return 0;
}

static int add_loss(struct ky_kymo_defs *defs, struct define_record *record)
{
	struct ky_kymo_loss fixed;
	const int repeated = is_repeated(defs, record);
	if (repeated)
		return repeated < 0 ? repeated : 0;
	if (!take_fixed(record, &fixed, sizeof(fixed)) || fixed.what_bytes > record->left)
		return -EBADMSG;
	const struct ky_kymo_loss_record loss = {fixed.count, copy_text(record, fixed.what_bytes)};
	if (loss.what.data &&
	    KY_ARRAY_ADD(defs->losses, defs->losses_count, defs->losses_room, loss))
		return 0;
	free((void *)(uintptr_t)loss.what.data);
	return -ENOMEM;
}

/* The definitions come again at the end of a file: the same end twice does no harm. */
static int add_program_end(struct ky_kymo_defs *defs, struct define_record *record)
{
	struct ky_kymo_program_end fixed;
	if (!take_fixed(record, &fixed, sizeof(fixed)))
		return -EBADMSG;
	return KY_ARRAY_ADD(defs->ends, defs->ends_count, defs->ends_room, fixed) ? 0 : -ENOMEM;
}

static int add_record(struct ky_kymo_defs *defs, const struct ky_kymo_record *head,
		      const uint8_t *body, const char **what)
{
	static const struct {
		int (*add)(struct ky_kymo_defs *defs, struct define_record *record);
		const char *what;
	} kinds[] = {
		[KY_KYMO_PROCESS] = {add_process, "the definition of a process is malformed"},
		[KY_KYMO_THREAD] = {add_thread, "the definition of a thread is malformed"},
		[KY_KYMO_CLOCK] = {add_clock, "a sample of the clocks is malformed"},
		[KY_KYMO_SITE] = {add_site, "the definition of a trace point is malformed"},
		[KY_KYMO_SNAPSHOT] = {add_snapshot, "the record of a snapshot is malformed"},
		[KY_KYMO_NOTE] = {add_remark, "a note about the capture is malformed"},
		[KY_KYMO_PROGRAM_END] = {add_program_end, "the end of a program is malformed"},
		[KY_KYMO_LOSS] = {add_loss, "the record of a loss is malformed"},
	};
	if (head->kind >= sizeof(kinds) / sizeof(kinds[0]) || !kinds[head->kind].add)
		return 0;
	*what = kinds[head->kind].what;
	struct define_record record = {body, head->bytes - sizeof(*head), head->fixed_bytes};
	return kinds[head->kind].add(defs, &record);
}

int ky_kymo_defs_add(struct ky_kymo_defs *defs, const uint8_t *records, size_t bytes, size_t *at,
		     const char **what)
{
	for (*at = 0; *at < bytes;) {
		struct ky_kymo_record head;
		*what = "a definition does not fit its chunk";
		if (bytes - *at < sizeof(head))
			return -EBADMSG;
		memcpy(&head, records + *at, sizeof(head));
		if (head.bytes < sizeof(head) || head.bytes % 8 || head.bytes > bytes - *at)
			return -EBADMSG;
		const int error = add_record(defs, &head, records + *at + sizeof(head), what);
		if (error)
			return error;
		*at += head.bytes;
	}
	return 0;
}

KY_ORDER(by_ticks, struct ky_tick_reading, KY_COMPARE(a->ticks, b->ticks))

int ky_kymo_defs_done(struct ky_kymo_defs *defs, uint64_t ticks_per_s)
{
	if (ticks_per_s)
		defs->clock.nominal = UINT64_C(1000000000) * KY_CLOCK_RATE_ONE / ticks_per_s;
	if (defs->samples_count)
		qsort(defs->samples, defs->samples_count, sizeof(*defs->samples), by_ticks);
	for (uint32_t i = 0; i < defs->samples_count; i++)
		if (ky_clock_map_add(&defs->clock, &defs->samples[i]) != 0)
			return -ENOMEM;
	return 0;
}

void ky_kymo_defs_free(struct ky_kymo_defs *defs)
{
	for (uint32_t i = 0; i < defs->sites_count; i++)
		free(defs->sites[i]);
	for (uint32_t i = 0; i < defs->threads_count; i++) {
		free((void *)(uintptr_t)defs->threads[i]->name.data);
		free(defs->threads[i]);
	}
	for (uint32_t i = 0; i < defs->processes_count; i++) {
		free((void *)(uintptr_t)defs->processes[i].name.data);
		free((void *)(uintptr_t)defs->processes[i].command.data);
	}
	for (uint32_t i = 0; i < defs->snapshots_count; i++)
		free((void *)(uintptr_t)defs->snapshots[i].trigger.data);
	for (uint32_t i = 0; i < defs->remarks_count; i++)
		free((void *)(uintptr_t)defs->remarks[i].data);
	for (uint32_t i = 0; i < defs->losses_count; i++)
		free((void *)(uintptr_t)defs->losses[i].what.data);
	KY_ARRAY_FREE(defs->losses, defs->losses_room);
	KY_ARRAY_FREE(defs->snapshots, defs->snapshots_room);
	KY_ARRAY_FREE(defs->ends, defs->ends_room);
	KY_ARRAY_FREE(defs->remarks, defs->remarks_room);
	ky_u64_map_free(&defs->by_record);
	KY_ARRAY_FREE(defs->processes, defs->processes_room);
	ky_u64_map_free(&defs->by_pid);
	free((void *)(uintptr_t)defs->process.data);
	free((void *)(uintptr_t)defs->command.data);
	KY_ARRAY_FREE(defs->samples, defs->samples_room);
	KY_ARRAY_FREE(defs->sites, defs->sites_room);
	KY_ARRAY_FREE(defs->threads, defs->threads_room);
	ky_u64_map_free(&defs->by_number);
	ky_u64_map_free(&defs->by_tid);
	ky_u64_map_free(&defs->by_category);
	ky_clock_map_free(&defs->clock);
	memset(defs, 0, sizeof(*defs));
}

const struct ky_site *ky_kymo_defs_site(const struct ky_kymo_defs *defs, uint64_t word)
{
	const uint32_t index = map_get(&defs->by_number, KY_WORD_SITE(word));
	return index ? defs->sites[index - 1] : NULL;
}
