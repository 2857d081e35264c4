/* SPDX-License-Identifier: MIT */
/*
 * pftrace_typed.c: arguments of track events with fields of their own: source locations, log messages, correlation
 * ids, and Chrome's plain ones. Arguments that only a type description could decode (Chrome's nested ones,
 * extensions) are counted and left out.
 */
#include "formats/pftrace/pftrace_reader.h"

#include <stdio.h>

static void location_args(struct ky_pf *pf, const struct ky_pf_location *location,
			  const enum ky_pf_word words[3])
{
	const uint32_t empty = ky_string_z(pf->trace, "");
	ky_arg_string(pf->trace, pf->words[words[0]], location->file ? location->file : empty);
	ky_arg_string(pf->trace, pf->words[words[1]],
		      location->function ? location->function : empty);
	ky_arg_uint(pf->trace, pf->words[words[2]], location->line);
}

static void source_location(struct ky_pf *pf, uint64_t iid)
{
	static const enum ky_pf_word words[] = {KY_PF_W_SOURCE_FILE, KY_PF_W_SOURCE_FUNCTION,
						KY_PF_W_SOURCE_LINE};
	const struct ky_pf_location *location = ky_pf_sequence_location(pf, iid);
	if (location)
		location_args(pf, location, words);
	else
		ky_pf_event_error(pf, "an undefined source location");
	ky_arg_uint(pf->trace, pf->words[KY_PF_W_SOURCE_IID], iid);
}

static void inline_location(struct ky_pf *pf, struct ky_proto_view message)
{
	KY_PROTO_EACH(field, message) {
		if (field.id == KY_PF_SOURCE_LOCATION_FILE_NAME)
			ky_arg_string(pf->trace, pf->words[KY_PF_W_LOCATION_FILE],
				      ky_pf_string(pf, field.view));
		else if (field.id == KY_PF_SOURCE_LOCATION_FUNCTION_NAME)
			ky_arg_string(pf->trace, pf->words[KY_PF_W_LOCATION_FUNCTION],
				      ky_pf_string(pf, field.view));
		else if (field.id == KY_PF_SOURCE_LOCATION_LINE_NUMBER)
			ky_arg_uint(pf->trace, pf->words[KY_PF_W_LOCATION_LINE], field.value);
	}
}

static void task_execution(struct ky_pf *pf, struct ky_proto_view message)
{
	static const enum ky_pf_word words[] = {KY_PF_W_TASK_FILE, KY_PF_W_TASK_FUNCTION,
						KY_PF_W_TASK_LINE};
	struct ky_proto_field iid;
	const struct ky_pf_location *location =
		ky_proto_find(message, KY_PF_TASK_EXECUTION_POSTED_FROM_IID, &iid)
			? ky_pf_sequence_location(pf, iid.value)
			: NULL;
	if (location)
		location_args(pf, location, words);
	else
		ky_pf_event_error(pf, "a task was posted from an undefined source location");
}

/* Return "file:line", the tag of a log message. */
static uint32_t log_tag(struct ky_pf *pf, const struct ky_pf_location *location)
{
	char line[16];
	const int bytes = snprintf(line, sizeof(line), ":%u", location->line);
	const char *file = ky_text_of(pf->trace, location->file);
	pf->text.bytes = 0;
	if (file)
		ky_buffer_add(&pf->text, file,
			      ky_strings_bytes(&pf->trace->strings, location->file));
	ky_buffer_add(&pf->text, line, (size_t)bytes);
	return ky_pf_buffer_string(pf, &pf->text);
}

static void log_message(struct ky_pf *pf, const struct ky_pf_event *event,
			struct ky_proto_view message)
{
	static const enum ky_pf_word words[] = {KY_PF_W_LOG_FILE, KY_PF_W_LOG_FUNCTION,
						KY_PF_W_LOG_LINE};
	struct ky_proto_field location_iid, body_iid, priority;
	const struct ky_pf_location *location = NULL;
	const uint32_t body = ky_proto_find(message, KY_PF_LOG_MESSAGE_BODY_IID, &body_iid)
				      ? ky_pf_text(pf->sequence, KY_PF_LOG_BODIES, body_iid.value)
				      : 0;
	if (event->thread == KY_NONE || !body) {
		ky_pf_event_error(pf, "a log message without a thread or a text");
		return;
	}
	ky_arg_string(pf->trace, pf->words[KY_PF_W_LOG_MESSAGE], body);
	if (ky_proto_find(message, KY_PF_LOG_MESSAGE_SOURCE_LOCATION_IID, &location_iid)) {
		location = ky_pf_sequence_location(pf, location_iid.value);
		if (location)
			location_args(pf, location, words);
	}
	uint8_t level = KY_PF_PRIO_INFO;
	if (ky_proto_find(message, KY_PF_LOG_MESSAGE_PRIO, &priority)) {
		level = priority.value <= KY_PF_PRIO_FATAL ? (uint8_t)priority.value : 0;
		ky_arg_int(pf->trace, pf->words[KY_PF_W_LOG_PRIORITY], level);
	}
	ky_put_log(pf->trace, event->ts, event->thread, level, location ? log_tag(pf, location) : 0,
		   body);
}

