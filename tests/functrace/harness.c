/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include "core/stream.h"
#include "functrace/agent_abi.h"

#include <asm/prctl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Unlike assert(), also active where the bench is built without it. */
#define must(x) ((x) ? (void)0 : fail(#x, __LINE__))

_Noreturn static void fail(const char *what, int line)
{
	fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, line, what);
	abort();
}

#define STUBS_BYTES (1u << 20)
#define STATES_MAX 256u

#define SKIPPED 77

/* The places where this program's functions were overwritten. */
static struct ky_agent_patch patched[HARNESS_FUNCTIONS_MAX];

static _Noreturn void skip(const char *why)
{
	fprintf(stderr, "skipped: %s\n", why);
	exit(SKIPPED);
}

static void *memory(uint64_t bytes, int protection)
{
	void *at =
		mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	must(at != MAP_FAILED);
	return at;
}

/* Return free addresses that a jump from `place` reaches. */
static uint8_t *memory_near(uintptr_t place)
{
	for (uintptr_t away = 1u << 24; away < 0x70000000u; away += 1u << 24)
		for (int side = 0; side < 2; side++) {
			void *wanted =
				(void *)((side ? place - away : place + away) & ~(uintptr_t)4095);
			void *at = mmap(wanted, STUBS_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
			if (at == wanted)
				return at;
			if (at != MAP_FAILED)
				munmap(at, STUBS_BYTES);
		}
	skip("no room for stubs, or memory may not be both written and executed");
}

static void put_agent(struct harness *h)
{
	uint8_t *code = memory(ky_agent_code_bytes, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(code, ky_agent_code, ky_agent_code_bytes);
	((struct ky_agent_table *)(void *)code)->home = (uintptr_t)h->home;
	h->home->code_at = (uintptr_t)code;
	h->home->code_bytes = ky_agent_code_bytes;
}

static const struct ky_agent_table *table_of(const struct harness *h)
{
	return (const struct ky_agent_table *)(uintptr_t)h->home->code_at;
}

uint64_t harness_agent(const struct harness *h, size_t place)
{
	uint32_t offset;
	memcpy(&offset, (const uint8_t *)table_of(h) + place, sizeof(offset));
	return h->home->code_at + offset;
}

static void put_drum(struct harness *h)
{
	const struct ky_made_drum_options options = {.pid = getpid(),
						     .fd = -1,
						     .ticks = true,
						     .functions = HARNESS_FUNCTIONS_MAX,
						     .layer = KY_DRUM_FUNCTIONS,
						     .ring_bytes = h->ring_bytes ? h->ring_bytes
										 : 4u << 20,
						     .total_bytes = 256u << 20};
	if (ky_made_drum_open(&h->drum, &options) != 0)
		skip("the CPU's counter cannot be used");
	h->home->drum = (uintptr_t)h->drum.drum.base;
	h->home->drum_bytes = h->home->drum_end = h->drum.drum.bytes;
	h->home->drum_heap = h->home->drum_rings = h->drum.drum.header->space_at;
	h->home->end_site = ky_made_drum_site(&h->drum, KYMO_KIND_END, NULL, NULL, NULL, NULL, 0);
}

static struct ky_stub stub_of(const struct harness *h, enum ky_stub_kind kind)
{
	const struct ky_agent_table *table = table_of(h);
	return (struct ky_stub){.kind = kind,
				.at = (uintptr_t)h->stubs + h->stubs_used,
				.end_site = h->home->end_site,
				.slow_entry = h->home->code_at + table->slow_entry,
				.slow_exit = h->home->code_at + table->slow_exit,
				.exit = h->exit};
}

static void put_stub(struct harness *h, const struct ky_stub *stub, const struct ky_moved *moved)
{
	struct ky_stub_places places;
	ky_stub_make(stub, moved, h->stubs + h->stubs_used, &places);
	must(places.bytes <= KY_STUB_MAX);
	h->stubs_used += (places.bytes + KY_STUB_ALIGN - 1) & ~(KY_STUB_ALIGN - 1);
}

static void put_unwind(struct harness *h)
{
	uint8_t *unwind = memory(4096, PROT_READ | PROT_WRITE);
	h->home->unwind = (uintptr_t)unwind;
	h->home->stubs_from = (uintptr_t)h->stubs;
	h->home->stubs_to = (uintptr_t)h->stubs + STUBS_BYTES;
	h->home->unwind_bytes = ky_stub_unwind(unwind, h->home->unwind, h->home->stubs_from,
					       h->home->stubs_to, h->home->directory);
	must(h->home->unwind_bytes <= KY_STUB_UNWIND_MAX);
}

void harness_open(struct harness *h)
{
	const uint64_t ring_bytes = h->ring_bytes;
	*h = (struct harness){.ring_bytes = ring_bytes};
	if (ky_agent_code_bytes == 0)
		skip("there is no agent for this CPU");
	h->home = memory(sizeof(*h->home), PROT_READ | PROT_WRITE);
	h->home->magic = KY_AGENT_MAGIC;
	h->home->version = KY_AGENT_VERSION;
	h->home->pid = (uint32_t)getpid();
	h->home->directory = (uintptr_t)memory(KY_AGENT_DIRECTORY_BYTES, PROT_READ | PROT_WRITE);
	for (uint64_t i = 0; i < KY_AGENT_ROOTS; i++)
		((uint64_t *)(uintptr_t)h->home->directory)[i] =
			ky_agent_leaf_empty(h->home->directory);
	h->home->state_bytes = KY_AGENT_STATE_BYTES + 4096;
	h->home->counts = 4096 / sizeof(uint32_t);
	h->home->states =
		(uintptr_t)memory(STATES_MAX * h->home->state_bytes, PROT_READ | PROT_WRITE);
	h->home->states_max = STATES_MAX;
	h->home->states_used = 1;
	((struct ky_agent_state *)(uintptr_t)h->home->states)->here = 1;
	if (madvise((void *)(uintptr_t)h->home->states, STATES_MAX * h->home->state_bytes,
		    MADV_WIPEONFORK) != 0)
		skip("the kernel cannot wipe memory in forked children");
	h->home->functions = HARNESS_FUNCTIONS_MAX;
	h->home->patches = (uintptr_t)patched;
	h->home->patches_max = HARNESS_FUNCTIONS_MAX;
	h->home->generation = 1;
	put_agent(h);
	put_drum(h);
	h->stubs = memory_near((uintptr_t)harness_open);
	struct ky_stub exit_stub = stub_of(h, KY_STUB_EXIT);
	h->exit = exit_stub.at;
	put_stub(h, &exit_stub, NULL);
	put_unwind(h);
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, h->home->states) != 0)
		skip("the gs register cannot be set");
	h->home->on = 1;
}

