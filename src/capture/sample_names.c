/* SPDX-License-Identifier: MIT */
/*
 * sample_names.c: see sample_names.h. The files may be anybody's, and made to crash their reader, or to keep
 * it for ever (a debug file that is a pipe, or has no end). So a process of its own reads them, file by file, and kymo waits so
 * long and no longer; then another goes on behind the file that it was at.
 *
 *   kymo ◀── packets of whole records, how far it is, notes ── namer
 */
#include "capture/sample_names.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "process/symbolizer.h"
#include "process/symbols.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define MODULE_NS (3 * SECOND_NS)
#define ALL_NS (15 * SECOND_NS)
/* Tables of symbols are read whatever the time is: more is needed only where something is wrong. */
#define NAMER_NS (20 * SECOND_NS)
#define SILENCE_NS (6 * SECOND_NS)
/* A packet has at most one record more: that must fit into what a socket holds. */
#define WRITE_BYTES (64u << 10)
#define PACKET_BYTES_MAX (128u << 10)
#define TEXT_BYTES_MAX 8192u
#define VDSO_BYTES_MAX (64u << 10)

/* ---- addresses ---- */

#define ADDRESSES_MAX (3u << 18)

void ky_sample_addresses_free(struct ky_sample_addresses *addresses)
{
	KY_ARRAY_FREE(addresses->items, addresses->room);
	ky_hash_index_free(&addresses->index);
	*addresses = (struct ky_sample_addresses){0};
}

static uint64_t hash_of(const struct ky_sample_address *one)
{
	return ky_hash_pair(one->address, (uint64_t)one->module << 32 | one->pid);
}

static struct ky_sample_address *find_address(const struct ky_sample_addresses *addresses,
					      const struct ky_sample_address *wanted)
{
	struct ky_hash_probe probe = ky_hash_index_probe(&addresses->index, hash_of(wanted));
	for (uint32_t i; ky_hash_index_next(&probe, &i);) {
		struct ky_sample_address *const one = &addresses->items[i];
		if (one->address == wanted->address && one->module == wanted->module &&
		    one->pid == wanted->pid)
			return one;
	}
	return NULL;
}

static bool append(struct ky_sample_addresses *addresses, const struct ky_sample_address *one)
{
	return KY_ARRAY_GROW(addresses->items, addresses->room, addresses->count + 1) &&
	       ky_hash_index_add(&addresses->index, hash_of(one), addresses->count) &&
	       (addresses->items[addresses->count++] = *one, true);
}

/* Keep only those that are wanted, or were seen since. Return false without memory. */
static bool forget(struct ky_sample_addresses *addresses, uint64_t keep_ns)
{
	const uint32_t count = addresses->count;
	bool fits = true;
	addresses->count = 0;
	ky_hash_index_free(&addresses->index);
	for (uint32_t i = 0; i < count && fits; i++) {
		const struct ky_sample_address one = addresses->items[i];
		if (one.wanted || one.seen >= keep_ns)
			fits = append(addresses, &one);
	}
	return fits;
}

static bool make_room(struct ky_sample_addresses *addresses, uint64_t keep_ns)
{
	if (addresses->count < ADDRESSES_MAX)
		return true;
	/* A third must have been freed: or each new address would go through all of them. */
	return !addresses->left_out && forget(addresses, keep_ns) &&
	       addresses->count < ADDRESSES_MAX / 3 * 2;
}

void ky_sample_addresses_add(struct ky_sample_addresses *addresses,
			     const struct ky_sample_address *one, uint64_t keep_ns)
{
	struct ky_sample_address *const known = find_address(addresses, one);
	if (known) {
		known->seen = one->seen;
		known->wanted |= one->wanted;
	} else if (!make_room(addresses, keep_ns) || !append(addresses, one)) {
		addresses->left_out++;
	}
}

void ky_sample_addresses_want(struct ky_sample_addresses *addresses, uint64_t since)
{
	for (uint32_t i = 0; i < addresses->count; i++)
		addresses->items[i].wanted |= addresses->items[i].seen >= since;
}

KY_ORDER(by_module, struct ky_sample_address,
	 KY_COMPARE_THEN(a->module, b->module,
			 KY_COMPARE_THEN(a->pid, b->pid, KY_COMPARE(a->address, b->address))))

