/* SPDX-License-Identifier: MIT */
/* test_input.c: the bytes of an input arrive as they were before they were packed, from wherever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "formats/input.h"

struct bytes {
	uint8_t *data;
	size_t count;
};

static char folder[] = "/tmp/kymo-test-input-XXXXXX";

/* Text that packs well, but not to nothing. */
static struct bytes make_text(size_t count)
{
	struct bytes text = {malloc(count + 64), 0};
	assert_non_null(text.data);
	for (uint32_t i = 0; text.count < count; i++)
		text.count += (size_t)sprintf((char *)text.data + text.count, "event %u of %u\n", i,
					      i * 2654435761u);
	text.count = count;
	return text;
}

static struct bytes deflated(struct bytes from, int window_bits)
{
	z_stream z = {0};
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
	const size_t room = deflateBound(&z, from.count) + 64;
	struct bytes to = {malloc(room), 0};
	z.next_in = from.data;
	z.avail_in = (uInt)from.count;
	z.next_out = to.data;
	z.avail_out = (uInt)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	to.count = z.total_out;
	deflateEnd(&z);
	return to;
}

static struct bytes gzipped(struct bytes from)
{
	return deflated(from, 15 + 16);
}

static struct bytes zstded(struct bytes from)
{
	const size_t room = ZSTD_compressBound(from.count);
	struct bytes to = {malloc(room), 0};
	to.count = ZSTD_compress(to.data, room, from.data, from.count, 1);
	assert_false(ZSTD_isError(to.count));
	return to;
}

static struct bytes joined(struct bytes a, struct bytes b)
{
	struct bytes to = {malloc(a.count + b.count), a.count + b.count};
	memcpy(to.data, a.data, a.count);
	memcpy(to.data + a.count, b.data, b.count);
	return to;
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value);
	put16(at + 2, value >> 16);
}

/* A zip of members "a", "b", ...; stored ones when method is 0. */
static struct bytes zipped(const struct bytes *members, int count, int method, bool directory)
{
	struct bytes to = {calloc(1, 1 << 20), 0};
	uint32_t places[8];
	struct bytes packed[8];
	for (int i = 0; i < count; i++) {
		packed[i] = method ? deflated(members[i], -15) : members[i];
		uint8_t *head = to.data + to.count;
		places[i] = (uint32_t)to.count;
		memcpy(head, "PK\3\4", 4);
		put16(head + 8, (uint32_t)method);
		put32(head + 18, (uint32_t)packed[i].count);
		put32(head + 22, (uint32_t)members[i].count);
		put16(head + 26, 1);
		head[30] = (uint8_t)('a' + i);
		memcpy(head + 31, packed[i].data, packed[i].count);
		to.count += 31 + packed[i].count;
	}
	const size_t directory_at = to.count;
	for (int i = 0; i < count; i++) {
		uint8_t *entry = to.data + to.count;
		memcpy(entry, "PK\1\2", 4);
		put16(entry + 10, (uint32_t)method);
		put32(entry + 20, (uint32_t)packed[i].count);
		put32(entry + 24, (uint32_t)members[i].count);
		put16(entry + 28, 1);
		put32(entry + 42, places[i]);
		entry[46] = (uint8_t)('a' + i);
		to.count += 47;
		if (method)
			free(packed[i].data);
	}
	uint8_t *end = to.data + to.count;
	memcpy(end, "PK\5\6", 4);
	put16(end + 10, (uint32_t)count);
	put32(end + 12, (uint32_t)(to.count - directory_at));
	put32(end + 16, (uint32_t)directory_at);
	to.count = directory ? to.count + 22 : directory_at;
	return to;
}

/* Reads on in odd steps; the input's bytes from here on must be these. */
static void rest_is(struct ky_input *input, const uint8_t *data, size_t count)
{
	size_t done = 0;
	for (size_t step = 1; done < count; step = step * 3 % 70001 + 1) {
		const size_t want = step < count - done ? step : count - done;
		assert_true(ky_input_need(input, want));
		assert_memory_equal(input->at, data + done, want);
		assert_int_equal(*input->end, 0);
		ky_input_skip(input, want);
		done += want;
	}
	assert_false(ky_input_need(input, 1));
	assert_true(input->ended);
}