static void correlation_id(struct ky_pf *pf, const struct ky_proto_field *field)
{
	uint32_t id;
	if (field->id == KY_PF_TRACK_EVENT_CORRELATION_ID) {
		id = ky_string_format(pf->trace, "tp:#%llu", (unsigned long long)field->value);
	} else if (field->id == KY_PF_TRACK_EVENT_CORRELATION_ID_STR) {
		id = ky_pf_string(pf, field->view);
	} else {
		id = ky_pf_text(pf->sequence, KY_PF_CORRELATION_IDS, field->value);
	}
	if (id)
		ky_arg_string(pf->trace, pf->words[KY_PF_W_CORRELATION_ID], id);
}

/* Chrome's messages with plain fields, numbered from 1: string, uint, int, bool; - is a number not in use. */
struct chrome {
	uint32_t field;
	const char *name;
	const char *kinds;
	const char *names[8];
};

static const struct chrome chromes[] = {
	{KY_PF_TRACK_EVENT_CHROME_USER_EVENT, "chrome_user_event", "su", {"action", "action_hash"}},
	{KY_PF_TRACK_EVENT_CHROME_KEYED_SERVICE, "chrome_keyed_service", "s", {"name"}},
	{KY_PF_TRACK_EVENT_CHROME_LEGACY_IPC, "chrome_legacy_ipc", "-u", {"", "message_line"}},
	{KY_PF_TRACK_EVENT_CHROME_HISTOGRAM_SAMPLE,
	 "chrome_histogram_sample",
	 "usiu",
	 {"name_hash", "name", "sample", "name_iid"}},
	{KY_PF_TRACK_EVENT_CHROME_MESSAGE_PUMP,
	 "chrome_message_pump",
	 "bu",
	 {"sent_messages_in_queue", "io_handler_location_iid"}},
	{KY_PF_TRACK_EVENT_CHROME_MOJO_EVENT_INFO,
	 "chrome_mojo_event_info",
	 "susubuu",
	 {"watcher_notify_interface_tag", "ipc_hash", "mojo_interface_tag",
	  "mojo_interface_method_iid", "is_reply", "payload_size", "data_num_bytes"}},
	{KY_PF_TRACK_EVENT_CHROME_RENDERER_SCHEDULER_STATE,
	 "chrome_renderer_scheduler_state",
	 "-bb",
	 {"", "is_backgrounded", "is_hidden"}},
	{KY_PF_TRACK_EVENT_CHROME_WINDOW_HANDLE_EVENT_INFO,
	 "chrome_window_handle_event_info",
	 "uuu",
	 {"dpi", "message_id", "hwnd_ptr"}},
	{KY_PF_TRACK_EVENT_CHROME_CONTENT_SETTINGS_EVENT_INFO,
	 "chrome_content_settings_event_info",
	 "u",
	 {"number_of_exceptions"}},
};

static void not_carried(struct ky_pf *pf, uint32_t field)
{
	ky_problem(pf->trace, "typed_args_not_carried", KY_INFO, pf->at,
		   "an argument of a Chrome type (field %u)", field);
}

static void chrome_value(struct ky_pf *pf, char kind, uint32_t key,
			 const struct ky_proto_field *field)
{
	if (kind == 's')
		ky_arg_string(pf->trace, key, ky_pf_string(pf, field->view));
	else if (kind == 'b')
		ky_arg_bool(pf->trace, key, field->value != 0);
	else if (kind == 'i')
		ky_arg_int(pf->trace, key, (int64_t)field->value);
	else
		ky_arg_uint(pf->trace, key, field->value);
}

