/* SPDX-License-Identifier: MIT */
/*
 * fxt_read.c: Fuchsia traces (FXT), as Fuchsia, kymo and magic-trace write them. docs/formats/fxt.md has the table
 * of what becomes what.
 *
 *   ┌ head: type, words ┐ rest of the record ┌ head ┐ ...
 *
 * An invalid record is counted and left out: its head says where the next one starts. A head with 0 words ends the
 * reading.
 */
#include <errno.h>
#include <stdlib.h>

#include "formats/fxt/fxt_reader.h"

/* Real traces have some dozens; each takes memory for its tables. */
#define PROVIDERS_MAX 1024u

/* ---- tables ---- */

static void free_provider(struct ky_fxt_provider *provider)
{
	free(provider->strings);
	free(provider->threads);
	free(provider);
}

static struct ky_fxt_provider *find_provider(const struct ky_fxt_reader *fxt, uint32_t id)
{
	for (uint32_t i = 0; i < fxt->providers_count; i++)
		if (fxt->providers[i]->id == id)
			return fxt->providers[i];
	return NULL;
}

/* Return NULL when there are too many, or without memory. */
static struct ky_fxt_provider *add_provider(struct ky_fxt_reader *fxt, uint32_t id)
{
	if (fxt->providers_count == PROVIDERS_MAX)
		return NULL;
	struct ky_fxt_provider *provider = calloc(1, sizeof(*provider));
	if (!provider) {
		fxt->trace->error = -ENOMEM;
		return NULL;
	}
	provider->id = id;
	provider->ticks_per_s = KY_FXT_NS_PER_S;
	fxt->providers[fxt->providers_count++] = provider;
	return provider;
}

/* Make a provider the current one; one that is announced starts with empty tables. */
static bool begin_provider(struct ky_fxt_reader *fxt, uint32_t id, bool announced)
{
	struct ky_fxt_provider *provider = find_provider(fxt, id);
	if (!provider)
		provider = add_provider(fxt, id);
	if (!provider)
		return false;
	if (announced) {
		free(provider->strings);
		free(provider->threads);
		*provider = (struct ky_fxt_provider){.id = id, .ticks_per_s = KY_FXT_NS_PER_S};
	}
	fxt->provider = provider;
	return true;
}

bool ky_fxt_string(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint32_t reference,
		   uint32_t *string)
{
	if (reference < KY_FXT_STRING_INLINE) {
		const uint32_t *const strings = fxt->provider->strings;
		*string = reference == 0 ? fxt->empty : strings ? strings[reference] : 0;
		record->undefined = *string == 0;
		return *string != 0;
	}
	const uint32_t bytes = reference - KY_FXT_STRING_INLINE;
	const uint8_t *text;
	if (!ky_fxt_bytes(record, bytes, &text))
		return false;
	*string = ky_string(fxt->trace, (const char *)text, bytes);
	return true;
}

static struct ky_fxt_thread *thread_slot(struct ky_fxt_reader *fxt, uint32_t index)
{
	struct ky_fxt_provider *provider = fxt->provider;
	if (!provider->threads)
		provider->threads = calloc(KY_FXT_THREAD_INDEX_MAX + 1, sizeof(*provider->threads));
	if (!provider->threads) {
		fxt->trace->error = -ENOMEM;
		return NULL;
	}
	return &provider->threads[index];
}

struct ky_fxt_thread *ky_fxt_thread(struct ky_fxt_reader *fxt, struct ky_fxt_record *record,
				    uint32_t reference, struct ky_fxt_thread *inlined)
{
	uint64_t pid;
	uint64_t tid;
	if (reference != 0)
		return thread_slot(fxt, reference);
	if (!ky_fxt_word(record, &pid) || !ky_fxt_word(record, &tid))
		return NULL;
	*inlined = (struct ky_fxt_thread){.pid = ky_fxt_koid(pid), .tid = ky_fxt_koid(tid)};
	return inlined;
}

void ky_fxt_thread_learn(struct ky_fxt_reader *fxt, struct ky_fxt_thread *thread)
{
	thread->process = ky_process(fxt->trace, thread->pid);
	thread->thread = ky_thread(fxt->trace, thread->pid, thread->tid);
	thread->track = ky_track_of_thread(fxt->trace, thread->thread);
	thread->known = true;
}