static void arrives_as(struct bytes packed, struct bytes text)
{
	struct ky_input *input;
	assert_int_equal(ky_input_open_memory(&input, packed.data, packed.count, "test"), 0);
	rest_is(input, text.data, text.count);
	assert_int_equal(input->position, text.count);
	assert_int_equal(input->error, 0);
	assert_int_equal(ky_input_rewind(input), 0);
	rest_is(input, text.data, text.count);
	ky_input_close(&input);
	assert_null(input);
}

static void plain_bytes_arrive_as_they_are(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 511, 512, 513, 4096, 1 << 20, (1 << 20) + 1, 3000000};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bytes text = make_text(sizes[i]);
		arrives_as(text, text);
		free(text.data);
	}
}

static void packed_bytes_arrive_unpacked(void **state)
{
	(void)state;
	static const size_t sizes[] = {1, 100, 70000, 5000000};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bytes text = make_text(sizes[i]);
		struct bytes gzip = gzipped(text);
		struct bytes zlib = deflated(text, 15);
		struct bytes zstd = zstded(text);
		struct bytes both = gzipped(zstd);
		arrives_as(gzip, text);
		arrives_as(zlib, text);
		arrives_as(zstd, text);
		arrives_as(both, text);
		free(gzip.data);
		free(zlib.data);
		free(zstd.data);
		free(both.data);
		free(text.data);
	}
}

static void streams_one_after_the_other_are_one(void **state)
{
	(void)state;
	struct bytes text = make_text(300000);
	const struct bytes first = {text.data, 123456};
	const struct bytes second = {text.data + 123456, text.count - 123456};
	struct bytes (*const pack[])(struct bytes) = {gzipped, zstded};
	for (size_t i = 0; i < 2; i++) {
		struct bytes a = pack[i](first);
		struct bytes b = pack[i](second);
		struct bytes ab = joined(a, b);
		arrives_as(ab, text);
		free(a.data);
		free(b.data);
		free(ab.data);
	}
	struct bytes gzip = gzipped(text);
	uint8_t zeros[512] = {0};
	struct bytes padded = joined(gzip, (struct bytes){zeros, sizeof(zeros)});
	arrives_as(padded, text);
	free(padded.data);
	free(gzip.data);
	free(text.data);
}

/* Reads everything and gives how much there was. */
static uint64_t drain(struct ky_input *input)
{
	while (ky_input_need(input, 1))
		ky_input_skip(input, (size_t)(input->end - input->at));
	return input->position;
}

static void packed_data_that_is_cut_off_gives_what_there_is(void **state)
{
	(void)state;
	struct bytes text = make_text(2000000);
	struct bytes (*const pack[])(struct bytes) = {gzipped, zstded};
	for (size_t i = 0; i < 2; i++) {
		struct bytes packed = pack[i](text);
		struct ky_input *input;
		bool truncated = false;
		assert_int_equal(
			ky_input_open_memory(&input, packed.data, packed.count / 2, "test"), 0);
		const uint64_t got = drain(input);
		assert_true(got > text.count / 10 && got < text.count);
		assert_int_equal(input->error, -EBADMSG);
		assert_non_null(strstr(ky_input_damage(input, &truncated), "cut off"));
		assert_true(truncated);
		ky_input_close(&input);
		free(packed.data);
	}
	free(text.data);
}

static void packed_data_that_is_damaged_gives_what_came_before(void **state)
{
	(void)state;
	struct bytes text = make_text(2000000);
	struct bytes (*const pack[])(struct bytes) = {gzipped, zstded};
	for (size_t i = 0; i < 2; i++) {
		struct bytes packed = pack[i](text);
		struct ky_input *input;
		bool truncated = true;
		memset(packed.data + packed.count / 2, 0xff, 3000);
		assert_int_equal(ky_input_open_memory(&input, packed.data, packed.count, "test"),
				 0);
		assert_true(drain(input) > text.count / 10);
		assert_int_equal(input->error, -EBADMSG);
		assert_non_null(ky_input_damage(input, &truncated));
		assert_false(truncated);
		ky_input_close(&input);
		free(packed.data);
	}
	free(text.data);
}

static void a_claimed_length_takes_no_memory(void **state)
{
	(void)state;
	struct bytes text = make_text(1000);
	struct ky_input *input;
	struct rusage before;
	struct rusage after;
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(ky_input_open_memory(&input, text.data, text.count, "test"), 0);
	assert_false(ky_input_need(input, SIZE_MAX / 4));
	assert_int_equal(input->end - input->at, text.count);
	ky_input_close(&input);
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_maxrss - before.ru_maxrss < 8 << 10);
	free(text.data);
}

