/* SPDX-License-Identifier: MIT */
/* test_sql.c: SQL over a trace: every table and function, how conditions are used, what is refused. */
#include "sql_model.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct ky_trace *trace;
static struct ky_sql *sql;

static int open_all(void **state)
{
	(void)state;
	trace = model_of_all();
	return ky_sql_open(&sql, trace);
}

static int close_all(void **state)
{
	(void)state;
	ky_sql_close(&sql);
	ky_trace_close(&trace);
	return 0;
}

#define EXPECT(text, expected)                                                                     \
	do {                                                                                       \
		char *result = query(sql, "%s", text);                                             \
		assert_string_equal(result, expected);                                             \
		free(result);                                                                      \
	} while (0)

#define EXPECT_PLAN(text, part)                                                                    \
	do {                                                                                       \
		char *result = plan(sql, text);                                                    \
		if (!strstr(result, part))                                                         \
			fail_msg("the plan of %s is\n%s", text, result);                           \
		free(result);                                                                      \
	} while (0)

static void slices_have_their_columns(void **state)
{
	(void)state;
	EXPECT("select id, ts, dur, category, name, depth, parent_id, cat, slice_id from slice "
	       "where "
	       "name = 'middle'",
	       "2|1100|500|cat|middle|1|0|cat|2\n");
	EXPECT("select count(*), sum(dur = -1) from slices", "9|1\n");
	EXPECT("select ts, name from instant order by ts", "1450|tick\n1700|ping\n");
	EXPECT("select thread_ts, thread_dur, thread_instruction_count from slice limit 1",
	       "NULL|NULL|NULL\n");
}

static void tracks_are_in_the_tables_of_their_kind(void **state)
{
	(void)state;
	EXPECT("select t.name, count(*) from slice s join thread_track k on s.track_id = k.id join "
	       "thread t using (utid) group by 1 order by 1",
	       "NULL|1\nmain|6\n");
	EXPECT("select s.name, p.name from slice s join process_track k on s.track_id = k.id join "
	       "process p using (upid)",
	       "start|program\n");
	EXPECT("select name from counter_track order by name", "cpufreq\ndepth\nheap\n");
	EXPECT("select k.name, p.pid from process_counter_track k join process p using (upid)",
	       "heap|11\n");
	EXPECT("select k.name, t.tid from thread_counter_track k join thread t using (utid)",
	       "depth|11\n");
	EXPECT("select name, cpu from cpu_counter_track", "cpufreq|2\n");
	EXPECT("select count(*) from cpu_track", "0\n");
	EXPECT("select (select count(*) from track) = (select count(*) from thread_track) + "
	       "(select "
	       "count(*) from process_track) + (select count(*) from counter_track) + 1",
	       "1\n");
}

static void threads_and_processes_have_their_columns(void **state)
{
	(void)state;
	EXPECT("select tid, name, is_main_thread, is_idle, machine_id from thread where tid in "
	       "(11, "
	       "12) order by tid",
	       "11|main|1|0|0\n12|NULL|0|0|0\n");
	EXPECT("select pid, name, cmdline, parent_upid, uid, upid = id from process where pid = 11",
	       "11|program|NULL|NULL|NULL|1\n");
}

static void counters_have_values(void **state)
{
	(void)state;
	EXPECT("select ts, value from counter c join counter_track t on c.track_id = t.id where "
	       "t.name = 'heap' order by ts",
	       "1100|10.0\n1200|20.5\n");
	EXPECT("select ts, name, value from counters where name = 'depth'", "1300|depth|3.0\n");
}

static void args_have_keys_types_and_texts(void **state)
{
	(void)state;
	EXPECT("select flat_key, key, int_value, string_value, real_value, value_type, "
	       "display_value "
	       "from args where arg_set_id = (select arg_set_id from slice where name = 'outer') "
	       "and "
	       "key not like '%b'",
	       "debug.n|debug.n|-7|NULL|NULL|int|-7\n"
	       "debug.u|debug.u|-1|NULL|NULL|uint|18446744073709551615\n"
	       "debug.r|debug.r|NULL|NULL|1.5|real|1.5\n"
	       "debug.t|debug.t|1|NULL|NULL|bool|true\n"
	       "debug.p|debug.p|48879|NULL|NULL|pointer|0xbeef\n");
	EXPECT("select flat_key from args where key = 'debug.a[1].b'", "debug.a.b\n");
	EXPECT("select extract_arg(arg_set_id, 'debug.n'), extract_arg(arg_set_id, 'none') from "
	       "slice "
	       "where name = 'outer'",
	       "-7|NULL\n");
	EXPECT("select count(*) from args a where not exists (select 1 from args b where "
	       "b.arg_set_id = a.arg_set_id and b.id = a.id)",
	       "0\n");
}