/* Convert as Perfetto does, to the nanosecond: the upper half of the ticks by a rounded rate. */
bool ky_fxt_time(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, int64_t *ns)
{
	const uint64_t rate = fxt->provider->ticks_per_s;
	uint64_t ticks;
	uint64_t high;
	uint64_t sum;
	if (!ky_fxt_word(record, &ticks))
		return false;
	if (rate == KY_FXT_NS_PER_S) {
		*ns = (int64_t)ticks;
		return ticks <= INT64_MAX;
	}
	if (__builtin_mul_overflow(ticks >> 32, (KY_FXT_NS_PER_S << 32) / rate, &high) ||
	    __builtin_add_overflow(high, (ticks & UINT32_MAX) * KY_FXT_NS_PER_S / rate, &sum) ||
	    sum > INT64_MAX)
		return false;
	*ns = (int64_t)sum;
	return true;
}

/* ---- records that define ---- */

static bool read_metadata(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head)
{
	const uint32_t id = ky_fxt_bits(head, 20, 51);
	const uint8_t *name;
	switch (ky_fxt_bits(head, 16, 19)) {
	case KY_FXT_METADATA_PROVIDER_INFO: {
		const uint32_t bytes = ky_fxt_bits(head, 52, 59);
		if (!ky_fxt_bytes(record, bytes, &name) || !begin_provider(fxt, id, true))
			return false;
		ky_put_metadata(fxt->trace, "fuchsia_provider",
				ky_string(fxt->trace, (const char *)name, bytes));
		return true;
	}
	case KY_FXT_METADATA_PROVIDER_SECTION:
		return begin_provider(fxt, id, false);
	case KY_FXT_METADATA_PROVIDER_EVENT:
		if (ky_fxt_bits(head, 52, 55) == KY_FXT_PROVIDER_EVENT_BUFFER_FULL &&
		    !fxt->provider->counts_losses)
			ky_put_lost(fxt->trace, KY_TIME_NONE, KY_NONE, KY_NONE, 0,
				    KY_LOSS_FXT_BUFFER);
		return true;
	default:
		return true;
	}
}

/* magic-trace adds the wall-clock time at which its ticks start. */
static bool read_initialization(struct ky_fxt_reader *fxt, struct ky_fxt_record *record,
				uint64_t head)
{
	(void)head;
	uint64_t ticks_per_s;
	uint64_t epoch_ns;
	int64_t ns;
	if (!ky_fxt_word(record, &ticks_per_s) || ticks_per_s == 0)
		return false;
	fxt->provider->ticks_per_s = ticks_per_s;
	if (record->words - record->at >= 2 && ky_fxt_time(fxt, record, &ns) &&
	    ky_fxt_word(record, &epoch_ns) && epoch_ns <= INT64_MAX) {
		const struct ky_clock_reading readings[] = {{fxt->trace->clock, ns},
							    {KY_CLOCK_REALTIME, (int64_t)epoch_ns}};
		ky_put_clocks(fxt->trace, ns, readings, 2);
	}
	return true;
}

static bool read_string(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head)
{
	struct ky_fxt_provider *provider = fxt->provider;
	const uint32_t index = ky_fxt_bits(head, 16, 30);
	const uint32_t bytes = ky_fxt_bits(head, 32, 46);
	const uint8_t *text;
	if (index == 0)
		return true;
	if (!ky_fxt_bytes(record, bytes, &text))
		return false;
	if (!provider->strings)
		provider->strings = calloc(KY_FXT_STRING_INDEX_MAX + 1, sizeof(*provider->strings));
	if (!provider->strings) {
		fxt->trace->error = -ENOMEM;
		return false;
	}
	provider->strings[index] = ky_string(fxt->trace, (const char *)text, bytes);
	return true;
}

static bool read_thread(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head)
{
	const uint32_t index = ky_fxt_bits(head, 16, 23);
	uint64_t pid;
	uint64_t tid;
	if (!ky_fxt_word(record, &pid) || !ky_fxt_word(record, &tid))
		return false;
	struct ky_fxt_thread *thread = index ? thread_slot(fxt, index) : NULL;
	if (thread)
		*thread = (struct ky_fxt_thread){.pid = ky_fxt_koid(pid), .tid = ky_fxt_koid(tid)};
	return true;
}

