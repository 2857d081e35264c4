/* SPDX-License-Identifier: MIT */
/*
 * fuzz_drum.c: any bytes as a drum. The first byte says how the rest is meant:
 *
 *   bit 0   0: patches onto a drum that the recorder itself made; 1: the whole drum
 *   bit 1   0: decoded events, merged; 1: blocks as they are
 *   bit 2   select categories by globs, and start late
 *   bit 3   a second thread writes the patches over and over while the drum is read
 *   bit 4   follow from now on (newest)
 *   bit 5   as a file
 *   bit 6   as a file that is loaded into the model
 *
 * A patch is a place (3 bytes), a length (1 byte, at most 63), and the bytes. Places are spread over
 * the parts of the drum where something is. The reader must end, stay within the drum, and use memory
 * in proportion to it; every text must end where it says.
 */
#include "budget.h"
#include "core/drum.h"
#include "core/heap.h"
#include "core/stream.h"
#include "core/writer.h"
#include "formats/drum/drum_file.h"
#include "fuzz_load.h"
#include "os/os.h"

#include <kymo/kymo.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Address space, not memory: as much as a drum's head says. */
uint64_t fuzz_budget_bytes = UINT64_C(1) << 60;

#define IMAGE_BYTES_MAX (1u << 20)

static uint8_t *image; /* as the recorder left it */
static uint64_t image_bytes;
static uint8_t *work; /* what is read, as large as the image */

static void check(int holds)
{
	if (!holds)
		abort();
}

static void record_all(void)
{
	const char *made = "made at run time";
	kymo_thread_name("fuzz");
	for (int i = 0; i < 800; i++) {
		KYMO_SCOPE("net", "recv", "bytes", i, "peer", made);
		KYMO_COUNTER("db", "rows", 0.5 * i);
		KYMO_ASYNC_BEGIN_DYN("db", made, i);
		KYMO_ASYNC_END("db", "query", i, "ok", (_Bool)1, "at", (void *)&made);
		KYMO_FLOW_BEGIN("net", "flow", i);
		KYMO_PRINT("log", "%d of %s, %5.2f%%", i, made, 1.5);
	}
	kymo_snapshot("why", 7);
}

/* A small drum with all that there can be in one. The process's own stays untouched afterwards. */
static void make_image(void)
{
	ky_limits.ring_bytes = KY_RING_BYTES_MIN;
	ky_limits.total_bytes = 4 * KY_RING_BYTES_MIN;
	ky_limits.heap_bytes = 16u << 10;
	ky_limits.rings_max = 16;
	ky_limits.categories_max = 16;
	ky_limits.categories = "*";
	struct ky_drum *drum = ky_drum_get();
	check(drum != NULL);
	record_all();
	ky_clock_take(drum, true);
	/* The space that nobody uses is left out. */
	image_bytes = drum->header->space_at + drum->header->space_used;
	check(image_bytes <= IMAGE_BYTES_MAX);
	image = malloc(image_bytes);
	work = malloc(image_bytes);
	check(image && work);
	memcpy(image, drum->base, image_bytes);
	struct ky_drum_header *header = (struct ky_drum_header *)(void *)image;
	header->space_bytes = header->space_used;
	header->drum_bytes = image_bytes;
}

/* From 24 bits to a place: a quarter each for the header, the tables, the heap and the rings. */
static uint64_t place_of(const uint8_t *at)
{
	const struct ky_drum_header *header = (const void *)image;
	const uint64_t offset =
		(uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)(at[2] & 0x3f) << 16;
	const uint64_t from[] = {0, header->clock_at, header->heap_at, header->space_at};
	const uint64_t to[] = {512, header->heap_at, header->heap_at + header->heap_used + 64,
			       image_bytes};
	const uint32_t part = at[2] >> 6;
	return from[part] + offset % (to[part] - from[part]);
}

static void patch(uint8_t *drum, const uint8_t *data, size_t bytes)
{
	while (bytes >= 5) {
		const uint64_t place = place_of(data);
		size_t size = data[3] & 63;
		if (size > bytes - 4)
			size = bytes - 4;
		if (size > image_bytes - place)
			size = (size_t)(image_bytes - place);
		/* Byte by byte: as another process would, at the same time. */
		for (size_t i = 0; i < size; i++)
			__atomic_store_n(drum + place + i, data[4 + i], __ATOMIC_RELAXED);
		data += 4 + size;
		bytes -= 4 + size;
	}
}

struct scribbler {
	pthread_t thread;
	const uint8_t *data;
	size_t bytes;
	_Atomic bool stop;
};

static void *scribble(void *context)
{
	struct scribbler *s = context;
	while (!s->stop) {
		patch(work, s->data, s->bytes);
		const struct ky_drum_header *header = (const void *)image;
		/* And back again, so that everything is right now and then. */
		const uint64_t at = header->space_at;
		for (uint64_t i = at; i < image_bytes && !s->stop; i += 8)
			__atomic_store_n((uint64_t *)(void *)(work + i),
					 *(const uint64_t *)(const void *)(image + i),
					 __ATOMIC_RELAXED);
	}
	return NULL;
}

static uint64_t sum; /* so that every byte handed out is looked at */

static void look_at(struct ky_text text)
{
	check(text.data[text.bytes] == '\0');
	for (uint32_t i = 0; i < text.bytes; i++)
		sum += (uint8_t)text.data[i];
}

