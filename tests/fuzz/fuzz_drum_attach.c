/* SPDX-License-Identifier: MIT */
/*
 * fuzz_drum_attach.c: a drum whose owner writes anything into it while kymo is attached: categories
 * are switched, events read, windows taken, facts asked for. The first byte says how:
 *
 *   bit 0   a second thread writes the patches over and over; else they come before
 *   bit 1   flight mode
 *   bit 2   select categories by globs
 *   bit 3   decoded events as well
 *   bit 4   a file, not a sealed memfd; it is cut short in the middle
 *   bit 5   the patches come after the attach
 *
 * The rest is patches: a place (3 bytes), a length (1 byte, at most 63), and the bytes. Places are
 * spread over the parts of the drum where something is. It must end, and stay within the drum;
 * after it, what was outside the drum is as it was.
 */
#include "budget.h"
#include "capture/drums.h"
#include "core/drum.h"
#include "os/os.h"

#include <fcntl.h>
#include <kymo/kymo.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* With the first input the drum itself is made. */
uint64_t fuzz_budget_bytes = 32u << 20;

#define BUNDLE_INPUTS 100u

static uint8_t *image; /* as the recorder left it */
static uint64_t image_bytes;
static struct ky_bundle *bundle;
static uint64_t sum;

static void check(int holds)
{
	if (!holds)
		abort();
}

static void record_all(void)
{
	kymo_thread_name("fuzz");
	for (int i = 0; i < 800; i++) {
		KYMO_SCOPE("net", "recv", "bytes", i, "peer", "somebody");
		KYMO_COUNTER("db", "rows", 0.5 * i);
		KYMO_PRINT("log", "%d of %s", i, "many");
	}
	kymo_mark_start();
	kymo_snapshot("why", 7);
}

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
	image_bytes = (drum->header->space_at + drum->header->space_used + 4095) & ~UINT64_C(4095);
	image = malloc(image_bytes);
	check(image != NULL);
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
	const uint64_t to[] = {2048, header->heap_at, header->heap_at + header->heap_used + 64,
			       image_bytes};
	const uint32_t part = at[2] >> 6;
	return from[part] + offset % (to[part] - from[part]);
}

struct foe {
	pthread_t thread;
	uint8_t *drum;
	const uint8_t *data;
	size_t bytes;
	_Atomic bool stop;
};

static void patch(const struct foe *foe)
{
	const uint8_t *data = foe->data;
	for (size_t bytes = foe->bytes; bytes >= 5;) {
		const uint64_t place = place_of(data);
		size_t size = data[3] & 63;
		size = size > bytes - 4 ? bytes - 4 : size;
		size = size > image_bytes - place ? (size_t)(image_bytes - place) : size;
		for (size_t i = 0; i < size; i++)
			__atomic_store_n(foe->drum + place + i, data[4 + i], __ATOMIC_RELAXED);
		data += 4 + size;
		bytes -= 4 + size;
	}
}

/* And back again, so that everything is right now and then. */
static void *scribble(void *context)
{
	struct foe *foe = context;
	while (!foe->stop) {
		patch(foe);
		for (uint64_t i = 0; i < image_bytes && !foe->stop; i += 8)
			__atomic_store_n((uint64_t *)(void *)(foe->drum + i),
					 *(const uint64_t *)(const void *)(image + i),
					 __ATOMIC_RELAXED);
	}
	return NULL;
}

static int make_drum(bool file)
{
	char path[] = "/tmp/kymo-fuzz-XXXXXX";
	const int fd = file ? mkstemp(path) : ky_os_memfd(KY_DRUM_NAME, image_bytes);
	check(fd >= 0 && (!file || unlink(path) == 0));
	check(ky_os_write(fd, image, image_bytes, 0) == 0);
	return fd;
}

static void on_event(void *context, pid_t pid, const struct ky_event *event)
{
	(void)context;
	check(pid == getpid() && event->thread->pid == pid);
	check(event->name.data[event->name.bytes] == '\0');
	sum += event->time_ns + event->args_count;
}

static void look_at_all(struct ky_drums *drums)
{
	struct ky_drums_facts facts;
	char name[64];
	bool on;
	for (uint32_t i = 0; ky_drums_facts(drums, i, &facts); i++) {
		check(strlen(facts.name) < sizeof(facts.name) && facts.pressure <= 100);
		for (uint32_t c = 0; c < 16; c++)
			if (ky_drums_category(drums, i, c, name, sizeof(name), &on))
				sum += strlen(name) + on;
	}
}

static void attach(int fd, const struct foe *foe, uint8_t how)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_drums *drums;
	const struct ky_drums_options options = {.bundle = bundle,
						 .categories = how & 4 ? "net,log*,-db" : NULL,
						 .flight = (how & 2) != 0,
						 .switch_on = true,
						 .ring_bytes = 1 << 20,
						 .event = how & 8 ? on_event : NULL};
	check(ky_drums_open(&drums, &options) == 0);
	const int added = ky_drums_add(drums, fd, getpid(), message);
	check(added <= 0 && !strchr(message, '\n') && (added == 0 || message[0]));
	if (how & 32)
		patch(foe);
	for (int i = 0; i < 4; i++) {
		(void)ky_drums_round(drums, i == 1);
		ky_drums_window(drums, (uint64_t)i * 1000, UINT64_MAX / (uint64_t)(4 - i));
		sum += ky_drums_mark(drums, 0);
		look_at_all(drums);
		if (i == 2 && how & 16)
			check(ftruncate(fd, (off_t)(foe->bytes * 64 % image_bytes)) == 0);
	}
	if (how & 4)
		ky_drums_ended(drums, getpid());
	ky_drums_close(&drums);
}

/* What is gathered for all inputs stays small. */
static void refresh_bundle(void)
{
	static uint32_t inputs;
	char message[KY_MESSAGE_BYTES];
	static int null = -1;
	if (null < 0)
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (inputs++ % BUNDLE_INPUTS != 0)
		return;
	check(ky_bundle_close(&bundle) == 0);
	check(ky_bundle_open(&bundle, &(struct ky_bundle_options){.fd = null}, message) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (!image)
		make_image();
	if (bytes == 0)
		return 0;
	uint8_t how = data[0];
#ifdef KY_SANITIZE_THREAD
	how &= 0xfe; /* scribbling is a race, on purpose */
#endif
	if (how & 16)
		how &= 0xde; /* who scribbles over a file that is cut short dies of it */
	refresh_bundle();
	const int fd = make_drum((how & 16) != 0);
	struct foe foe = {.data = data + 1, .bytes = bytes - 1};
	foe.drum = mmap(NULL, image_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(foe.drum != MAP_FAILED);
	if (how & 1)
		check(pthread_create(&foe.thread, NULL, scribble, &foe) == 0);
	else if (!(how & 32))
		patch(&foe);
	attach(fd, &foe, how);
	foe.stop = true;
	if (how & 1)
		pthread_join(foe.thread, NULL);
	munmap(foe.drum, image_bytes);
	close(fd);
	return 0;
}