static void write_code(uint8_t *at, const void *bytes, size_t count)
{
	const uintptr_t page = (uintptr_t)at & ~(uintptr_t)4095;
	const size_t span = (uintptr_t)at + count - page;
	if (mprotect((void *)page, span, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		skip("code may not be written to");
	memcpy(at, bytes, count);
	mprotect((void *)page, span, PROT_READ | PROT_EXEC);
}

static void write_jump(uint8_t *at, uint64_t target)
{
	uint8_t jump[KY_JUMP_BYTES] = {0xe9};
	const uint32_t distance = (uint32_t)(target - ((uintptr_t)at + KY_JUMP_BYTES));
	memcpy(jump + 1, &distance, sizeof(distance));
	write_code(at, jump, sizeof(jump));
}

static struct ky_stub new_stub(struct harness *h, const char *name, enum ky_stub_kind kind)
{
	must(h->functions < HARNESS_FUNCTIONS_MAX);
	struct ky_stub stub = stub_of(h, kind);
	stub.function = h->functions++;
	stub.site = ky_made_drum_site(&h->drum,
				      kind == KY_STUB_CALL ? KYMO_KIND_BEGIN : KYMO_KIND_INSTANT,
				      "test", name, name, NULL, 0);
	stub.instant_site =
		ky_made_drum_site(&h->drum, KYMO_KIND_INSTANT, "test", name, name, NULL, 0);
	if (h->check_callers) {
		stub.near_from = h->home->ranges[0].from;
		stub.near_bytes = h->home->ranges[0].bytes;
	}
	return stub;
}

static void lead_to(struct harness *h, uint8_t *at, const struct ky_stub *stub)
{
	struct ky_agent_patch *entry = &patched[stub->function];
	*entry = (struct ky_agent_patch){.address = (uintptr_t)at,
					 .stub = stub->at,
					 .bytes = KY_JUMP_BYTES,
					 .set = 1,
					 .pad = (uint16_t)stub->kind,
					 .function = stub->function};
	memcpy(entry->before, at, KY_JUMP_BYTES);
	write_jump(at, stub->at);
	memcpy(entry->after, at, KY_JUMP_BYTES);
	h->home->patches_count = h->functions;
}

uint32_t harness_hook(struct harness *h, void (*function)(void), const char *name,
		      enum ky_stub_kind kind)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t *at = (uint8_t *)(uintptr_t)function;
	if (memcmp(at, endbr, sizeof(endbr)) == 0)
		at += sizeof(endbr);
	struct ky_stub stub = new_stub(h, name, kind);
	stub.returns_to = (uintptr_t)at + KY_JUMP_BYTES;
	put_stub(h, &stub, NULL);
	lead_to(h, at, &stub);
	return stub.function;
}

uint32_t harness_move(struct harness *h, void (*function)(void), uint32_t prologue,
		      const char *name, enum ky_stub_kind kind)
{
	uint8_t *at = (uint8_t *)(uintptr_t)function;
	struct ky_stub stub = new_stub(h, name, kind);
	struct ky_moved moved;
	const int error = ky_prologue_move(&moved, at, prologue, (uintptr_t)at,
					   stub.at + ky_stub_body_at(&stub));
	must(error == 0);
	put_stub(h, &stub, &moved);
	lead_to(h, at, &stub);
	return stub.function;
}

void harness_off(struct harness *h)
{
	for (uint32_t i = 0; i < h->functions; i++)
		write_code((uint8_t *)(uintptr_t)patched[i].address, patched[i].before,
			   KY_JUMP_BYTES);
	h->home->on = 0;
	for (uint32_t i = 0; i < h->home->states_used; i++)
		((struct ky_agent_state *)(uintptr_t)(h->home->states + i * h->home->state_bytes))
			->thread = 0;
}

void harness_close(struct harness *h)
{
	harness_off(h);
	ky_made_drum_close(&h->drum);
}

/* Hook it as the patch engine does: its first instructions are moved. */
void harness_hook_unwinder(struct harness *h)
{
	void *library = dlopen("libgcc_s.so.1", RTLD_NOW); /* the C library does it late */
	void *address = library ? dlsym(library, "_Unwind_Find_FDE") : NULL;
	Dl_info info;
	char message[KY_MESSAGE_BYTES];
	struct ky_functions *functions = NULL;
	if (!address || !dladdr(address, &info))
		skip("there is no _Unwind_Find_FDE");
	const int fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	if (ky_functions_read(&functions, fd, info.dli_fname, false, message) != 0)
		skip(message);
	close(fd);
	const struct ky_function *f = functions->functions;
	while (f < functions->functions + functions->count && f->address != functions->find_fde)
		f++;
	must(f < functions->functions + functions->count);
	struct ky_function found = *f;
	ky_prologue_find(&found, functions, found.address + found.bytes);
	uint8_t *at = (uint8_t *)address + found.at;
	struct harness near = *h;
	near.stubs = memory_near((uintptr_t)address);
	near.stubs_used = 0;
	struct ky_stub stub = stub_of(&near, KY_STUB_FIND_FDE);
	stub.special = h->home->code_at + table_of(h)->find_fde;
	struct ky_moved moved;
	must(found.prologue >= KY_JUMP_BYTES);
	must(ky_prologue_move(&moved, at, found.prologue, (uintptr_t)at,
			      stub.at + ky_stub_body_at(&stub)) == 0);
	put_stub(&near, &stub, &moved);
	write_jump(at, stub.at);
	ky_functions_free(&functions);
}

uint64_t harness_count(const struct harness *h, uint32_t function)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < h->home->states_used; i++)
		sum += ((const uint32_t *)(uintptr_t)(h->home->states + i * h->home->state_bytes +
						      KY_STATE_COUNTS))[function];
	return sum;
}

