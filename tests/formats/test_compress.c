/* SPDX-License-Identifier: MIT */
/*
 * test_compress.c: what the run-time loaded compressors make is read back here with the libraries'
 * own headers, which also checks the layouts that compress.c declares by itself.
 *
 * A machine without the libraries is played by this program's own dlopen(), which the linker
 * prefers to libc's. A library once loaded stays so: those tests come first.
 */
#include "formats/compress.h"

#include <dlfcn.h>
#include <errno.h>
#include <kymo/session.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

static bool libraries_absent;

void *dlopen(const char *file, int mode)
{
	void *(*real)(const char *, int);
	void *const symbol = dlsym(RTLD_NEXT, "dlopen");

	if (libraries_absent)
		return NULL;
	memcpy(&real, &symbol, sizeof(real));
	return real(file, mode);
}

struct sink {
	unsigned char data[1 << 20];
	size_t bytes;
	unsigned calls;
	int error;
};

static int sink_write(void *context, const void *data, size_t bytes)
{
	struct sink *const sink = context;

	sink->calls++;
	if (sink->error)
		return sink->error;
	assert_true(bytes <= sizeof(sink->data) - sink->bytes);
	memcpy(sink->data + sink->bytes, data, bytes);
	sink->bytes += bytes;
	return 0;
}

static int sink_setup(void **state)
{
	*state = calloc(1, sizeof(struct sink));
	return *state ? 0 : -1;
}

static int sink_teardown(void **state)
{
	free(*state);
	return 0;
}

/* Trace-like text: repetitive, not trivially so. */
static size_t make_text(char *text, size_t room)
{
	size_t used = 0;

	for (unsigned i = 0; used + 64 < room; i++)
		used += (size_t)snprintf(text + used, 64, "{\"name\":\"span%u\",\"ts\":%u},\n",
					 i % 13, i * 2654435761u);
	return used;
}

/* Reads as much as there is; *ended says whether the trailer was there and right. */
static size_t gunzip(const struct sink *sink, char *text, size_t room, bool *ended)
{
	z_stream stream = {.next_in = (z_const Bytef *)sink->data,
			   .avail_in = (uInt)sink->bytes,
			   .next_out = (Bytef *)text,
			   .avail_out = (uInt)room};

	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	const int result = inflate(&stream, Z_SYNC_FLUSH);
	assert_true(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR);
	*ended = result == Z_STREAM_END;
	inflateEnd(&stream);
	return room - stream.avail_out;
}

static void without_libz_opening_says_so(void **state)
{
	(void)state;
	struct ky_gzip *gzip = (void *)state;

	libraries_absent = true;
	assert_int_equal(ky_gzip_load(), KYMO_EZLIB);
	assert_int_equal(ky_gzip_open(&gzip, 0), KYMO_EZLIB);
	libraries_absent = false;
	assert_null(gzip);
	ky_gzip_close(&gzip);
}

static void without_libzstd_opening_says_so(void **state)
{
	(void)state;
	struct ky_zstd *zstd = (void *)state;

	libraries_absent = true;
	assert_int_equal(ky_zstd_load(), -ENOENT);
	assert_int_equal(ky_zstd_open(&zstd), -ENOENT);
	libraries_absent = false;
	assert_null(zstd);
	ky_zstd_close(&zstd);
}

static void *load_both(void *unused)
{
	(void)unused;
	return ky_gzip_load() == 0 && ky_zstd_load() == 0 ? NULL : (void *)1;
}

static void threads_may_load_at_once(void **state)
{
	(void)state;
	pthread_t threads[8];
	void *failed;

	for (size_t i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, load_both, NULL), 0);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
}

static void a_loaded_library_needs_no_loading_again(void **state)
{
	(void)state;
	struct ky_gzip *gzip;
	struct ky_zstd *zstd;

	libraries_absent = true;
	assert_int_equal(ky_gzip_open(&gzip, 0), 0);
	assert_int_equal(ky_zstd_open(&zstd), 0);
	libraries_absent = false;
	ky_gzip_close(&gzip);
	ky_zstd_close(&zstd);
	assert_null(gzip);
	assert_null(zstd);
}

