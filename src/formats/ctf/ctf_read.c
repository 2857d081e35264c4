/* SPDX-License-Identifier: MIT */
/*
 * ctf_read.c: reads CTF 1.8 traces (LTTng, barectf) with babeltrace2's library: a directory with a `metadata` file,
 * or a directory that holds such directories.
 *
 *   source.ctf.fs ── a port a stream ──▶ filter.utils.muxer (order of time) ──▶ our sink ──▶ ctf_event.c
 *
 * The library prints nothing; what it has to say about a trace that it cannot read is in the message.
 */
#include "formats/ctf/ctf_reader.h"

#include "base/memory.h"
#include "formats/load.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- reading in a child first ---- */

/* The library makes an object of about 100 bytes of an array's element, of which a byte may hold several. */
#define MEMORY_PER_BYTE 1024u
#define MEMORY_LEAST (128u << 20)

/* Bytes of data that this process has now; 0: not known. */
static uint64_t data_bytes(void)
{
	unsigned long long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	if (!file)
		return 0;
	if (fscanf(file, "%*u %*u %*u %*u %*u %llu", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit_memory(uint64_t more)
{
	const uint64_t now = data_bytes();
	struct rlimit limit;
	if (!now || getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur < now + more)
		return;
	limit.rlim_cur = now + more;
	setrlimit(RLIMIT_DATA, &limit);
}

/* Silent, without a core or the program's handlers, and with memory for what a trace of that size may need. */
static void prepare_child(uint64_t memory)
{
	static const int deadly[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
	const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const struct rlimit no_core = {0, 0};
	setrlimit(RLIMIT_CORE, &no_core);
	for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++)
		signal(deadly[i], SIG_DFL);
	limit_memory(memory);
	if (nowhere >= 0)
		dup2(nowhere, STDERR_FILENO);
}

/* Wait for the child; give it up when progress says so. */
static int await(struct ky_load *load, pid_t child, int *status)
{
	int error = 0;
	while (waitpid(child, status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
		if (!error && load->progress)
			error = load->progress(load, 0, 0);
		if (error)
			kill(child, SIGKILL);
	}
	return error;
}

/*
 * Read the trace in a child. bytes: of the trace's files. 0 when read() came to an end there, with whatever result; -EBADMSG
 * and a message when it did not; -errno, or what progress returned.
 */
static int rehearse(struct ky_load *load, uint64_t bytes,
		    int (*read)(struct ky_load *load, uint64_t bytes))
{
	const uint64_t memory = MEMORY_LEAST + bytes * MEMORY_PER_BYTE;
	const pid_t child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		prepare_child(memory);
		load->progress = NULL;
		read(load, bytes);
		_exit(0);
	}
	int status;
	const int error = await(load, child, &status);
	if (error || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return error;
	return ky_load_fail(load, KY_NO_PLACE,
			    "babeltrace2's library cannot read this trace: it ends with %s %d when "
			    "it has %llu MB of memory",
			    WIFSIGNALED(status) ? "signal" : "code",
			    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
			    (unsigned long long)(memory >> 20));
}

/* ---- the trace ---- */

#define TRACES_MAX 1024u
#define NESTING_MAX 8u
#define PROGRESS_EVERY 4096u

struct ctf_reading {
	struct ky_load *load;
	struct ky_ctf_events events;
	const bt_message_iterator *iterator;
	uint64_t count;
	uint64_t count_max; /* an event is a bit at least, or there is no end of them */
	bool has_clock;
	int error;
};

static bool has_metadata(const char *path)
{
	char name[4096];
	struct stat status;
	const int bytes = snprintf(name, sizeof(name), "%s/metadata", path);
	return bytes > 0 && (size_t)bytes < sizeof(name) && stat(name, &status) == 0 &&
	       S_ISREG(status.st_mode);
}

/* Add up the bytes of all files at and below path. */
static uint64_t bytes_below(const char *path, unsigned depth)
{
	uint64_t sum = 0;
	DIR *directory = depth <= NESTING_MAX ? opendir(path) : NULL;
	if (!directory) {
		if (depth <= NESTING_MAX && errno == ENOMEM)
			ky_memory_missing();
		return 0;
	}
	for (const struct dirent *entry; (entry = readdir(directory));) {
		char name[4096];
		struct stat status;
		const int bytes = snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    bytes < 0 || (size_t)bytes >= sizeof(name) || lstat(name, &status) != 0)
			continue;
		if (S_ISDIR(status.st_mode))
			sum += bytes_below(name, depth + 1);
		else if (stat(name, &status) == 0 && S_ISREG(status.st_mode))
			sum += (uint64_t)status.st_size;
	}
	closedir(directory);
	return sum;
}

/* Add the trace directories at and below path to inputs. */
static void find_traces(const char *path, bt_value *inputs, unsigned depth)
{
	if (bt_value_array_get_length(inputs) >= TRACES_MAX)
		return;
	if (has_metadata(path)) {
		bt_value_array_append_string_element(inputs, path);
		return;
	}
	DIR *directory = depth < NESTING_MAX ? opendir(path) : NULL;
	if (!directory)
		return;
	for (const struct dirent *entry; (entry = readdir(directory));) {
		char name[4096];
		struct stat status;
		const int bytes = snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		if (entry->d_name[0] != '.' && bytes > 0 && (size_t)bytes < sizeof(name) &&
		    lstat(name, &status) == 0 && S_ISDIR(status.st_mode))
			find_traces(name, inputs, depth + 1);
	}
	closedir(directory);
}

static bool probe(const struct ky_probe *probe)
{
	bt_value *inputs = probe->path ? bt_value_array_create() : NULL;
	if (!inputs)
		return false;
	find_traces(probe->path, inputs, 0);
	const bool any = bt_value_array_get_length(inputs) > 0;
	bt_value_put_ref(inputs);
	return any;
}

static void lost_events(struct ctf_reading *reading, const bt_message *message)
{
	uint64_t count = 0;
	if (bt_message_discarded_events_get_count(message, &count) !=
	    BT_PROPERTY_AVAILABILITY_AVAILABLE)
		count = 0;
	ky_put_lost(reading->load->trace, KY_TIME_NONE, KY_NONE, KY_NONE, count,
		    KY_LOSS_CTF_EVENTS);
}

static void lost_packets(struct ctf_reading *reading, const bt_message *message)
{
	uint64_t count = 0;
	if (bt_message_discarded_packets_get_count(message, &count) !=
		    BT_PROPERTY_AVAILABILITY_AVAILABLE ||
	    !count)
		count = 1;
	ky_problem(reading->load->trace, "ctf_packets_lost", KY_DATA_LOSS, KY_NO_PLACE,
		   "the tracer discarded packets: its buffers were full");
	ky_problems(reading->load->trace, "ctf_packets_lost", KY_DATA_LOSS, KY_NO_PLACE, count - 1);
	ky_put_lost(reading->load->trace, KY_TIME_NONE, KY_NONE, KY_NONE, 0, KY_LOSS_CTF_PACKETS);
}

static void take_event(struct ctf_reading *reading, const bt_message *message)
{
	const bt_stream *stream =
		bt_event_borrow_stream_const(bt_message_event_borrow_event_const(message));
	int64_t ts = 0;
	if (bt_stream_class_borrow_default_clock_class_const(
		    bt_stream_borrow_class_const(stream))) {
		const bt_clock_snapshot *snapshot =
			bt_message_event_borrow_default_clock_snapshot_const(message);
		if (bt_clock_snapshot_get_ns_from_origin(snapshot, &ts) !=
		    BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK) {
			ky_problem(reading->load->trace, "ctf_time_overflow", KY_DATA_LOSS,
				   KY_NO_PLACE, "an event's time does not fit");
			return;
		}
		reading->has_clock = true;
	} else {
		/* Without a clock there is an order, but no time. */
		ky_problem(reading->load->trace, "ctf_no_clock", KY_INFO, KY_NO_PLACE,
			   "a stream without a clock: its events are a nanosecond apart");
		ts = (int64_t)reading->count;
	}
	ky_ctf_event(&reading->events, bt_message_event_borrow_event_const(message), ts);
	if (reading->count >= reading->count_max)
		reading->error = ky_load_fail(reading->load, KY_NO_PLACE,
					      "its events have no size: there is no end of them");
	else if (++reading->count % PROGRESS_EVERY == 0 && reading->load->progress)
		reading->error = reading->load->progress(reading->load, reading->count, 0);
}

static void take_message(struct ctf_reading *reading, const bt_message *message)
{
	switch (bt_message_get_type(message)) {
	case BT_MESSAGE_TYPE_EVENT:
		take_event(reading, message);
		break;
	case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
		lost_events(reading, message);
		break;
	case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
		lost_packets(reading, message);
		break;
	default:
		break;
	}
}

static bt_graph_simple_sink_component_initialize_func_status start(bt_message_iterator *iterator,
								   void *data)
{
	((struct ctf_reading *)data)->iterator = iterator;
	return BT_GRAPH_SIMPLE_SINK_COMPONENT_INITIALIZE_FUNC_STATUS_OK;
}

static bt_graph_simple_sink_component_consume_func_status consume(bt_message_iterator *iterator,
								  void *data)
{
	struct ctf_reading *reading = data;
	bt_message_array_const messages;
	uint64_t count;
	const bt_message_iterator_next_status status =
		bt_message_iterator_next(iterator, &messages, &count);
	if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK)
		return (bt_graph_simple_sink_component_consume_func_status)status;
	for (uint64_t i = 0; i < count; i++) {
		if (!reading->error)
			take_message(reading, messages[i]);
		bt_message_put_ref(messages[i]);
	}
	return reading->error ? BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_END
			      : BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_OK;
}

/* Addresses of objects in the library's memory mean nothing to anyone, and are others in every run. */
static void drop_addresses(char *text)
{
	for (char *found; (found = strstr(text, "-addr=0x"));) {
		char *from = found, *to = found + strcspn(found, ", ");
		while (from > text && from[-1] != ' ')
			from--;
		to += strspn(to, ", ");
		memmove(from, to, strlen(to) + 1);
	}
	for (size_t end = strlen(text); end && strchr(":, .", text[end - 1]); end--)
		text[end - 1] = '\0';
}

/* Get the library's last and most exact cause; empty when it has none. */
static void take_error(char *text, size_t bytes)
{
	const bt_error *error = bt_current_thread_take_error();
	text[0] = '\0';
	if (!error)
		return;
	if (bt_error_get_cause_count(error))
		snprintf(text, bytes, "%s",
			 bt_error_cause_get_message(bt_error_borrow_cause_by_index(error, 0)));
	bt_error_release(error);
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	drop_addresses(text);
}

/* Return the plugin's component classes; NULL when it is not installed. */
static const bt_plugin *plugin_named(const char *name)
{
	const bt_plugin *plugin = NULL;
	bt_plugin_find(name, BT_FALSE, BT_FALSE, BT_TRUE, BT_FALSE, BT_FALSE, &plugin);
	return plugin;
}

static const bt_component_source *add_source(bt_graph *graph, const bt_plugin *plugin,
					     const char *path)
{
	const bt_component_source *source = NULL;
	bt_value *params = bt_value_map_create();
	bt_value *inputs = NULL;
	if (params && bt_value_map_insert_empty_array_entry(params, "inputs", &inputs) ==
			      BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK) {
		find_traces(path, inputs, 0);
		bt_graph_add_source_component(
			graph, bt_plugin_borrow_source_component_class_by_name_const(plugin, "fs"),
			"ctf", params, BT_LOGGING_LEVEL_NONE, &source);
	}
	bt_value_put_ref(params);
	return source;
}

/* Connects every stream to the muxer, and that to the sink. */
static bool connect(bt_graph *graph, const bt_component_source *source,
		    const bt_component_filter *muxer, const bt_component_sink *sink)
{
	const uint64_t streams = bt_component_source_get_output_port_count(source);
	for (uint64_t i = 0; i < streams; i++)
		if (bt_graph_connect_ports(
			    graph, bt_component_source_borrow_output_port_by_index_const(source, i),
			    bt_component_filter_borrow_input_port_by_index_const(muxer, i),
			    NULL) != BT_GRAPH_CONNECT_PORTS_STATUS_OK)
			return false;
	return bt_graph_connect_ports(
		       graph, bt_component_filter_borrow_output_port_by_index_const(muxer, 0),
		       bt_component_sink_borrow_input_port_by_index_const(sink, 0),
		       NULL) == BT_GRAPH_CONNECT_PORTS_STATUS_OK;
}

/* Builds the graph; false when the library could not. */
static bool build(bt_graph *graph, const bt_plugin *ctf, const bt_plugin *utils,
		  struct ctf_reading *reading)
{
	const bt_component_filter *muxer = NULL;
	const bt_component_sink *sink = NULL;
	const bt_component_source *source = add_source(graph, ctf, reading->load->path);
	if (!source)
		return false;
	bt_graph_add_filter_component(
		graph, bt_plugin_borrow_filter_component_class_by_name_const(utils, "muxer"),
		"muxer", NULL, BT_LOGGING_LEVEL_NONE, &muxer);
	bt_graph_add_simple_sink_component(graph, "kymo", start, consume, NULL, reading, &sink);
	return muxer && sink && connect(graph, source, muxer, sink);
}

static int run(struct ctf_reading *reading, const bt_plugin *ctf, const bt_plugin *utils)
{
	struct ky_load *load = reading->load;
	char why[300];
	bt_graph *graph = bt_graph_create(0);
	if (!graph)
		return -ENOMEM;
	int error = 0;
	if (!build(graph, ctf, utils, reading)) {
		take_error(why, sizeof(why));
		error = ky_load_fail(load, KY_NO_PLACE,
				     "no CTF trace that babeltrace2 can open: %s; the command "
				     "babeltrace2 says more",
				     why);
	} else {
		const bt_graph_run_status status = bt_graph_run(graph);
		take_error(why, sizeof(why));
		if (status != BT_GRAPH_RUN_STATUS_OK && reading->count == 0 && !reading->error)
			error = ky_load_fail(load, KY_NO_PLACE, "no event can be read: %s", why);
		else if (status != BT_GRAPH_RUN_STATUS_OK && !reading->error)
			ky_problem(load->trace, "ctf_damaged", KY_DATA_LOSS, KY_NO_PLACE, "%s",
				   why);
	}
	bt_graph_put_ref(graph);
	return error ? error : reading->error;
}

static int read_with_library(struct ky_load *load, uint64_t bytes)
{
	struct ctf_reading reading = {
		.load = load, .events = {.trace = load->trace}, .count_max = bytes * 8};
	bt_logging_set_global_level(BT_LOGGING_LEVEL_NONE);
	const bt_plugin *ctf = plugin_named("ctf");
	const bt_plugin *utils = plugin_named("utils");
	int error;
	if (ctf && utils)
		error = run(&reading, ctf, utils);
	else
		error = ky_load_fail(
			load, KY_NO_PLACE,
			"babeltrace2's plugins are not there: install libbabeltrace2-0");
	if (reading.has_clock)
		load->trace->clock = KY_CLOCK_REALTIME;
	bt_plugin_put_ref(utils);
	bt_plugin_put_ref(ctf);
	ky_ctf_events_free(&reading.events);
	return error;
}

static int read_trace(struct ky_load *load)
{
	const uint64_t bytes = bytes_below(load->path, 0);
	const int error = rehearse(load, bytes, read_with_library);
	return error ? error : read_with_library(load, bytes);
}

const struct ky_reader ky_reader_ctf = {
	.name = "ctf",
	.title = "Common Trace Format",
	.directory = true,
	.probe = probe,
	.read = read_trace,
};