static void a_bomb_is_unpacked_in_little_memory(void **state)
{
	(void)state;
	struct bytes zeros = {calloc(1, 64 << 20), 64 << 20};
	struct bytes once = gzipped(zeros);
	struct bytes twice = gzipped(once);
	free(zeros.data);
	struct ky_input *input;
	struct rusage before;
	struct rusage after;
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(ky_input_open_memory(&input, twice.data, twice.count, "test"), 0);
	assert_int_equal(drain(input), 64 << 20);
	ky_input_close(&input);
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_maxrss - before.ru_maxrss < 8 << 10);
	free(once.data);
	free(twice.data);
}

/* As a reader does that needs a line, an event or a page as a whole. */
static void a_bomb_is_not_held_as_a_whole(void **state)
{
	(void)state;
	struct bytes zeros = {calloc(1, 64 << 20), 64 << 20};
	struct bytes once = gzipped(zeros);
	struct bytes twice = gzipped(once);
	free(zeros.data);
	struct ky_input *input;
	bool truncated = true;
	assert_int_equal(ky_input_open_memory(&input, twice.data, twice.count, "test"), 0);
	while (ky_input_more(input))
		assert_true(input->end - input->at < 32 << 20);
	assert_non_null(ky_input_damage(input, &truncated));
	assert_false(truncated);
	ky_input_close(&input);
	/* What gzip alone can do is within reason. */
	assert_int_equal(ky_input_open_memory(&input, once.data, once.count, "test"), 0);
	while (ky_input_more(input))
		;
	assert_int_equal(input->end - input->at, 64 << 20);
	assert_null(ky_input_damage(input, &truncated));
	ky_input_close(&input);
	free(once.data);
	free(twice.data);
}

static void members_of_an_archive_are_tried_in_turn(void **state)
{
	(void)state;
	struct bytes text = make_text(50000);
	const struct bytes members[] = {{text.data, 20000}, {text.data + 20000, 30000}};
	for (int way = 0; way < 4; way++) {
		struct bytes zip = zipped(members, 2, way & 1 ? 8 : 0, !(way & 2));
		struct ky_input *input;
		assert_int_equal(ky_input_open_memory(&input, zip.data, zip.count, "test"), 0);
		assert_int_equal(ky_input_members(input), 2);
		rest_is(input, members[0].data, members[0].count);
		assert_int_equal(ky_input_rewind(input), 0);
		assert_true(ky_input_need(input, 100));
		assert_true(ky_input_next_member(input));
		rest_is(input, members[1].data, members[1].count);
		assert_false(ky_input_next_member(input));
		ky_input_close(&input);
		free(zip.data);
	}
	free(text.data);
}

static void an_archive_in_a_stream_is_found(void **state)
{
	(void)state;
	struct bytes text = make_text(50000);
	struct bytes inner = gzipped(text);
	struct bytes zip = zipped(&inner, 1, 0, true);
	struct bytes outer = zstded(zip);
	arrives_as(outer, text);
	free(outer.data);
	free(zip.data);
	free(inner.data);
	free(text.data);
}

static void any_place_can_be_read(void **state)
{
	(void)state;
	struct bytes text = make_text(3000000);
	struct bytes gzip = gzipped(text);
	const struct bytes forms[] = {text, gzip};
	uint8_t part[1000];
	for (size_t i = 0; i < 2; i++) {
		struct ky_input *input;
		uint64_t bytes = 0;
		assert_int_equal(
			ky_input_open_memory(&input, forms[i].data, forms[i].count, "test"), 0);
		assert_true(ky_input_need(input, 10));
		ky_input_skip(input, 10);
		assert_int_equal(ky_input_read_at(input, 2000000, part, sizeof(part)),
				 sizeof(part));
		assert_memory_equal(part, text.data + 2000000, sizeof(part));
		assert_int_equal(ky_input_read_at(input, text.count - 10, part, sizeof(part)), 10);
		const int fd = ky_input_file(input, &bytes);
		assert_true(fd >= 0);
		assert_int_equal(bytes, text.count);
		assert_int_equal(pread(fd, part, 100, 1234567), 100);
		assert_memory_equal(part, text.data + 1234567, 100);
		assert_int_equal(input->position, 10);
		assert_true(ky_input_skip_far(input, 1999990));
		rest_is(input, text.data + 2000000, text.count - 2000000);
		assert_false(ky_input_skip_far(input, 1));
		ky_input_close(&input);
	}
	free(gzip.data);
	free(text.data);
}