static void flows_lead_from_slice_to_slice(void **state)
{
	(void)state;
	EXPECT("select o.name, i.name, f.arg_set_id from flow f join slice o on o.id = f.slice_out "
	       "join slice i on i.id = f.slice_in",
	       "inner|receive|NULL\n");
	EXPECT("select count(*) from slice s, following_flow(s.id) where s.name = 'outer'", "1\n");
	EXPECT("select count(*) from slice s, directly_connected_flow(s.id) where s.name = 'outer'",
	       "0\n");
	EXPECT("select count(*) from slice s, preceding_flow(s.id) where s.name = 'receive'",
	       "1\n");
	EXPECT("select count(*) from following_flow(123456)", "0\n");
}

static void relatives_are_found(void **state)
{
	(void)state;
	EXPECT("select a.name from slice s, ancestor_slice(s.id) a where s.ts = 1400 order by a.id",
	       "outer\nmiddle\n");
	EXPECT("select name from descendant_slice(0) order by ts", "middle\ninner\ninner\nping\n");
	EXPECT("select slice_is_ancestor(0, 2), slice_is_ancestor(2, 0)", "1|0\n");
	EXPECT("select count(*) from ancestor_slice(null)", "0\n");
	EXPECT("select count(*) from ancestor_slice", "error: no query solution\n");
}

static void kernel_tables_are_there(void **state)
{
	(void)state;
	EXPECT("select s.ts, s.dur, s.cpu, t.tid, s.end_state, s.priority, s.ts_end from sched s "
	       "join "
	       "thread t using (utid) where t.tid = 11",
	       "1010|50|2|11|S|120|1060\n");
	EXPECT("select count(*) from sched_slice where cpu = 2 and ucpu = 2 and ts < 1020", "1\n");
	EXPECT("select ts, state, cpu from thread_state join thread using (utid) where tid = 11 "
	       "order "
	       "by ts",
	       "1010|Running|2\n1060|S|NULL\n1080|R|NULL\n");
	EXPECT("select ts, e.name, cpu, extract_arg(arg_set_id, 'next_comm') from ftrace_event e",
	       "1010|sched_switch|2|main\n");
	EXPECT("select cpu from cpu", "2\n");
}

static void samples_have_stacks(void **state)
{
	(void)state;
	EXPECT("select ts, cpu, cpu_mode, weight, event from perf_sample",
	       "1300|2|user|1.0|cycles\n");
	EXPECT("select f.name, p.name, m.name, m.build_id from cpu_profile_stack_sample s join "
	       "stack_profile_callsite c on c.id = s.callsite_id join stack_profile_frame f on "
	       "f.id = "
	       "c.frame_id join stack_profile_mapping m on m.id = f.mapping left join "
	       "stack_profile_callsite q on q.id = c.parent_id left join stack_profile_frame p on "
	       "p.id "
	       "= q.frame_id",
	       "main|NULL|/bin/x|abcd\n");
	EXPECT("select s.name, source_file, line_number from stack_profile_symbol s join "
	       "stack_profile_frame f using (symbol_set_id)",
	       "work|work.c|12\n");
}

static void what_is_around_the_events_is_there(void **state)
{
	(void)state;
	EXPECT("select ts, prio, tag, msg from android_logs", "1500|4|tag|a message\n");
	EXPECT("select count(*) from log", "1\n");
	EXPECT("select clock_name, clock_value from clock_snapshot order by clock_id",
	       "REALTIME|1700000000000001000\nBOOTTIME|1000\n");
	EXPECT("select int_value, str_value from metadata where name in ('host', 'cpus') order by "
	       "name",
	       "8|NULL\nNULL|box\n");
	EXPECT("select name, severity, source, value, idx, key from stats where name = "
	       "'misplaced_end_event'",
	       "misplaced_end_event|error|analysis|1|NULL|NULL\n");
	EXPECT("select number, first_at, first from problem where name = 'misplaced_end_event'",
	       "1|42|nothing to end\n");
	EXPECT("select ts, events, cpu, what from loss", "1600|5|NULL|ring overwritten\n");
	EXPECT("select start_ts = trace_start(), end_ts = trace_end(), trace_dur() = end_ts - "
	       "start_ts "
	       "from trace_bounds",
	       "1|1|1\n");
	EXPECT("select id from machine", "0\n");
}