size_t ky_sample_addresses_sort(struct ky_sample_addresses *addresses)
{
	uint32_t count = 0;
	ky_hash_index_free(&addresses->index);
	for (uint32_t i = 0; i < addresses->count; i++)
		if (addresses->items[i].wanted)
			addresses->items[count++] = addresses->items[i];
	addresses->count = count;
	if (count)
		qsort(addresses->items, count, sizeof(*addresses->items), by_module);
	return count;
}

/* ---- in the namer ---- */

struct naming {
	int to; /* kymo */
	struct ky_sample_modules *modules;
	struct ky_strings strings;  /* of symbols */
	struct ky_symbols *symbols; /* of the kernel and of code that was made at run time */
	struct ky_perf_out out;
	uint64_t deadline_ns;
	uint32_t late; /* files that took too long */
	char late_path[256];
	/* The address that gets its name now. */
	const struct ky_sample_address *address;
	const char *module;
	char build_id[2 * KY_BUILD_ID_MAX + 1];
};

/* ---- records ---- */

static void flush(struct naming *naming)
{
	if (naming->out.used && !naming->out.failed &&
	    send(naming->to, naming->out.bytes, naming->out.used, MSG_NOSIGNAL) < 0)
		_exit(1); /* no longer wanted */
	naming->out.used = 0;
	naming->out.failed = false;
}

static uint16_t length_of(const char *text)
{
	return (uint16_t)(text ? strnlen(text, TEXT_BYTES_MAX) : 0);
}

static void put(void *context, const struct ky_symbolizer_function *function)
{
	static const char zeros[8];
	struct naming *naming = context;
	struct ky_perf_out *out = &naming->out;
	struct ky_kymo_symbol head = {
		.flags = function->inlined ? KY_KYMO_SYMBOL_INLINED : 0,
		.address = naming->address->address,
		.pid = (int32_t)naming->address->pid,
		.line = function->line,
		.module_bytes = length_of(naming->module),
		.build_id_bytes = length_of(naming->build_id),
		.name_bytes = length_of(function->name),
		.file_bytes = length_of(function->file),
	};
	const size_t bytes = sizeof(head) + head.module_bytes + head.build_id_bytes +
			     head.name_bytes + head.file_bytes;
	head.bytes = (uint32_t)KY_KYMO_PADDED(bytes);
	ky_perf_out_add(out, &head, sizeof(head));
	ky_perf_out_add(out, naming->module, head.module_bytes);
	ky_perf_out_add(out, naming->build_id, head.build_id_bytes);
	ky_perf_out_add(out, function->name, head.name_bytes);
	ky_perf_out_add(out, function->file, head.file_bytes);
	ky_perf_out_add(out, zeros, head.bytes - bytes);
	if (out->used >= WRITE_BYTES)
		flush(naming);
}

/* ---- files ---- */

/* The vDSO of kymo is that of all processes of the kernel's own kind: a copy of it as a file. */
static int open_vdso(void)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR); // NOLINT
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int fd = image ? memfd_create("vdso", MFD_CLOEXEC) : -1;
	/* It is mapped in whole pages; how many, write() finds out. */
	for (size_t at = 0; fd >= 0 && at < VDSO_BYTES_MAX; at += page)
		if (write(fd, (const char *)image + at, page) != (ssize_t)page)
			break;
	return fd;
}

static void set_module(struct naming *naming, const struct ky_sample_module *module)
{
	naming->module = module->path;
	naming->build_id[0] = '\0';
	for (unsigned i = 0; i < module->build_id_bytes; i++)
		snprintf(naming->build_id + (size_t)2 * i, 3, "%02x", module->build_id[i]);
}

static void name_file(struct naming *naming, const struct ky_sample_address *addresses,
		      size_t count)
{
	const struct ky_sample_module *module = &naming->modules->items[addresses->module];
	const uint64_t deadline = (uint64_t)ky_clock_monotonic() + MODULE_NS;
	struct ky_symbolizer *elf;
	const int fd = module->kind == KY_SAMPLE_VDSO
			       ? open_vdso()
			       : ky_sample_modules_take(naming->modules, addresses->module);
	if (fd < 0 ||
	    ky_symbolizer_open(&elf, &naming->strings, module->path, fd,
			       deadline < naming->deadline_ns ? deadline : naming->deadline_ns))
		return;
	set_module(naming, module);
	for (size_t i = 0; i < count; i++) {
		naming->address = &addresses[i];
		ky_symbolizer_at(elf, addresses[i].address, put, naming);
	}
	if (ky_symbolizer_late(elf) && !naming->late++)
		snprintf(naming->late_path, sizeof(naming->late_path), "%s", module->path);
	ky_symbolizer_close(&elf);
}

