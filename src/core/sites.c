/* SPDX-License-Identifier: MIT */
/* sites.c: copies of trace points and threads' names, bounded whatever the drum holds. */
#include "core/sites.h"

#include "core/assert.h"
#include "os/os.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Trace points with all their strings take at most this many times the heap, which has each string once. */
#define WRITTEN_TIMES_MAX 16u

/* A string with a final NUL; the drum's own may change at any time. */
struct ky_text_copy {
	struct ky_text_copy *next;
	uint32_t bytes;
	char data[];
};

int ky_sites_open(struct ky_sites *sites, const struct ky_drum_view *view)
{
	memset(sites, 0, sizeof(*sites));
	sites->view = view;
	sites->several = view->header.layer != KY_DRUM_OWN;
	sites->bytes_left = 2 * view->header.heap_bytes;
	sites->seed = ky_os_image();
	sites->written_left = WRITTEN_TIMES_MAX * view->header.heap_bytes;
	const size_t places = view->header.heap_bytes / KY_HEAP_UNIT + 1;
	sites->by_place = calloc(places, sizeof(struct ky_site *));
	sites->texts = calloc(places, sizeof(struct ky_text_copy *));
	if (sites->by_place && sites->texts)
		return 0;
	ky_sites_close(sites);
	return -ENOMEM;
}

void ky_sites_close(struct ky_sites *sites)
{
	for (uint32_t i = 0; i < sites->count; i++)
		free(sites->all[i]);
	for (uint32_t i = 0; i < sites->threads_room; i++)
		free(sites->threads[i]);
	for (struct ky_text_copy *copy = sites->newest, *next; copy; copy = next) {
		next = copy->next;
		free(copy);
	}
	free(sites->texts);
	free(sites->by_place);
	free(sites->all);
	free(sites->threads);
	free(sites->thread_names);
	memset(sites, 0, sizeof(*sites));
}

/* Return what an allocation gave, and remember if that is nothing. */
static void *given(struct ky_sites *sites, void *memory)
{
	sites->no_memory |= !memory;
	return memory;
}

static struct ky_text_copy *copy_text(struct ky_sites *sites, struct ky_text from)
{
	struct ky_text_copy *copy = NULL;
	if (from.bytes < sites->bytes_left)
		copy = given(sites, malloc(sizeof(*copy) + from.bytes + 1u));
	if (!copy)
		return NULL;
	memcpy(copy->data, from.data, from.bytes);
	copy->data[from.bytes] = '\0';
	copy->bytes = (uint32_t)strlen(copy->data);
	copy->next = sites->newest;
	sites->newest = copy;
	sites->bytes_left -= from.bytes + 1u;
	return copy;
}

/* Return the string of a record, copied when first met: events handed out point to the copy. */
static bool text_at(struct ky_sites *sites, uint32_t at, struct ky_text *text)
{
	const struct ky_text live = ky_drum_view_string(sites->view, at);
	*text = (struct ky_text){"", 0};
	if (live.bytes == 0)
		return true;
	const uint64_t place = at - sites->view->header.heap_at / KY_HEAP_UNIT;
	KY_ASSERT(place <= sites->view->header.heap_bytes / KY_HEAP_UNIT);
	if (!sites->texts[place])
		sites->texts[place] = copy_text(sites, live);
	const struct ky_text_copy *copy = sites->texts[place];
	if (copy)
		*text = (struct ky_text){copy->data, copy->bytes};
	return copy != NULL;
}

/* The acquire load pairs with the compare-and-swap in ky_heap_category(): the string is there. */
static uint32_t category_name(const struct ky_drum_view *view, uint32_t category)
{
	return category < view->header.categories_max
		       ? __atomic_load_n(&view->categories[category].name, __ATOMIC_ACQUIRE)
		       : 0;
}

static bool copy_texts(struct ky_site *site, struct ky_sites *sites, const struct ky_heap_site *s)
{
	bool good = text_at(sites, category_name(sites->view, s->category), &site->category) &&
		    text_at(sites, s->name, &site->name) && text_at(sites, s->file, &site->file) &&
		    text_at(sites, s->function, &site->function);
	for (uint32_t i = 0; good && i < KYMO_ARGS_MAX; i++)
		good = text_at(sites, i < s->args ? s->keys[i] : 0, &site->keys[i]);
	return good;
}

/* Small records may share long strings, which are copied once but written with each trace point. */
static bool may_write(struct ky_sites *sites, const struct ky_site *site)
{
	uint64_t bytes = sizeof(*site) + site->category.bytes + site->name.bytes +
			 site->file.bytes + site->function.bytes;
	for (uint32_t i = 0; i < KYMO_ARGS_MAX; i++)
		bytes += site->keys[i].bytes;
	if (bytes > sites->written_left)
		return false;
	sites->written_left -= bytes;
	return true;
}