static void views_of_slices_with_their_context(void **state)
{
	(void)state;
	EXPECT("select name, thread_name, tid, is_main_thread, process_name, pid from thread_slice "
	       "where name = 'outer'",
	       "outer|main|11|1|program|11\n");
	EXPECT("select name, process_name from process_slice", "start|program\n");
	EXPECT("select count(*) from thread_or_process_slice", "8\n");
}

static void functions_of_times(void **state)
{
	(void)state;
	EXPECT("select to_realtime(2000), abs_time_str(1000), to_monotonic(5)",
	       "1700000000000002000|2023-11-14T22:13:20.000001000|NULL\n");
	EXPECT("select to_timecode(123456789012), to_timecode(null)",
	       "00:02:03 456 789 012|NULL\n");
	EXPECT("select time_to_ms(1500000), time_to_s(1999999999), time_from_ms(3), time_to_us(1), "
	       "time_to_min(61000000000)",
	       "1|1|3000000|0|1\n");
	EXPECT("select format_duration(1250000), format_duration(999), format_duration(-12345), "
	       "format_duration(999999999)",
	       "1.25 ms|999 ns|-12.3 us|1.00 s\n");
	EXPECT("select time_from_days(9223372036854775807)", "error: integer overflow\n");
}

static void functions_of_texts(void **state)
{
	(void)state;
	EXPECT("select str_split('a,b,c', ',', 1), str_split('a,b', ',', 9), reverse('aé'), "
	       "null_if_empty(''), extract_metadata('host')",
	       "b|NULL|éa|NULL|box\n");
	EXPECT("select 'abc' regexp 'b', 'abc' regexp '^b', regexp_extract('abc123', '[0-9]+'), "
	       "regexp_extract('k=v', '=(.)')",
	       "1|0|123|v\n");
	EXPECT("select hash('a') = hash('a'), hash('a', 'b') = hash('ab')", "1|0\n");
	EXPECT("select name from slice where name regexp '^i.*r$' limit 1", "inner\n");
	EXPECT("select 1 from slice where name regexp '('",
	       "error: no regular expression, or one that is too expensive\n");
	/* Not in the square of the length; a place that cannot be found in time is an error. */
	EXPECT("select text regexp '(.*)(.*)(.*)(.*)x', (text||'x') regexp 'a.*(.*)x$', text regexp 'b|^a', "
	       "regexp_extract(text, '(.*)(.*)(.*)x') from "
	       "(select replace(hex(zeroblob(50000)), '0', 'a') as text)",
	       "0|1|1|NULL\n");
	EXPECT("select regexp_extract(replace(hex(zeroblob(50000)), '0', 'a') || 'x', '(.*)(.*)x')",
	       "error: the text is too long for this regular expression: use LIKE, GLOB or substr()\n");
	EXPECT("select 'a' regexp '(a{1,200}){1,200}'",
	       "error: no regular expression, or one that is too expensive\n");
	EXPECT("select 'a' regexp '^a++++++++++++++++++++++++++++++++++++$'",
	       "error: no regular expression, or one that is too expensive\n");
	EXPECT("select 'a' regexp '(a{100}{100}|[]({[:digit:]]){9}'",
	       "error: no regular expression, or one that is too expensive\n");
	EXPECT("select 'abcdefghijklmn' regexp '^a+b+c+d+e+f+g+h+i+j+k+l+m+n+$', "
	       "'])+++' regexp '^[])+]+$'",
	       "1|1\n");
}

static void percentiles_go_between_values(void **state)
{
	(void)state;
	EXPECT("with v(x) as (values (20), (1), (2), (10), (null)) select percentile(x, 50), "
	       "percentile_disc(x, 0.5), percentile_cont(x, 0.5), median(x), percentile(x, 100) "
	       "from v",
	       "6.0|2.0|6.0|6.0|20.0\n");
	EXPECT("select percentile(dur, 101) from slice",
	       "error: the fraction of PERCENTILE() is not between 0 and 100\n");
}