struct feed {
	int fd;
	struct bytes bytes;
};

static void *feed(void *context)
{
	const struct feed *job = context;
	for (size_t done = 0; done < job->bytes.count;) {
		const ssize_t put = write(job->fd, job->bytes.data + done, job->bytes.count - done);
		if (put <= 0)
			break;
		done += (size_t)put;
	}
	close(job->fd);
	return NULL;
}

static void a_pipe_can_be_read_twice_when_remembered(void **state)
{
	(void)state;
	struct bytes text = make_text(3000000);
	struct bytes gzip = gzipped(text);
	const struct bytes forms[] = {text, gzip};
	for (size_t i = 0; i < 2; i++) {
		char path[64];
		char message[KY_MESSAGE_BYTES];
		int ends[2];
		pthread_t thread;
		struct ky_input *input;
		assert_int_equal(pipe(ends), 0);
		struct feed job = {ends[1], forms[i]};
		pthread_create(&thread, NULL, feed, &job);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
		assert_int_equal(ky_input_open(&input, path, NULL, NULL, message), 0);
		assert_true(ky_input_need(input, 1000));
		ky_input_skip(input, 500);
		assert_int_equal(ky_input_rewind(input), 0);
		assert_int_equal(input->position, 0);
		assert_int_equal(ky_input_remember(input), 0);
		rest_is(input, text.data, text.count);
		assert_int_equal(ky_input_rewind(input), 0);
		rest_is(input, text.data, text.count);
		ky_input_close(&input);
		pthread_join(thread, NULL);
		close(ends[0]);
	}
	free(gzip.data);
	free(text.data);
}

static int stop_at(void *context, uint64_t done, uint64_t all)
{
	uint64_t *calls = context;
	assert_true(all == 0 || done <= all);
	return ++*calls == 2 ? -EINTR : 0;
}

static void progress_is_told_and_may_end_it(void **state)
{
	(void)state;
	struct bytes text = make_text(40 << 20);
	struct bytes gzip = gzipped(text);
	const struct bytes forms[] = {text, gzip};
	for (size_t i = 0; i < 2; i++) {
		char path[64];
		char message[KY_MESSAGE_BYTES];
		struct ky_input *input;
		uint64_t calls = 0;
		snprintf(path, sizeof(path), "%s/progress", folder);
		FILE *file = fopen(path, "wb");
		assert_non_null(file);
		assert_int_equal(fwrite(forms[i].data, 1, forms[i].count, file), forms[i].count);
		fclose(file);
		assert_int_equal(ky_input_open(&input, path, stop_at, &calls, message), 0);
		assert_true(drain(input) < 12 << 20);
		assert_int_equal(input->error, -EINTR);
		assert_int_equal(calls, 2);
		ky_input_close(&input);
		unlink(path);
	}
	free(gzip.data);
	free(text.data);
}

static void what_cannot_be_opened_is_said_in_one_line(void **state)
{
	(void)state;
	char message[KY_MESSAGE_BYTES];
	struct ky_input *input;
	assert_int_equal(ky_input_open(&input, "/nowhere/at.all", NULL, NULL, message), -ENOENT);
	assert_null(input);
	assert_string_equal(
		message, "cannot read /nowhere/at.all: No such file or directory: check the path");
	assert_int_equal(ky_input_open(&input, folder, NULL, NULL, message), -EISDIR);
	assert_non_null(strstr(message, folder));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_bytes_arrive_as_they_are),
		cmocka_unit_test(packed_bytes_arrive_unpacked),
		cmocka_unit_test(streams_one_after_the_other_are_one),
		cmocka_unit_test(packed_data_that_is_cut_off_gives_what_there_is),
		cmocka_unit_test(packed_data_that_is_damaged_gives_what_came_before),
		cmocka_unit_test(a_claimed_length_takes_no_memory),
		cmocka_unit_test(a_bomb_is_unpacked_in_little_memory),
		cmocka_unit_test(a_bomb_is_not_held_as_a_whole),
		cmocka_unit_test(members_of_an_archive_are_tried_in_turn),
		cmocka_unit_test(an_archive_in_a_stream_is_found),
		cmocka_unit_test(any_place_can_be_read),
		cmocka_unit_test(a_pipe_can_be_read_twice_when_remembered),
		cmocka_unit_test(progress_is_told_and_may_end_it),
		cmocka_unit_test(what_cannot_be_opened_is_said_in_one_line),
	};
	if (!mkdtemp(folder))
		return 1;
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