static bool make_room(struct ky_sites *sites)
{
	if (sites->count < sites->room)
		return true;
	const uint32_t room = sites->room ? sites->room * 2 : 64;
	struct ky_site **grown = given(sites, realloc(sites->all, room * sizeof(*grown)));
	if (!grown)
		return false;
	sites->all = grown;
	sites->room = room;
	return true;
}

const struct ky_site *ky_sites_add(struct ky_sites *sites, uint32_t place, uint32_t at)
{
	struct ky_heap_site s;
	if (sites->written_left == 0 || !ky_drum_view_site(sites->view, at, &s) ||
	    !make_room(sites))
		return NULL;
	struct ky_site *site = given(sites, calloc(1, sizeof(*site)));
	if (!site)
		return NULL;
	site->index = sites->count;
	site->category_index = s.category < sites->view->header.categories_max ? s.category : 0;
	site->kind = s.kind;
	site->flags = s.flags;
	site->items = s.items;
	site->args = s.args;
	site->line = s.line;
	site->types = s.types;
	if (!copy_texts(site, sites, &s) || !may_write(sites, site)) {
		sites->written_left = 0; /* refuse all later ones, at once */
		free(site);
		return NULL;
	}
	KY_ASSERT(!sites->by_place[place] && sites->count < sites->room);
	sites->all[sites->count++] = site;
	sites->by_place[place] = site;
	return site;
}

static uint32_t slot_of(const struct ky_sites *sites, int32_t pid, int32_t tid)
{
	KY_ASSERT(sites->threads_count < sites->threads_room);
	const uint64_t key = (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
	uint64_t hash = (key ^ sites->seed) * UINT64_C(0x9e3779b97f4a7c15);
	hash = (hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	uint32_t slot = (uint32_t)(hash >> 32) & (sites->threads_room - 1);
	while (sites->threads[slot] &&
	       (sites->threads[slot]->tid != tid || sites->threads[slot]->pid != pid))
		slot = (slot + 1) & (sites->threads_room - 1);
	return slot;
}

static bool grow_threads(struct ky_sites *sites)
{
	if (sites->threads_count * 2 < sites->threads_room)
		return true;
	const uint32_t room = sites->threads_room ? sites->threads_room * 2 : 64;
	struct ky_thread **table = given(sites, calloc(room, sizeof(struct ky_thread *)));
	uint32_t *names = given(sites, realloc(sites->thread_names, room * sizeof(*names)));
	if (names)
		sites->thread_names = names;
	if (!table || !names) {
		free(table);
		return false;
	}
	struct ky_thread **old = sites->threads;
	const uint32_t old_room = sites->threads_room;
	sites->threads = table;
	sites->threads_room = room;
	for (uint32_t i = 0; i < old_room; i++)
		if (old[i])
			table[slot_of(sites, old[i]->pid, old[i]->tid)] = old[i];
	free(old);
	return true;
}

static struct ky_thread *add_thread(struct ky_sites *sites, int32_t pid, int32_t tid)
{
	struct ky_thread *thread = given(sites, calloc(1, sizeof(*thread)));
	if (!thread)
		return NULL;
	thread->tid = tid;
	thread->pid = pid;
	thread->index = sites->threads_count++;
	KY_ASSERT(thread->index < sites->threads_room);
	thread->name = (struct ky_text){"", 0};
	sites->thread_names[thread->index] = 0;
	return thread;
}

struct ky_thread *ky_sites_thread(struct ky_sites *sites, uint32_t pid, uint32_t tid, uint32_t name,
				  uint64_t ticks, bool *renamed)
{
	const int32_t whose = (int32_t)(pid && sites->several ? pid : sites->view->header.pid);
	if (!grow_threads(sites))
		return NULL;
	struct ky_thread **slot = &sites->threads[slot_of(sites, whose, (int32_t)tid)];
	*renamed = !*slot;
	if (!*slot)
		*slot = add_thread(sites, whose, (int32_t)tid);
	struct ky_thread *thread = *slot;
	if (!thread || name == KY_NAME_SAME || ticks < thread->named_ticks)
		return thread;
	thread->named_ticks = ticks;
	if (sites->thread_names[thread->index] == name)
		return thread;
	if (!text_at(sites, name, &thread->name))
		return thread;
	sites->thread_names[thread->index] = name;
	*renamed = true;
	return thread;
}
