/* SPDX-License-Identifier: MIT */
/*
 * fuzz_agent_memory.c: what kymo put into a program for its function calls, as the program may have left it: home, what kymo
 * keeps behind it, the table of patches, states with their counts, the directory of return slots and stacks with hooks. The
 * program is this one; kymo reads its memory as any program's, and can write nothing.
 *
 * An input is patches of a home that is right: a place (2 bytes, in units of 8: home, keep and memory behind them), a length
 * (1 byte), and the bytes. A length of 0 is followed by one byte, which says how often the patch before it is repeated, each
 * 4096 bytes behind the last.
 */
#include "functrace/patch_parts.h"
#include "process/proc.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* ThreadSanitizer allows it, and nothing else is there. */
#define AT UINT64_C(0x7e9000000000)
#define TABLE (AT + (64u << 10))
#define STATES (AT + (128u << 10))
#define STATE_BYTES (2 * KY_AGENT_STATE_BYTES)
#define DIRECTORY (AT + (192u << 10))
#define LEAF (AT + (448u << 10))
#define SAME_LEAF (AT + (512u << 10)) /* all of its pieces are the same memory */
#define PIECE (AT + (1u << 20))
#define STACK (AT + (5u << 20))
#define BYTES (6u << 20)
/* What inputs can change: a place has 16 bits. */
#define TOUCHED (512u << 10)
#define ENTRIES 16u

static uint8_t *memory, *image;
static int own = -1;
static uint64_t sum;

static void check(int holds)
{
	if (!holds)
		abort();
}

static struct ky_agent_home right_home(void)
{
	return (struct ky_agent_home){.magic = KY_AGENT_MAGIC,
				      .version = KY_AGENT_VERSION,
				      .on = 1,
				      .home_bytes = 64u << 10,
				      .code_at = AT + KY_PATCH_CODE_AT,
				      .code_bytes = 4096,
				      .patches = TABLE,
				      .patches_count = ENTRIES,
				      .patches_max = ENTRIES,
				      .states = STATES,
				      .state_bytes = STATE_BYTES,
				      .states_used = 3,
				      .states_max = 4,
				      .directory = DIRECTORY,
				      .drum = STACK,
				      .drum_bytes = 65536,
				      .drum_heap = 4096,
				      .drum_rings = 8192,
				      .drum_end = 65536,
				      .stubs_from = AT,
				      .stubs_to = AT + BYTES,
				      .functions = ENTRIES,
				      .ranges_count = 1,
				      .counts = 64,
				      .ranges = {{AT, BYTES}}};
}

/* One stack has hooks: its piece of return slots is at PIECE. */
static void make_image(void)
{
	const struct ky_agent_home home = right_home();
	struct ky_patch_keep keep = {.magic = KY_PATCH_KEEP_MAGIC,
				     .regions_count = 1,
				     .drum_fd = -1,
				     .regions = {{.at = AT, .bytes = 4096, .used = 128}},
				     .guards_count = 1,
				     .guards = {{AT, 4096}}};
	memcpy(image, &home, sizeof(home));
	memcpy(image + KY_PATCH_KEEP_AT, &keep, sizeof(keep));
	struct ky_agent_patch *const table = (void *)(image + (TABLE - AT));
	for (uint32_t i = 0; i < ENTRIES; i++)
		table[i] = (struct ky_agent_patch){
			.address = AT + i * 64, .bytes = 5, .set = 1, .function = i};
	for (uint64_t at = STATES; at < STATES + 3 * STATE_BYTES; at += 8)
		memcpy(image + (at - AT), &at, 8);
	uint64_t *const roots = (void *)(image + (DIRECTORY - AT));
	for (uint64_t i = 0; i < KY_AGENT_ROOTS; i++)
		roots[i] = ky_agent_leaf_empty(DIRECTORY);
	roots[STACK >> KY_AGENT_ROOT_SHIFT] = LEAF;
	const uint64_t number = STACK >> KY_AGENT_PIECE_SHIFT;
	uint64_t *const leaf = (void *)(image + (LEAF - AT));
	leaf[number % KY_AGENT_LEAF_PIECES] = PIECE - (number << KY_AGENT_PIECE_SHIFT) * 4;
}