static void conditions_are_used(void **state)
{
	(void)state;
	EXPECT_PLAN("select * from slice where id = 3", "id id=");
	EXPECT_PLAN("select * from slice where rowid = 3", "id rowid=");
	EXPECT_PLAN("select * from slice where track_id = 1", "index track_id=");
	EXPECT_PLAN("select * from slice where name = 'x'", "index name=");
	EXPECT_PLAN("select * from slice where parent_id = 1", "index parent_id=");
	EXPECT_PLAN("select * from args where arg_set_id = 1", "index arg_set_id=");
	EXPECT_PLAN("select * from flow where slice_out = 1", "index slice_out=");
	EXPECT_PLAN("select * from flow where slice_in = 1", "index slice_in=");
	EXPECT_PLAN("select * from sched where cpu = 1", "index cpu=");
	EXPECT_PLAN("select * from sched where utid = 1", "index utid=");
	EXPECT_PLAN("select * from thread_state where utid = 1", "index utid=");
	EXPECT_PLAN("select * from perf_sample where utid = 1", "index utid=");
	EXPECT_PLAN("select * from counter where track_id = 1", "index track_id=");
	EXPECT_PLAN("select * from slice where ts between 5 and 9", "scan ts>= ts<=");
	EXPECT_PLAN("select * from slice where name glob 'x*' and dur > 5", "name~");
}

static void orders_need_no_sorter(void **state)
{
	static const char *const sorted[] = {
		"select * from slice order by ts",
		"select * from slice order by ts desc, id desc",
		"select * from slice order by id",
		"select * from slice where track_id = 1 order by ts",
		"select * from slice order by track_id, ts",
		"select name, group_concat(id) from slice group by name",
		"select * from slice order by name desc, category",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sorted) / sizeof(sorted[0]); i++) {
		char *result = plan(sql, sorted[i]);
		if (strstr(result, "TEMP B-TREE"))
			fail_msg("%s is sorted by SQLite:\n%s", sorted[i], result);
		free(result);
	}
	EXPECT_PLAN("select * from slice order by dur", "TEMP B-TREE");
	EXPECT("select ts from slice order by ts desc limit 2", "1900\n1700\n");
	EXPECT("select name, ts from slice where depth > 0 order by name, ts",
	       "inner|1200\ninner|1400\nmiddle|1100\nping|1700\n");
	EXPECT("select distinct category from slice order by 1", "NULL\ncat\n");
}

static void joins_are_planned_from_the_few_to_the_many(void **state)
{
	struct ky_trace *large = model_random(1, 2000);
	struct ky_sql *small = sql;

	(void)state;
	assert_int_equal(ky_sql_open(&sql, large), 0);
	EXPECT_PLAN("select * from slice join args using (arg_set_id)", "index arg_set_id=");
	EXPECT_PLAN("select * from thread join thread_track using (utid) join slice on "
		    "slice.track_id = thread_track.id where thread.name = 'main'",
		    "index track_id=");
	ky_sql_close(&sql);
	ky_trace_close(&large);
	sql = small;
}

/* Whether a statement only sums up is read from the program that SQLite makes of it: another SQLite may make another one. */
static void sums_take_no_step_for_each_row(void **state)
{
	static const char *const common[] = {
		"select count(*) from slice",
		"select count(*), min(ts), max(dur), avg(dur) from slice",
		"select count(*), sum(dur) from slice where name = 'middle'",
		"select sum(dur) from slice where dur > 5",
		"select count(*) from slice where ts between 1000 and 2000",
		"select name, count(*), sum(dur) from slice group by name",
		"select name, count(*), sum(dur) from slice group by name order by 3 desc limit 10",
		("select category, name, count(name), total(dur) t from slice where dur > 5 and name "
		 "glob '*e*' group by 1, 2 having count(*) > 1 order by t desc limit 3"),
		"select track_id, count(*), max(dur) from slice group by track_id",
		"select track_id, avg(value) from counter group by track_id",
		"select cpu, sum(dur) from sched group by cpu",
		"select utid, sum(dur) from sched group by utid order by 2 desc",
		"select state, count(*), sum(dur) from thread_state group by state",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++) {
		if (!is_batch(sql, common[i]))
			fail_msg("SQLite %s: sql_batch.c does not recognise the program of: %s",
				 sqlite3_libversion(), common[i]);
	}
	/* These mean more than that. */
	assert_false(is_batch(sql, "select name, max(dur), ts from slice group by name"));
	assert_false(is_batch(sql, "select name, count(distinct dur) from slice group by name"));
	assert_false(is_batch(sql, "select name, sum(dur * 2) from slice group by name"));
	assert_false(is_batch(sql, "select count(*) from slice where dur % 2 = 0"));
	assert_false(is_batch(
		sql, "select count(*) from slice s join thread_track t on t.id = s.track_id"));
	assert_false(is_batch(sql, "select min(name) from slice"));
	assert_false(is_batch(sql, "select count(*) filter (where dur > 5) from slice"));
	assert_false(is_batch(sql, "select sum(depth) from slice group by depth"));
	assert_false(is_batch(sql, "select name from slice order by name"));
	assert_false(is_batch(sql, "select count(*) over (order by ts) from slice"));
}