/* ---- the kernel ---- */

static void put_string(struct naming *naming, uint32_t name, uint32_t file, uint32_t line)
{
	const struct ky_symbolizer_function function = {
		.name = ky_strings_text(&naming->strings, name),
		.file = file ? ky_strings_text(&naming->strings, file) : NULL,
		.line = line,
	};
	if (name && function.name)
		put(naming, &function);
}

static void name_kernel(struct naming *naming, const struct ky_sample_address *addresses,
			size_t count)
{
	ky_symbols_add_kallsyms(naming->symbols, NULL, 0);
	naming->module = "[kernel]";
	naming->build_id[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		naming->address = &addresses[i];
		put_string(naming, ky_symbols_in_kernel(naming->symbols, addresses[i].address), 0,
			   0);
	}
}

/* ---- code that was made at run time ---- */

/* Return the pid in "jit-12.dump". */
static void read_jitdumps(struct naming *naming)
{
	for (uint32_t i = 0; i < naming->modules->count; i++) {
		const struct ky_sample_module *module = &naming->modules->items[i];
		if (module->kind != KY_SAMPLE_JITDUMP)
			continue;
		const long pid = strtol(ky_file_name(module->path) + strlen("jit-"), NULL, 10);
		ky_symbols_jitdump(naming->symbols, pid, module->path, true);
	}
}

static void name_made(struct naming *naming, const struct ky_sample_address *addresses,
		      size_t count)
{
	read_jitdumps(naming);
	naming->module = NULL;
	naming->build_id[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		uint32_t file, line;
		/* What was there last: an address has one name. */
		const uint32_t name =
			ky_symbols_in_jit(naming->symbols, (int64_t)addresses[i].pid,
					  addresses[i].address, UINT64_MAX, &file, &line);
		naming->address = &addresses[i];
		put_string(naming, name, file, line);
	}
}

/* ---- all ---- */

static void name_module(struct naming *naming, const struct ky_sample_address *addresses,
			size_t count)
{
	if (addresses->module == KY_SAMPLE_KERNEL)
		name_kernel(naming, addresses, count);
	else if (addresses->module == KY_NO_MODULE)
		name_made(naming, addresses, count);
	else
		name_file(naming, addresses, count);
}

/* Told from records, which have a size, by a word that is 0: how far it is, or with more behind it a note. */
struct news {
	uint32_t none;
	uint32_t done; /* addresses */
};

static void send_done(const struct naming *naming, size_t done)
{
	const struct news news = {.done = (uint32_t)done};
	(void)send(naming->to, &news, sizeof(news), MSG_NOSIGNAL);
}

static void send_note(const struct naming *naming)
{
	char packet[512] = {0};
	if (!naming->late)
		return;
	const int bytes =
		snprintf(packet + sizeof(struct news), sizeof(packet) - sizeof(struct news),
			 "samples: no lines and inlined functions for some of %s%s: its debug "
			 "information is too large to be read in time",
			 naming->late_path, naming->late > 1 ? " and others" : "");
	(void)send(naming->to, packet, sizeof(struct news) + (size_t)bytes + 1, MSG_NOSIGNAL);
}

/* Return the index behind the last address of the module that the first one is in. */
static size_t module_end(const struct ky_sample_addresses *addresses, size_t first, size_t count)
{
	size_t end = first + 1;
	while (end < count && addresses->items[end].module == addresses->items[first].module)
		end++;
	return end;
}

static void name_all(struct naming *naming, const struct ky_sample_addresses *addresses,
		     size_t first, size_t count)
{
	if (ky_strings_init(&naming->strings) != 0 ||
	    ky_symbols_open(&naming->symbols, &naming->strings, NULL) != 0)
		return;
	while (first < count) {
		const size_t end = module_end(addresses, first, count);
		name_module(naming, addresses->items + first, end - first);
		flush(naming);
		if (end == count)
			send_note(naming);
		send_done(naming, end);
		first = end;
	}
}

/* ---- in kymo ---- */