static void prepare(void)
{
	const int fd = memfd_create(KY_AGENT_NAME, MFD_CLOEXEC);
	own = ky_proc_open(getpid(), "mem", O_RDONLY);
	check(fd >= 0 && ftruncate(fd, BYTES) == 0 && own >= 0);
	memory = mmap((void *)(uintptr_t)AT, BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);
	check(memory == (void *)(uintptr_t)AT);
	image = calloc(1, TOUCHED);
	check(image != NULL);
	make_image();
	for (uint64_t i = 0; i < KY_AGENT_LEAF_PIECES; i++) {
		const uint64_t biased = PIECE - (i << KY_AGENT_PIECE_SHIFT) * 4;
		memcpy(memory + (SAME_LEAF - AT) + i * 8, &biased, 8);
	}
	/* Return slots and a stack, all of it touched. */
	const struct ky_agent_call call = {.returns = AT + 64, .hook = AT + 128};
	for (uint64_t at = PIECE; at < STACK; at += sizeof(call))
		memcpy(memory + (at - AT), &call, sizeof(call));
	for (uint64_t at = STACK; at < AT + BYTES; at += 8)
		memcpy(memory + (at - AT), &call.hook, 8);
	close(fd);
}

static void apply(const uint8_t *data, size_t bytes)
{
	const uint8_t *last = NULL;
	uint64_t place = 0, length = 0;
	memcpy(memory, image, TOUCHED);
	while (bytes >= 4) {
		uint64_t count = 1;
		if (data[2]) {
			place = ((uint64_t)data[0] | (uint64_t)data[1] << 8) * 8;
			length = data[2];
			last = data + 3;
			if (length > bytes - 3)
				return;
		} else {
			count = data[3];
		}
		for (uint64_t i = 0; last && i < count && place + length <= TOUCHED; i++) {
			memcpy(memory + place, last, length);
			place += data[2] ? 0 : KY_PATCH_PAGE;
		}
		const size_t taken = data[2] ? 3 + length : 4;
		data += taken;
		bytes -= taken;
	}
}

static void see_part(struct ky_patch *patch, uint64_t at, uint64_t bytes)
{
	(void)patch;
	sum += at + bytes;
}

static void use(struct ky_patch *patch)
{
	char message[KY_MESSAGE_BYTES];
	sum += ky_patch_undo_needed(patch);
	sum += (uint64_t)ky_patch_undo_check(patch, message);
	for (uint32_t i = 0; i < ENTRIES; i++)
		sum += ky_patch_table_find(patch, AT + i * 64, 0);
	ky_patch_table_count(patch);
	ky_agent_memory_sizes(patch);
	sum += ky_agent_memory_left(patch);
	ky_agent_memory_drum(patch, see_part);
	sum += (uint64_t)ky_agent_memory_refill(patch);
	ky_agent_memory_unguard(patch);
	ky_agent_memory_unlock(patch);
	ky_agent_memory_trim(patch);
	ky_agent_memory_give_back(patch, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (own < 0)
		prepare();
	apply(data, bytes);
	struct ky_patch *patch = calloc(1, sizeof(*patch));
	check(patch != NULL);
	patch->remote = (struct ky_remote){.pid = getpid(), .memory = dup(own)};
	check(patch->remote.memory >= 0);
	if (ky_agent_memory_read(patch) == 0) {
		sum += ky_agent_memory_owned(&patch->home) + ky_agent_memory_is_mine(&patch->home);
		if (patch->home.version && ky_patch_table_read(patch) == 0)
			use(patch);
	}
	ky_patch_free(patch);
	/* kymo cannot write here. */
	check(memory[STACK - AT] == (uint8_t)(AT + 128));
	return 0;
}