static void on_thread(void *context, const struct ky_thread *thread)
{
	(void)context;
	look_at(thread->name);
}

static void on_event(void *context, const struct ky_event *e)
{
	uint64_t *events = context;
	++*events;
	look_at(e->name);
	look_at(e->thread->name);
	check(e->kind > KYMO_KIND_NONE && e->kind <= KYMO_KIND_LOST);
	check((e->site == NULL) == (e->kind == KYMO_KIND_LOST));
	check(e->args_count <= KYMO_ARGS_MAX);
	for (uint32_t i = 0; i < e->args_count; i++) {
		look_at((struct ky_text){e->args[i].key, (uint32_t)strlen(e->args[i].key)});
		check(e->args[i].type <= KYMO_TYPE_STRING);
		if (e->args[i].type == KYMO_TYPE_STRING)
			look_at((struct ky_text){e->args[i].string, e->args[i].string_bytes});
		sum += e->args[i].value.u;
	}
	if (e->site) {
		look_at(e->site->category);
		look_at(e->site->file);
		look_at(e->site->function);
	}
	sum += e->time_ns;
}

static void on_block(void *context, const struct ky_block *block, const struct ky_thread *thread)
{
	uint64_t *events = context;
	*events += block->events;
	look_at(thread->name);
	check(block->count <= KY_BLOCK_WORDS && block->events <= block->count);
	for (uint32_t i = 0; i < block->count; i++)
		sum += block->words[i];
}

static void read_drum(const uint8_t *drum, uint64_t bytes, uint8_t how)
{
	static struct ky_stream stream;
	const char *what = NULL;
	uint64_t events = 0;
	const char *globs = how & 4 ? "net,log*,-db" : NULL;
	const int error = ky_stream_open(&stream, drum, bytes, globs, (how & 16) != 0,
					 how & 4 ? 1000 : 0, &what);
	if (error) {
		check(what && *what);
		return;
	}
	stream.sink = (struct ky_stream_sink){.thread = on_thread,
					      .event = on_event,
					      .block = how & 2 ? on_block : NULL,
					      .context = &events};
	check(ky_stream_read(&stream, 1000) == 0);
	(void)ky_stream_pending(&stream);
	(void)ky_stream_pressure(&stream);
	check(ky_stream_read_all(&stream) == 0);
	/* Whatever the drum says, an event is at least a word of it; what changes is read a few times. */
	check(events <= (how & 8 ? 40 : 2) * (bytes / 8));
	ky_stream_close(&stream);
}

/* The same through a file, which is copied. */
static void read_file(const uint8_t *drum, uint64_t bytes)
{
	static int fd = -1;
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_drum_file *file = NULL;
	struct ky_stream *stream = NULL;
	struct ky_drum_facts facts;
	struct ky_drum_category_facts category;
	uint64_t events = 0;
	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	check(fd >= 0 && ftruncate(fd, 0) == 0 && ky_os_write(fd, drum, bytes, 0) == 0);
	if (ky_drum_file_open_fd(&file, fd, "fuzz", message) != 0) {
		check(!file && *message && !strchr(message, '\n'));
		return;
	}
	check(ky_drum_file_stream(file, NULL, false, &stream, message) == 0);
	stream->sink = (struct ky_stream_sink){.event = on_event, .context = &events};
	check(ky_drum_file_read(file, true) == 0);
	ky_drum_file_facts(file, &facts);
	check(facts.data_bytes <= bytes && events <= 2 * (bytes / 8));
	for (uint32_t i = 0; ky_drum_file_category(file, i, &category); i++)
		for (uint32_t at = 0; at < category.name.bytes; at++)
			sum += (uint8_t)category.name.data[at];
	ky_drum_file_close(&file);
}

static void read_patched(const uint8_t *data, size_t bytes, uint8_t how)
{
	struct scribbler scribbler = {.data = data, .bytes = bytes};
#ifdef KY_SANITIZE_THREAD
	how &= 0xf7; /* scribbling is a race, on purpose */
#endif
	memcpy(work, image, image_bytes);
	if (how & 8)
		check(pthread_create(&scribbler.thread, NULL, scribble, &scribbler) == 0);
	else
		patch(work, data, bytes);
	if (how & 64)
		fuzz_load(work, image_bytes, &ky_reader_drum);
	else if (how & 32)
		read_file(work, image_bytes);
	else
		read_drum(work, image_bytes, how);
	if (how & 8) {
		scribbler.stop = true;
		pthread_join(scribbler.thread, NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (!image)
		make_image();
	if (bytes == 0)
		return 0;
	if (!(data[0] & 1)) {
		read_patched(data + 1, bytes - 1, data[0]);
		return 0;
	}
	uint64_t *aligned = malloc(bytes + 8);
	check(aligned != NULL);
	memcpy(aligned, data + 1, bytes - 1);
	if (data[0] & 64)
		fuzz_load((const uint8_t *)aligned, bytes - 1, &ky_reader_drum);
	else if (data[0] & 32)
		read_file((const uint8_t *)aligned, bytes - 1);
	else
		read_drum((const uint8_t *)aligned, bytes - 1, data[0] & 0xf7);
	free(aligned);
	return 0;
}