struct reading {
	struct ky_bundle *bundle;
	uint32_t part; /* in it; 0: none yet */
	const struct ky_sample_addresses *addresses;
	struct ky_sample_modules *modules;
	size_t done, count; /* addresses */
	uint64_t begun_ns;
};

/* Start a namer for the rest. Return its pid, or -errno. */
static pid_t start_namer(const struct reading *reading, int *from)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -errno;
	const pid_t pid = fork();
	const int error = -errno;
	if (pid == 0) {
		struct naming naming = {.to = ends[1],
					.modules = reading->modules,
					.deadline_ns = reading->begun_ns + ALL_NS};
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)prctl(PR_SET_NAME, "kymo-names");
		close(ends[0]);
		name_all(&naming, reading->addresses, reading->done, reading->count);
		_exit(0);
	}
	close(ends[1]);
	*from = ends[0];
	if (pid < 0)
		close(ends[0]);
	return pid < 0 ? error : pid;
}

/* Return false when it takes too long. */
static bool wait_packet(const struct reading *reading, int from)
{
	const uint64_t last = reading->begun_ns + NAMER_NS;
	const uint64_t file = (uint64_t)ky_clock_monotonic() + SILENCE_NS;
	const uint64_t deadline = last < file ? last : file;
	for (;;) {
		struct pollfd ready = {.fd = from, .events = POLLIN};
		const uint64_t now = (uint64_t)ky_clock_monotonic();
		const int count =
			now < deadline ? poll(&ready, 1, (int)((deadline - now) / 1000000) + 1) : 0;
		if (count >= 0 || errno != EINTR)
			return count > 0;
	}
}

static void take_packet(struct reading *reading, char *packet, size_t bytes)
{
	struct news news;
	memcpy(&news, packet, sizeof(news));
	packet[bytes] = '\0';
	if (!news.none && bytes > sizeof(news)) {
		ky_bundle_note(reading->bundle, "%s", packet + sizeof(news));
		return;
	}
	if (!news.none) {
		reading->done = news.done;
		return;
	}
	if (!reading->part)
		reading->part =
			ky_bundle_stream(reading->bundle, KY_KYMO_STREAM_SYMBOLS, NULL, NULL);
	if (reading->part)
		ky_bundle_stream_write(reading->bundle, reading->part, packet, bytes);
}

static void take_packets(struct reading *reading, int from)
{
	char *packet = malloc(PACKET_BYTES_MAX);
	ssize_t bytes;
	while (packet && wait_packet(reading, from) &&
	       (bytes = recv(from, packet, PACKET_BYTES_MAX - 1, 0)) >=
		       (ssize_t)sizeof(struct news))
		take_packet(reading, packet, (size_t)bytes);
	free(packet);
}

/* Run one namer as far as it gets; return false when none can be started. */
static bool let_name(struct reading *reading)
{
	int from = -1;
	const pid_t pid = start_namer(reading, &from);
	if (pid < 0)
		return false;
	take_packets(reading, from);
	close(from);
	kill(pid, SIGKILL); /* it has ended, or never will */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return true;
}

static const char *path_of(const struct reading *reading)
{
	const uint32_t module = reading->addresses->items[reading->done].module;
	return module < reading->modules->count ? reading->modules->items[module].path : "code";
}

void ky_sample_names_write(struct ky_bundle *bundle, struct ky_sample_addresses *addresses,
			   struct ky_sample_modules *modules)
{
	struct reading reading = {.bundle = bundle,
				  .addresses = addresses,
				  .modules = modules,
				  .count = ky_sample_addresses_sort(addresses),
				  .begun_ns = (uint64_t)ky_clock_monotonic()};
	char note[512] = "";
	while (reading.done < reading.count &&
	       (uint64_t)ky_clock_monotonic() < reading.begun_ns + NAMER_NS && let_name(&reading) &&
	       reading.done < reading.count) {
		snprintf(
			note, sizeof(note),
			"samples: some have no names in the file: %.300s or its debug information cannot be read in time",
			path_of(&reading));
		reading.done = module_end(addresses, reading.done, reading.count);
	}
	if (reading.done < reading.count && !note[0])
		snprintf(note, sizeof(note),
			 "samples: no names in the file: cannot start a process");
	if (note[0])
		ky_bundle_note(bundle, "%s", note);
	if (addresses->left_out)
		ky_bundle_note(bundle, "samples: too many different addresses: some have no names "
				       "in the file");
}
