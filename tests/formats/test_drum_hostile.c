/* SPDX-License-Identifier: MIT */
/*
 * test_drum_hostile.c: drums whose headers claim more than there is. Reading one takes work and memory in proportion to
 * its data: no memory is made of holes, and no block is read twice.
 */
#include "core/layout.h"
#include "formats/drum/drum_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define RINGS 4096u
#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

/* Where the parts of the drums are. */
enum { CATEGORIES_AT = 4096, RINGS_AT = 8192, HEAP_AT = RINGS_AT + RINGS * 64 };
static const uint64_t heap_bytes = 65536, space_at = HEAP_AT + 65536;

static void put(int fd, const void *data, size_t bytes, uint64_t at)
{
	assert_int_equal(pwrite(fd, data, bytes, (off_t)at), bytes);
}

/* Make a drum of 3 GiB without rings, with clock readings in its last third: a hole but for the header. */
static struct ky_drum_header make_header(int fd)
{
	const struct ky_drum_header header = {
		.magic = KY_DRUM_MAGIC,
		.version = KY_DRUM_VERSION,
		.header_bytes = KY_DRUM_HEADER_BYTES,
		.drum_bytes = 3 * GIB,
		.pid = (uint32_t)getpid(),
		.tick_source = 1,
		.clock_at = 2 * GIB,
		.clock_max = GIB / 32 - 1,
		.categories_at = CATEGORIES_AT,
		.categories_max = 16,
		.rings_at = RINGS_AT,
		.rings_max = RINGS,
		.heap_at = HEAP_AT,
		.heap_bytes = heap_bytes,
		.space_at = space_at,
		.space_bytes = 2 * GIB - space_at,
	};
	put(fd, &header, sizeof(header), 0);
	assert_int_equal(ftruncate(fd, (off_t)header.drum_bytes), 0);
	return header;
}

static int make_memory(void)
{
	const int fd = memfd_create(KY_DRUM_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0);
	return fd;
}

static int make_file(void)
{
	char path[] = "/tmp/kymo-hostile-XXXXXX";
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

static uint64_t memory_of(int fd)
{
	struct stat status;
	assert_int_equal(fstat(fd, &status), 0);
	return (uint64_t)status.st_blocks * 512;
}

static void on_event(void *context, const struct ky_event *event)
{
	(void)context;
	(void)event;
}

/* Read it as a whole, twice if it may go on. */
static struct ky_drum_facts read_drum(int fd)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_drum_file *file = NULL;
	struct ky_stream *stream = NULL;
	struct ky_drum_facts facts;
	assert_int_equal(ky_drum_file_open_fd(&file, fd, "hostile", message), 0);
	assert_int_equal(ky_drum_file_stream(file, NULL, false, &stream, message), 0);
	stream->sink = (struct ky_stream_sink){.event = on_event};
	assert_int_equal(ky_drum_file_read(file, false), 0);
	assert_int_equal(ky_drum_file_read(file, true), 0);
	ky_drum_file_facts(file, &facts);
	ky_drum_file_close(&file);
	return facts;
}

static void claim_rings(int fd, uint32_t count, uint64_t bytes)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct ky_drum_ring ring = {
			.at = space_at, .bytes = bytes, .head = UINT64_C(1) << 40, .owner = 1};
		put(fd, &ring, sizeof(ring), RINGS_AT + i * sizeof(ring));
	}
	put(fd, &count, sizeof(count), offsetof(struct ky_drum_header, rings_used));
}

static void claim_clock(int fd, const struct ky_drum_header *header)
{
	put(fd, &header->clock_max, 4, header->clock_at + offsetof(struct ky_drum_clock, count));
}

static void seal(int fd)
{
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
}

static void holes_of_a_process_get_no_memory(void **state)
{
	(void)state;
	const int fd = make_memory();
	const struct ky_drum_header header = make_header(fd);
	claim_rings(fd, 1, GIB);
	claim_clock(fd, &header);
	seal(fd);
	const uint64_t before = memory_of(fd);
	read_drum(fd);
	assert_in_range(memory_of(fd), before, before + MIB);
	close(fd);
}