uint64_t harness_lost(const struct harness *h)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < h->home->states_used; i++)
		sum += ((const struct ky_agent_state *)(uintptr_t)(h->home->states +
								   i * h->home->state_bytes))
			       ->lost;
	return sum;
}

static void keep(void *context, const struct ky_event *e)
{
	struct harness_events *all = context;
	if (e->kind == KYMO_KIND_LOST)
		return;
	must(all->count < HARNESS_EVENTS_MAX);
	all->events[all->count++] = (struct harness_event){e->kind, e->thread->pid, e->thread->tid,
							   e->time_ns, e->name.data};
}

struct harness_events harness_read(const struct harness *h)
{
	struct harness_events all = {0};
	struct ky_stream *stream = calloc(1, sizeof(*stream));
	all.events = mmap(NULL, HARNESS_EVENTS_MAX * sizeof(*all.events), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	must(stream && all.events != MAP_FAILED);
	const char *what = "";
	const int error = ky_stream_open(stream, h->drum.drum.base, h->drum.drum.bytes, NULL, false,
					 0, &what);
	if (error)
		fprintf(stderr, "no drum: %s\n", what);
	must(error == 0);
	/* Ticks are as good as nanoseconds here. */
	const uint64_t far = UINT64_MAX / 2;
	stream->clock.count = 0;
	ky_clock_map_add(&stream->clock, &(struct ky_tick_reading){1, 1, 1, 1});
	ky_clock_map_add(&stream->clock, &(struct ky_tick_reading){far, far, far, far});
	stream->sink = (struct ky_stream_sink){.event = keep, .context = &all};
	const int failed = ky_stream_read_to(stream, far);
	must(failed == 0);
	all.overwritten = stream->lost;
	all.damaged = stream->damaged;
	all.private_data = stream;
	return all;
}

void harness_free(struct harness_events *all)
{
	ky_stream_close(all->private_data);
	free(all->private_data);
	munmap(all->events, HARNESS_EVENTS_MAX * sizeof(*all->events));
	*all = (struct harness_events){0};
}

/* Threads are few: a list. */
struct nest {
	int32_t tid;
	uint64_t depth, last_ns;
};

static struct nest *nest_of(struct nest *nests, uint32_t *count, int32_t tid)
{
	for (uint32_t i = 0; i < *count; i++)
		if (nests[i].tid == tid)
			return &nests[i];
	must(*count < 2048);
	nests[*count] = (struct nest){.tid = tid};
	return &nests[(*count)++];
}

void harness_check_nesting(const struct harness_events *all, uint64_t open)
{
	struct nest *nests = calloc(2048, sizeof(*nests));
	uint32_t count = 0;
	uint64_t depths = 0;
	must(nests);
	must(all->damaged == 0);
	for (uint64_t i = 0; i < all->count; i++) {
		struct nest *nest = nest_of(nests, &count, all->events[i].tid);
		must(all->events[i].time_ns >= nest->last_ns);
		nest->last_ns = all->events[i].time_ns;
		if (all->events[i].kind == KYMO_KIND_BEGIN)
			nest->depth++;
		else if (all->events[i].kind == KYMO_KIND_END) {
			must(nest->depth > 0);
			nest->depth--;
		}
	}
	for (uint32_t i = 0; i < count; i++)
		depths += nests[i].depth;
	if (depths != open)
		fprintf(stderr, "%lu spans are open, not %lu\n", (unsigned long)depths,
			(unsigned long)open);
	must(depths == open);
	free(nests);
}

uint64_t harness_begins(const struct harness_events *all, const char *name)
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < all->count; i++)
		count += all->events[i].kind == KYMO_KIND_BEGIN &&
			 strcmp(all->events[i].name, name) == 0;
	return count;
}

void harness_check(const struct harness *h, uint64_t open)
{
	struct harness_events all = harness_read(h);
	harness_check_nesting(&all, open);
	harness_free(&all);
}

uint64_t harness_begun(const struct harness *h, const char *name)
{
	struct harness_events all = harness_read(h);
	const uint64_t count = harness_begins(&all, name);
	harness_free(&all);
	return count;
}

struct ky_agent_state *harness_state(const struct harness *h)
{
	return (struct ky_agent_state *)(uintptr_t)(h->home->states + h->home->state_bytes);
}

/* ---- functions to hook ---- */

HOOKABLE int add(int a, int b)
{
	return a + b;
}

HOOKABLE uint64_t factorial(uint64_t n)
{
	if (n < 2)
		return 1;
	uint64_t smaller = factorial(n - 1);
	KEEP_CALL(smaller);
	return n * smaller;
}

HOOKABLE int work(int n)
{
	unsigned sum = 0;
	for (int i = 0; i < n; i++)
		sum += (unsigned)add(i, i);
	return (int)sum;
}
