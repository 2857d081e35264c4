/* SPDX-License-Identifier: MIT */
/*
 * test_sql_random.c: the same rows whichever way they are found. Conditions, orders and sums by chance over traces
 * by chance: with indexes and over a copy that SQLite made and has none for, summed up at
 * once and row by row.
 */
#include "sql_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TRACES 6
#define QUERIES 150

static const char *const conditions[] = {
	"%sid = 17",
	"%sts > 1500",
	"%sts <= 2100",
	"%strack_id = 2",
	"%strack_id = 99",
	"%sname = 'name 4'",
	"%sname = 'none'",
	"%sname glob 'Job*'",
	"%sdur >= 20",
	"%sdur = 0",
	"%sdepth = 1",
	"%sparent_id is null",
	"%scategory = 'c1'",
	"%scategory is null",
	"%sparent_id = 5",
	"%sid between 10 and 60",
	"%sts = 1600",
	"%sname != 'name 5'",
	"%sname like 'JOB%%'",
	"%sdur < 45.5",
	"%sname is not null",
	"%sname in ('name 1', 'Job#3')",
	"%strack_id in (1, 3)",
	"%sarg_set_id is not null",
	"%sts > '1400'",
};

static const char *const orders[] = {
	"ts, id",   "ts desc, id desc",
	"id desc",  "track_id, ts, id",
	"name, id", "name desc, category, depth, id",
	"dur, id",  "category desc, ts, id",
};

static const char *const sums[] = {
	"count(*), sum(dur), min(ts), max(ts), avg(dur), total(depth)",
	"count(name), count(parent_id), sum(parent_id), min(parent_id)",
	"count(*), max(dur), count(category)",
};

static const char *const groups[] = {"name",
				     "track_id",
				     "category, name",
				     "depth",
				     "dur",
				     "parent_id",
				     "name, track_id, depth, category"};

#define PICK(array) (array)[rand() % (int)(sizeof(array) / sizeof((array)[0]))]

static void add_condition(char *text, size_t room, const char *condition, const char *before)
{
	const size_t used = strlen(text);

	snprintf(text + used, room - used, "%s", used ? " and " : "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text + strlen(text), room - strlen(text), condition, before);
#pragma GCC diagnostic pop
}

static void same(const char *a_text, char *a, const char *b_text, char *b)
{
	if (strcmp(a, b) != 0)
		fail_msg("%s\n%s\nbut %s\n%s", a_text, a, b_text, b);
	free(a);
	free(b);
}

static void make_conditions(char *used, char *unused, size_t room)
{
	used[0] = unused[0] = '\0';
	for (int n = rand() % 4; n >= 0; n--) {
		const char *condition = PICK(conditions);
		add_condition(used, room, condition, "");
		add_condition(unused, room, condition, "s.");
	}
}

static void rows_are_the_same_with_and_without_indexes(void **state)
{
	char used[512], unused[512], a[1024], b[1024];

	(void)state;
	for (unsigned seed = 0; seed < TRACES; seed++) {
		struct ky_trace *trace = model_random(seed, 50 + seed * 100);
		struct ky_sql *sql;
		assert_int_equal(ky_sql_open(&sql, trace), 0);
		for (int i = 0; i < QUERIES; i++) {
			const char *order = PICK(orders);
			make_conditions(used, unused, sizeof(used));
			snprintf(a, sizeof(a),
				 "select id, name, dur from slice where %s order by %s", used,
				 order);
			snprintf(b, sizeof(b),
				 "with s as materialized (select * from slice) select id, name, "
				 "dur from s "
				 "where %s order by %s",
				 unused, order);
			same(a, query_plain(sql, a), b, query_plain(sql, b));
		}
		ky_sql_close(&sql);
		ky_trace_close(&trace);
	}
}

static void sums_are_the_same_at_once_and_row_by_row(void **state)
{
	char used[512], unused[512], a[1024];
	unsigned batches = 0;

	(void)state;
	for (unsigned seed = 0; seed < TRACES; seed++) {
		struct ky_trace *trace = model_random(seed + 50, 50 + seed * 100);
		struct ky_sql *sql;
		assert_int_equal(ky_sql_open(&sql, trace), 0);
		for (int i = 0; i < QUERIES; i++) {
			const char *group = PICK(groups), *sum = PICK(sums);
			make_conditions(used, unused, sizeof(used));
			if (rand() % 4)
				snprintf(
					a, sizeof(a),
					"select %s, %s from slice where %s group by %s order by %s",
					group, sum, used, group, group);
			else
				snprintf(a, sizeof(a), "select %s from slice where %s", sum, used);
			batches += is_batch(sql, a);
			same(a, query(sql, "%s", a), "row by row", query_plain(sql, a));
		}
		ky_sql_close(&sql);
		ky_trace_close(&trace);
	}
	assert_true(batches > TRACES * QUERIES / 2);
}

static void other_tables_are_the_same_too(void **state)
{
	static const char *const pairs[][2] = {
		{"select * from counter where track_id = 7 and ts > 1300 order by ts, id",
		 "select * from counter where +track_id = 7 and +ts > 1300 order by +ts, +id"},
		{"select f.* from flow f join slice s on s.id = f.slice_out order by f.id",
		 "select f.* from flow f join slice s on +s.id = +f.slice_out order by +f.id"},
		{"select s.id, a.int_value from slice s join args a using (arg_set_id) order by "
		 "s.id",
		 "select s.id, a.int_value from slice s join args a on +a.arg_set_id = "
		 "+s.arg_set_id "
		 "order by +s.id"},
		{"select c.id, p.id from slice c join slice p on p.id = c.parent_id order by c.id",
		 "select c.id, p.id from slice c join slice p on +p.id = +c.parent_id order by "
		 "+c.id"},
		{"select s.id, d.id from slice s, descendant_slice(s.id) d order by s.id, d.id",
		 "with recursive r(s, d) as (select parent_id, id from slice where parent_id is "
		 "not null "
		 "union all select r.s, c.id from r join slice c on c.parent_id = r.d) select s, d "
		 "from r "
		 "order by s, d"},
		{"select distinct name, track_id from slice order by 1, 2",
		 "select +name, +track_id from slice group by 1, 2 order by 1, 2"},
		{"select track_id, sum(value), count(*) from counter group by track_id",
		 "select +track_id, sum(+value), count(*) from counter group by 1"},
	};

	(void)state;
	for (unsigned seed = 0; seed < TRACES; seed++) {
		struct ky_trace *trace = model_random(seed + 100, 200);
		struct ky_sql *sql;
		assert_int_equal(ky_sql_open(&sql, trace), 0);
		for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
			same(pairs[i][0], query(sql, "%s", pairs[i][0]), pairs[i][1],
			     query(sql, "%s", pairs[i][1]));
		ky_sql_close(&sql);
		ky_trace_close(&trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_the_same_with_and_without_indexes),
		cmocka_unit_test(sums_are_the_same_at_once_and_row_by_row),
		cmocka_unit_test(other_tables_are_the_same_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