static void what_users_create_is_seen(void **state)
{
	(void)state;
	EXPECT("create perfetto table long(id LONG, name STRING) as select id, name from slice "
	       "where "
	       "dur >= 500; select name from long order by name;",
	       "middle\nouter\n");
	EXPECT("create or replace perfetto table long as select 5 as five; select * from long",
	       "5\n");
	EXPECT("create view slice as select 1 as one; select count(*) from slice; drop view slice",
	       "1\n");
	EXPECT("select count(*) from slice", "9\n");
}

static void perfettos_words_are_taken(void **state)
{
	(void)state;
	EXPECT("include perfetto module slices.with_context; -- a comment; with a semicolon\n"
	       "INCLUDE PERFETTO MODULE time.conversion;select import('x'), ';' as s;;",
	       "NULL|;\n");
	EXPECT("create perfetto index i on slice(name)", "");
}

static void errors_say_where(void **state)
{
	(void)state;
	EXPECT("select 1;\nselect nam\nfrom slice",
	       "1\nerror: line 2, column 8: no such column: nam\n");
	EXPECT("selec", "error: line 1, column 1: near \"selec\": syntax error\n");
	EXPECT("select * from nowhere", "error: no such table: nowhere\n");
}

static void nothing_outside_is_reached(void **state)
{
	(void)state;
	EXPECT("attach '/tmp/x.db' as x", "error: not authorized\n");
	EXPECT("insert into slice(name) values ('x')", "error: table slice may not be modified\n");
	EXPECT("delete from slice", "error: table slice may not be modified\n");
	EXPECT("vacuum into '/tmp/kymo-test-vacuum.db'", "error: authorization denied\n");
	EXPECT("pragma temp_store_directory = '/tmp'", "error: not authorized\n");
	EXPECT("pragma writable_schema = 1", "error: not authorized\n");
	EXPECT("select load_extension('x')",
	       "error: line 1, column 8: not authorized to use function: load_extension\n");
}

static void comparisons_follow_sqlites_rules(void **state)
{
	(void)state;
	EXPECT("select count(*) from slice where ts > 1099.5 and ts <= 1200.0", "2\n");
	EXPECT("select count(*) from slice where ts = '1100'", "1\n");
	EXPECT("select count(*) from slice where ts < 'x'", "9\n");
	EXPECT("select count(*) from slice where ts > 'x'", "0\n");
	EXPECT("select count(*) from slice where ts > 1e30 or ts < -1e30", "0\n");
	EXPECT("select count(*) from slice where ts != 1100.5", "9\n");
	EXPECT("select count(*) from slice where parent_id is null", "5\n");
	EXPECT("select count(*) from slice where parent_id = null", "0\n");
	EXPECT("select count(*) from slice where name = 'OUTER' collate nocase", "1\n");
	EXPECT("select count(*) from slice where name like 'OUT%'", "1\n");
	EXPECT("select count(*) from slice where name in ('inner', 'outer', 'none')", "3\n");
	EXPECT("select count(*) from slice where id > 9223372036854775806 or id < -5", "0\n");
	EXPECT("select count(*) from slice where name > 'n'", "6\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slices_have_their_columns),
		cmocka_unit_test(tracks_are_in_the_tables_of_their_kind),
		cmocka_unit_test(threads_and_processes_have_their_columns),
		cmocka_unit_test(counters_have_values),
		cmocka_unit_test(args_have_keys_types_and_texts),
		cmocka_unit_test(flows_lead_from_slice_to_slice),
		cmocka_unit_test(relatives_are_found),
		cmocka_unit_test(kernel_tables_are_there),
		cmocka_unit_test(samples_have_stacks),
		cmocka_unit_test(what_is_around_the_events_is_there),
		cmocka_unit_test(views_of_slices_with_their_context),
		cmocka_unit_test(functions_of_times),
		cmocka_unit_test(functions_of_texts),
		cmocka_unit_test(percentiles_go_between_values),
		cmocka_unit_test(conditions_are_used),
		cmocka_unit_test(orders_need_no_sorter),
		cmocka_unit_test(joins_are_planned_from_the_few_to_the_many),
		cmocka_unit_test(sums_take_no_step_for_each_row),
		cmocka_unit_test(perfettos_words_are_taken),
		cmocka_unit_test(errors_say_where),
		cmocka_unit_test(nothing_outside_is_reached),
		cmocka_unit_test(comparisons_follow_sqlites_rules),
		cmocka_unit_test(what_users_create_is_seen),
	};
	return cmocka_run_group_tests(tests, open_all, close_all);
}