/* ---- blobs ---- */

static void skipped(struct ky_fxt_reader *fxt, const struct ky_fxt_record *record, const char *what)
{
	ky_problem(fxt->trace, "fuchsia_record_skipped", KY_INFO, record->place, "%s is not read",
		   what);
}

static bool read_blob(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head)
{
	const uint32_t bytes = ky_fxt_bits(head, 32, 46);
	const uint8_t *data;
	uint32_t name;
	if (!ky_fxt_string(fxt, record, ky_fxt_bits(head, 16, 31), &name) ||
	    !ky_fxt_bytes(record, bytes, &data))
		return false;
	if (ky_fxt_bits(head, 48, 55) == KY_FXT_BLOB_PERFETTO) {
		/* A Perfetto trace comes in pieces. */
		ky_buffer_add(&fxt->proto, data, bytes);
		if (fxt->proto.failed)
			fxt->trace->error = -ENOMEM;
		return true;
	}
	skipped(fxt, record, "a blob");
	return true;
}

/* Read the embedded Perfetto trace into the same trace. */
static int read_proto(struct ky_fxt_reader *fxt)
{
	struct ky_load inner = *fxt->load;
	if (!fxt->proto.bytes)
		return 0;
	int error = ky_input_open_memory(&inner.input, fxt->proto.data, fxt->proto.bytes,
					 fxt->load->input->name);
	if (error)
		return error;
	error = ky_reader_pftrace.read(&inner);
	ky_input_close(&inner.input);
	if (error == -EBADMSG) {
		ky_problem(fxt->trace, "fuchsia_embedded_trace", KY_ERROR, KY_NO_PLACE,
			   "the Perfetto trace inside cannot be read: %s", inner.message);
		error = 0;
	}
	return error;
}

/* ---- the file ---- */

static bool read_record(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head)
{
	static bool (*const readers[])(struct ky_fxt_reader * fxt, struct ky_fxt_record * record,
				       uint64_t head) = {
		[KY_FXT_RECORD_METADATA] = read_metadata,
		[KY_FXT_RECORD_INITIALIZATION] = read_initialization,
		[KY_FXT_RECORD_STRING] = read_string,
		[KY_FXT_RECORD_THREAD] = read_thread,
		[KY_FXT_RECORD_EVENT] = ky_fxt_event,
		[KY_FXT_RECORD_BLOB] = read_blob,
		[KY_FXT_RECORD_KERNEL_OBJECT] = ky_fxt_kernel_object,
		[KY_FXT_RECORD_SCHEDULING] = ky_fxt_sched,
		[KY_FXT_RECORD_LOG] = ky_fxt_log,
	};
	const uint32_t type = ky_fxt_bits(head, 0, 3);
	if (type < sizeof(readers) / sizeof(*readers) && readers[type])
		return readers[type](fxt, record, head);
	skipped(fxt, record,
		type == KY_FXT_RECORD_USERSPACE_OBJECT ? "a userspace object"
		: type == KY_FXT_RECORD_PROFILER       ? "a profiler record"
						       : "a record of an unknown type");
	return true;
}

/* Read a record; return false at the end. */
static bool next_record(struct ky_fxt_reader *fxt)
{
	struct ky_input *input = fxt->load->input;
	uint64_t head;
	if (!ky_input_need(input, 8))
		return false;
	memcpy(&head, input->at, 8);
	struct ky_fxt_record record = {.place = input->position, .at = 1};
	if (ky_fxt_bits(head, 0, 3) == KY_FXT_RECORD_LARGE) {
		record.words = ky_fxt_bits(head, 4, 35);
		skipped(fxt, &record, "a large record");
		return record.words && ky_input_skip_far(input, 8 * (uint64_t)record.words);
	}
	record.words = ky_fxt_bits(head, 4, 15);
	if (record.words == 0 && !fxt->load->repair) {
		ky_problem(fxt->trace, "fuchsia_invalid_record", KY_ERROR, record.place,
			   "a record of 0 words: the rest of the file cannot be read");
		return false;
	}
	if (record.words == 0)
		record.words = 1;
	if (!ky_input_need(input, 8 * (size_t)record.words))
		return false;
	record.data = input->at;
	const bool whole = read_record(fxt, &record, head);
	if (record.undefined)
		ky_problem(fxt->trace, "fuchsia_invalid_string_ref", KY_ERROR, record.place,
			   "a record refers to an undefined string");
	else if (!whole)
		ky_problem(fxt->trace, "fuchsia_invalid_event", KY_ERROR, record.place,
			   "a record of type %u that does not fit its %u words",
			   ky_fxt_bits(head, 0, 3), record.words);
	ky_input_skip(input, 8 * (size_t)record.words);
	return true;
}