/* An interned name counts only when there is no written one. */
static void histogram_name(struct ky_pf *pf, struct ky_proto_view message, uint64_t iid)
{
	struct ky_proto_field own;
	const uint32_t name = ky_pf_text(pf->sequence, KY_PF_HISTOGRAM_NAMES, iid);
	if (name && !ky_proto_find(message, KY_PF_CHROME_HISTOGRAM_SAMPLE_NAME, &own))
		ky_arg_string(pf->trace, pf->words[KY_PF_W_HISTOGRAM_NAME], name);
}

static void chrome_args(struct ky_pf *pf, const struct chrome *chrome, struct ky_proto_view message)
{
	KY_PROTO_EACH(field, message) {
		const char kind = field.id && field.id <= strlen(chrome->kinds)
					  ? chrome->kinds[field.id - 1]
					  : '-';
		if (kind == '-') {
			not_carried(pf, chrome->field);
			continue;
		}
		chrome_value(pf, kind,
			     ky_string_format(pf->trace, "%s.%s", chrome->name,
					      chrome->names[field.id - 1]),
			     &field);
		if (chrome->field == KY_PF_TRACK_EVENT_CHROME_HISTOGRAM_SAMPLE &&
		    field.id == KY_PF_CHROME_HISTOGRAM_SAMPLE_NAME_IID)
			histogram_name(pf, message, field.value);
	}
}

static void chrome_field(struct ky_pf *pf, const struct ky_proto_field *field)
{
	for (size_t i = 0; i < sizeof(chromes) / sizeof(*chromes); i++)
		if (chromes[i].field == field->id) {
			chrome_args(pf, &chromes[i], field->view);
			return;
		}
	not_carried(pf, field->id);
}

void ky_pf_typed_put_args(struct ky_pf *pf, const struct ky_pf_event *event)
{
	KY_PROTO_EACH(field, event->all) {
		switch (field.id) {
		case KY_PF_TRACK_EVENT_TASK_EXECUTION:
			task_execution(pf, field.view);
			break;
		case KY_PF_TRACK_EVENT_LOG_MESSAGE:
			log_message(pf, event, field.view);
			break;
		case KY_PF_TRACK_EVENT_SOURCE_LOCATION:
			inline_location(pf, field.view);
			break;
		case KY_PF_TRACK_EVENT_SOURCE_LOCATION_IID:
			source_location(pf, field.value);
			break;
		case KY_PF_TRACK_EVENT_CORRELATION_ID:
		case KY_PF_TRACK_EVENT_CORRELATION_ID_STR:
		case KY_PF_TRACK_EVENT_CORRELATION_ID_STR_IID:
			correlation_id(pf, &field);
			break;
		case KY_PF_TRACK_EVENT_CC_SCHEDULER_STATE:
		case KY_PF_TRACK_EVENT_CHROME_USER_EVENT:
		case KY_PF_TRACK_EVENT_CHROME_KEYED_SERVICE:
		case KY_PF_TRACK_EVENT_CHROME_LEGACY_IPC:
		case KY_PF_TRACK_EVENT_CHROME_HISTOGRAM_SAMPLE:
		case KY_PF_TRACK_EVENT_CHROME_LATENCY_INFO:
		case KY_PF_TRACK_EVENT_CHROME_FRAME_REPORTER:
		case KY_PF_TRACK_EVENT_CHROME_MESSAGE_PUMP:
		case KY_PF_TRACK_EVENT_CHROME_MOJO_EVENT_INFO:
		case KY_PF_TRACK_EVENT_CHROME_APPLICATION_STATE_INFO:
		case KY_PF_TRACK_EVENT_CHROME_RENDERER_SCHEDULER_STATE:
		case KY_PF_TRACK_EVENT_CHROME_WINDOW_HANDLE_EVENT_INFO:
		case KY_PF_TRACK_EVENT_CHROME_CONTENT_SETTINGS_EVENT_INFO:
		case KY_PF_TRACK_EVENT_CHROME_ACTIVE_PROCESSES:
		case KY_PF_TRACK_EVENT_SCREENSHOT:
			chrome_field(pf, &field);
			break;
		default:
			if (field.id >= 1000)
				ky_problem(pf->trace, "unknown_extension_fields", KY_INFO, pf->at,
					   "an argument of an extension (field %u)", field.id);
		}
	}
}