static void holes_of_a_file_are_not_looked_at(void **state)
{
	(void)state;
	const int fd = make_file();
	const struct ky_drum_header header = make_header(fd);
	struct rusage before, after;
	claim_rings(fd, 1, GIB);
	claim_clock(fd, &header);
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	read_drum(fd);
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	/* A page of the ring and of the readings each would be half a million. */
	assert_in_range(after.ru_minflt - before.ru_minflt, 0, 50000);
	close(fd);
}

/* Fill the first blocks of the space with words that look like events. Return how many there are. */
static uint64_t put_blocks(int fd, uint32_t blocks)
{
	struct ky_drum_block block = {.tid = 7};
	const uint64_t words = sizeof(block.words) / 8;
	for (uint64_t i = 0; i < words; i++)
		block.words[i] = (HEAP_AT / KY_HEAP_UNIT + UINT64_C(1)) << KY_WORD_SITE_SHIFT | i;
	for (uint32_t i = 0; i < blocks; i++) {
		block.seq = (UINT64_C(1) << 40) - blocks + i + 1;
		put(fd, &block, sizeof(block), space_at + i * sizeof(block));
	}
	return blocks * words;
}

static void rings_in_one_place(int fd)
{
	make_header(fd);
	const uint64_t words = put_blocks(fd, 16);
	claim_rings(fd, RINGS, 16 * KY_BLOCK_BYTES);
	if (fcntl(fd, F_GET_SEALS) >= 0)
		seal(fd);
	const struct ky_drum_facts facts = read_drum(fd);
	assert_true(facts.damaged > RINGS / 2); /* the rings themselves */
	/* The header and the directory are data, too: some rings are read that are the same. */
	assert_in_range(facts.events + facts.damaged, words, 8 * words + RINGS);
	close(fd);
}

static void blocks_are_not_read_for_each_ring_that_claims_them(void **state)
{
	(void)state;
	rings_in_one_place(make_file());
	rings_in_one_place(make_memory());
}

/* Blocks after a hole are found, and a ring that wraps around too. */
static void data_behind_holes_is_read(void **state)
{
	(void)state;
	const int fd = make_file();
	make_header(fd);
	struct ky_drum_block block = {.tid = 7};
	block.words[0] = (HEAP_AT / KY_HEAP_UNIT + UINT64_C(1)) << KY_WORD_SITE_SHIFT | 1;
	const uint64_t blocks = GIB / KY_BLOCK_BYTES;
	const uint64_t places[] = {0, 1, 70, 1000, blocks - 1};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		block.seq = (UINT64_C(1) << 40) - blocks + places[i] + 1;
		put(fd, &block, sizeof(block), space_at + places[i] * KY_BLOCK_BYTES);
	}
	claim_rings(fd, 1, GIB);
	/* None of the trace points is there: each event is damage. */
	assert_int_equal(read_drum(fd).damaged, sizeof(places) / sizeof(places[0]));
	close(fd);
}

static void a_fifo_with_the_name_of_a_drum_is_not_opened(void **state)
{
	(void)state;
	char folder[] = "/tmp/kymo-hostile-XXXXXX", path[64], message[KY_MESSAGE_BYTES] = "";
	char text[8] = "";
	struct ky_drum_file *file = NULL;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/kymo-1.drum", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	const int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(write(fd, "mine", 4), 4);
	assert_int_equal(ky_drum_file_open_pid(&file, getpid(), message), -EINVAL);
	assert_non_null(strstr(message, "is no file"));
	assert_int_equal(read(fd, text, sizeof(text)), 4);
	close(fd);
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holes_of_a_process_get_no_memory),
		cmocka_unit_test(holes_of_a_file_are_not_looked_at),
		cmocka_unit_test(blocks_are_not_read_for_each_ring_that_claims_them),
		cmocka_unit_test(data_behind_holes_is_read),
		cmocka_unit_test(a_fifo_with_the_name_of_a_drum_is_not_opened),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