static void a_gzip_stream_reads_back_and_is_smaller(void **state)
{
	struct sink *const sink = *state;
	static char text[400000];
	static char back[sizeof(text) + 1];
	const size_t bytes = make_text(text, sizeof(text));
	struct ky_gzip *gzip;
	bool ended;

	assert_int_equal(ky_gzip_open(&gzip, 0), 0);
	for (size_t at = 0; at < bytes;) {
		const size_t part = bytes - at < 7777 ? bytes - at : 7777;
		assert_int_equal(
			ky_gzip_write(gzip, text + at, part, KY_GZIP_MORE, sink_write, sink), 0);
		at += part;
	}
	assert_int_equal(ky_gzip_write(gzip, NULL, 0, KY_GZIP_FINISH, sink_write, sink), 0);
	ky_gzip_close(&gzip);
	assert_int_equal(gunzip(sink, back, sizeof(back), &ended), bytes);
	assert_true(ended);
	assert_memory_equal(text, back, bytes);
	assert_true(sink->bytes < bytes / 2);
	assert_true(sink->calls < 10);
}

static void data_that_does_not_compress_fills_the_buffer_many_times(void **state)
{
	struct sink *const sink = *state;
	static char noise[300000];
	static char back[sizeof(noise) + 1];
	struct ky_gzip *gzip;
	uint64_t x = 88172645463325252u;
	bool ended;

	for (size_t i = 0; i < sizeof(noise); i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		noise[i] = (char)x;
	}
	assert_int_equal(ky_gzip_open(&gzip, 9), 0);
	assert_int_equal(
		ky_gzip_write(gzip, noise, sizeof(noise), KY_GZIP_FINISH, sink_write, sink), 0);
	ky_gzip_close(&gzip);
	assert_true(sink->calls > 3);
	assert_int_equal(gunzip(sink, back, sizeof(back), &ended), sizeof(noise));
	assert_true(ended);
	assert_memory_equal(noise, back, sizeof(noise));
}

static void a_stream_cut_off_after_a_sync_reads_up_to_it(void **state)
{
	struct sink *const sink = *state;
	char back[64];
	struct ky_gzip *gzip;
	bool ended;

	assert_int_equal(ky_gzip_open(&gzip, 1), 0);
	assert_int_equal(ky_gzip_write(gzip, "one ", 4, KY_GZIP_SYNC, sink_write, sink), 0);
	assert_int_equal(ky_gzip_write(gzip, "two ", 4, KY_GZIP_SYNC, sink_write, sink), 0);
	assert_int_equal(ky_gzip_write(gzip, "three", 5, KY_GZIP_MORE, sink_write, sink), 0);
	ky_gzip_close(&gzip);
	assert_int_equal(gunzip(sink, back, sizeof(back), &ended), 8);
	assert_false(ended);
	assert_memory_equal(back, "one two ", 8);
}