static void name_strings(struct ky_fxt_reader *fxt)
{
	static const char *const states[] = {"R", "R", "T", "S", "Z", "X"};
	fxt->empty = ky_string(fxt->trace, "", 0);
	fxt->process_key = ky_string_z(fxt->trace, "process");
	fxt->incoming_weight = ky_string_z(fxt->trace, "incoming_weight");
	fxt->outgoing_weight = ky_string_z(fxt->trace, "outgoing_weight");
	fxt->weight = ky_string_z(fxt->trace, "weight");
	fxt->waker = ky_string_z(fxt->trace, "waker");
	fxt->counter_type = ky_string_z(fxt->trace, "fuchsia_counter");
	fxt->async_type = ky_string_z(fxt->trace, "legacy_async_global_slice");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		fxt->states[i] = ky_string_z(fxt->trace, states[i]);
}

static int read_trace(struct ky_load *load)
{
	struct ky_fxt_reader fxt = {.load = load, .trace = load->trace};
	struct ky_input *input = load->input;
	int error = -ENOMEM;
	fxt.providers = calloc(PROVIDERS_MAX, sizeof(struct ky_fxt_provider *));
	if (fxt.providers && begin_provider(&fxt, 0, false)) {
		name_strings(&fxt);
		while (!load->trace->error && next_record(&fxt))
			;
		if (input->ended && input->at < input->end)
			ky_problem(load->trace, "input_truncated", KY_DATA_LOSS, input->position,
				   "the last record is cut off");
		error = load->trace->error ? load->trace->error : read_proto(&fxt);
	}
	for (uint32_t i = 0; i < fxt.providers_count; i++)
		free_provider(fxt.providers[i]);
	free(fxt.providers);
	ky_pair_map_free(&fxt.owned);
	ky_pair_map_free(&fxt.flows);
	ky_buffer_free(&fxt.proto);
	return error;
}

/* Report whether the file starts with a provider's record, whose size fits its name, which is text. */
static bool announces_provider(const struct ky_probe *probe)
{
	uint64_t head;
	if (probe->bytes < 24)
		return false;
	memcpy(&head, probe->data, 8);
	const uint32_t bytes = ky_fxt_bits(head, 52, 59);
	const size_t words = 1 + (size_t)(bytes + 7) / 8;
	if (ky_fxt_bits(head, 0, 3) != KY_FXT_RECORD_METADATA ||
	    ky_fxt_bits(head, 4, 15) != words ||
	    ky_fxt_bits(head, 16, 19) != KY_FXT_METADATA_PROVIDER_INFO || bytes == 0 ||
	    head >> 60 != 0 || probe->bytes < 8 * words + 8)
		return false;
	for (size_t i = 0; i < 8 * (words - 1); i++)
		if (i < bytes ? probe->data[8 + i] < ' ' || probe->data[8 + i] > '~'
			      : probe->data[8 + i] != 0)
			return false;
	memcpy(&head, probe->data + 8 * words, 8);
	return ky_fxt_bits(head, 0, 3) <= KY_FXT_RECORD_THREAD && ky_fxt_bits(head, 4, 15) != 0;
}

static bool probe(const struct ky_probe *probe)
{
	uint64_t word;
	if (probe->bytes < sizeof(word))
		return false;
	memcpy(&word, probe->data, sizeof(word));
	return word == KY_FXT_MAGIC || announces_provider(probe);
}

const struct ky_reader ky_reader_fxt = {
	.name = "fxt",
	.title = "Fuchsia trace (FXT)",
	.directory = false,
	.probe = probe,
	.read = read_trace,
};