static void a_sync_with_nothing_new_is_free_of_errors(void **state)
{
	struct sink *const sink = *state;
	char back[8];
	struct ky_gzip *gzip;
	bool ended;

	assert_int_equal(ky_gzip_open(&gzip, 1), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(ky_gzip_write(gzip, "", 0, KY_GZIP_SYNC, sink_write, sink), 0);
	assert_int_equal(ky_gzip_write(gzip, "", 0, KY_GZIP_FINISH, sink_write, sink), 0);
	assert_int_equal(ky_gzip_write(gzip, "x", 1, KY_GZIP_MORE, sink_write, sink), -EINVAL);
	ky_gzip_close(&gzip);
	assert_int_equal(gunzip(sink, back, sizeof(back), &ended), 0);
	assert_true(ended);
}

static void the_first_write_error_stays(void **state)
{
	struct sink *const sink = *state;
	struct ky_gzip *gzip;

	assert_int_equal(ky_gzip_open(&gzip, 1), 0);
	sink->error = -ENOSPC;
	assert_int_equal(ky_gzip_write(gzip, "x", 1, KY_GZIP_SYNC, sink_write, sink), -ENOSPC);
	sink->error = 0;
	assert_int_equal(ky_gzip_write(gzip, "y", 1, KY_GZIP_SYNC, sink_write, sink), -ENOSPC);
	assert_int_equal(sink->calls, 1);
	ky_gzip_close(&gzip);
}

static void zstd_blocks_read_back(void **state)
{
	(void)state;
	static char text[100000];
	static char packed[110000];
	static char back[sizeof(text)];
	struct ky_zstd *zstd;

	const size_t bytes = make_text(text, sizeof(text));
	assert_int_equal(ky_zstd_open(&zstd), 0);
	assert_true(ky_zstd_bound(zstd, bytes) <= sizeof(packed));
	for (int level = -5; level < 10; level += 3) {
		const int64_t size =
			ky_zstd_compress(zstd, packed, sizeof(packed), text, bytes, level);
		assert_true(size > 0 && (size_t)size < bytes);
		assert_int_equal(ky_zstd_content_bytes(zstd, packed, (size_t)size), bytes);
		assert_int_equal(ZSTD_decompress(back, sizeof(back), packed, (size_t)size), bytes);
		memset(back, 0, sizeof(back));
		assert_int_equal(ky_zstd_decompress(zstd, back, sizeof(back), packed, (size_t)size),
				 bytes);
		assert_memory_equal(text, back, bytes);
	}
	ky_zstd_close(&zstd);
}

static void zstd_says_when_room_is_too_small(void **state)
{
	(void)state;
	char text[1000];
	char packed[2000];
	char back[1000];
	struct ky_zstd *zstd;

	const size_t bytes = make_text(text, sizeof(text));
	assert_int_equal(ky_zstd_open(&zstd), 0);
	const int64_t size = ky_zstd_compress(zstd, packed, sizeof(packed), text, bytes, 1);
	assert_true(size > 0);
	assert_int_equal(ky_zstd_compress(zstd, back, 10, text, bytes, 1), -EMSGSIZE);
	assert_int_equal(ky_zstd_decompress(zstd, back, bytes - 1, packed, (size_t)size),
			 -EMSGSIZE);
	ky_zstd_close(&zstd);
}

static void zstd_refuses_what_is_malformed(void **state)
{
	(void)state;
	char text[1000];
	char packed[2000];
	char back[1000];
	struct ky_zstd *zstd;

	const size_t bytes = make_text(text, sizeof(text));
	assert_int_equal(ky_zstd_open(&zstd), 0);
	const int64_t size = ky_zstd_compress(zstd, packed, sizeof(packed), text, bytes, 1);
	for (size_t cut = 1; cut < (size_t)size; cut++)
		assert_int_equal(ky_zstd_decompress(zstd, back, sizeof(back), packed, cut),
				 -EBADMSG);
	assert_int_equal(ky_zstd_decompress(zstd, back, sizeof(back), text, bytes), -EBADMSG);
	assert_int_equal(ky_zstd_content_bytes(zstd, text, bytes), -EBADMSG);
	assert_int_equal(ky_zstd_content_bytes(zstd, "", 0), -EBADMSG);
	ky_zstd_close(&zstd);
}

int main(void)
{
#define WITH_SINK(test) cmocka_unit_test_setup_teardown(test, sink_setup, sink_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_libz_opening_says_so),
		cmocka_unit_test(without_libzstd_opening_says_so),
		cmocka_unit_test(threads_may_load_at_once),
		cmocka_unit_test(a_loaded_library_needs_no_loading_again),
		WITH_SINK(a_gzip_stream_reads_back_and_is_smaller),
		WITH_SINK(data_that_does_not_compress_fills_the_buffer_many_times),
		WITH_SINK(a_stream_cut_off_after_a_sync_reads_up_to_it),
		WITH_SINK(a_sync_with_nothing_new_is_free_of_errors),
		WITH_SINK(the_first_write_error_stays),
		cmocka_unit_test(zstd_blocks_read_back),
		cmocka_unit_test(zstd_says_when_room_is_too_small),
		cmocka_unit_test(zstd_refuses_what_is_malformed),
	};
	return cmocka_run_group_tests_name("compress", tests, NULL, NULL);
}
