/* SPDX-License-Identifier: MIT */
/*
 * test_spans.c: what comes out when begins or ends are missing. Events are written in short: a
 * letter is a span by hand (KYMO_BEGIN), a digit a scope; "<a" begins, ">a" ends, "." is an
 * instant, "!" a loss, "^" the head of a new file. A begin that was made up shows as "(a". Time
 * goes on by ten with each event; "@" and a time follow where asked for.
 */
#include "sink/spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct script {
	struct ky_spans spans;
	struct ky_site sites[128]; /* by letter */
	struct ky_thread threads[2];
	char out[1024];
	bool times;
	uint64_t now_ns;
};

static char sign_of(const struct ky_event *event)
{
	switch (event->kind) {
	case KYMO_KIND_BEGIN:
		return event->begin_lost ? '(' : '<';
	case KYMO_KIND_END:
		return '>';
	case KYMO_KIND_LOST:
		return '!';
	default:
		return '.';
	}
}

static void note(void *context, const struct ky_event *event)
{
	struct script *s = context;
	const size_t used = strlen(s->out);
	const bool named = event->kind == KYMO_KIND_BEGIN || event->kind == KYMO_KIND_END;
	char *to = s->out + used;
	const size_t room = sizeof(s->out) - used;
	int bytes = snprintf(to, room, "%c%.*s", sign_of(event), named ? (int)event->name.bytes : 0,
			     event->name.data);
	if (s->times)
		bytes += snprintf(to + bytes, room - (size_t)bytes, "@%d ", (int)event->time_ns);
	assert_true((size_t)bytes < room);
}

static const struct ky_site *site_of(struct script *s, char letter, bool end)
{
	static char names[128][2];
	const int at = letter;
	struct ky_site *site = &s->sites[at];
	const bool scope = letter >= '0' && letter <= '9';
	names[at][0] = letter;
	site->kind = end && !scope ? KYMO_KIND_END : KYMO_KIND_BEGIN;
	site->flags = scope ? KYMO_SITE_SCOPE : 0;
	site->name = (struct ky_text){names[at], 1};
	return site;
}

static void pass(struct script *s, uint8_t kind, const struct ky_site *site, uint32_t thread)
{
	const struct ky_event event = {.kind = kind,
				       .time_ns = s->now_ns,
				       .site = site,
				       .thread = &s->threads[thread],
				       .name = site ? site->name : (struct ky_text){"", 0}};
	s->now_ns += 10;
	ky_spans_pass(&s->spans, &event);
}

static void play(struct script *s, const char *text)
{
	uint32_t thread = 0;
	for (; *text; text++) {
		if (*text == '<')
			pass(s, KYMO_KIND_BEGIN, site_of(s, *++text, false), thread);
		else if (*text == '>')
			pass(s, KYMO_KIND_END, site_of(s, *++text, true), thread);
		else if (*text == '.')
			pass(s, KYMO_KIND_INSTANT, site_of(s, 'i', false), thread);
		else if (*text == '!')
			pass(s, KYMO_KIND_LOST, NULL, thread);
		else if (*text == '^')
			ky_spans_reopen(&s->spans);
		else if (*text == '/')
			thread = !thread;
	}
}

static void expect_result(const char *text, bool times, const char *expected)
{
	struct script script = {.times = times, .now_ns = 1000};
	script.spans.emit = note;
	script.spans.context = &script;
	script.threads[1].index = 100;
	play(&script, text);
	ky_spans_free(&script.spans);
	assert_string_equal(script.out, expected);
}

static void balanced_spans_pass_as_they_are(void **state)
{
	(void)state;
	expect_result("<a<b.>b>a<1>1", false, "<a<b.>b>a<1>1");
	expect_result("<1<1<1>1>1>1", false, "<1<1<1>1>1>1");
}

static void an_end_alone_gets_a_begin_before_the_first_event(void **state)
{
	(void)state;
	expect_result(".>1", true, ".@1000 (1@999 >1@1010 ");
	expect_result(".>1.>2", true, ".@1000 (1@999 >1@1010 .@1020 (2@998 >2@1030 ");
	expect_result(">1", true, "(1@999 >1@1000 ");
}

static void an_end_without_a_name_says_that_its_begin_is_lost(void **state)
{
	(void)state;
	struct script script = {.now_ns = 1000};
	script.spans.emit = note;
	script.spans.context = &script;
	const struct ky_site end = {.kind = KYMO_KIND_END, .name = {"", 0}};
	pass(&script, KYMO_KIND_END, &end, 0);
	ky_spans_free(&script.spans);
	assert_string_equal(script.out, "((begin lost)>");
}

static void the_end_of_a_scope_closes_what_was_left_open_in_it(void **state)
{
	(void)state;
	expect_result("<1<a<b>1.", false, "<1<a<b>b>a>1.");
	expect_result("<1<2<a>2>1", false, "<1<2<a>a>2>1");
}

static void an_end_by_hand_closes_the_innermost(void **state)
{
	(void)state;
	expect_result("<a<b>x>y", false, "<a<b>x>y");
}

static void the_end_of_a_scope_that_was_open_before_closes_what_came_after(void **state)
{
	(void)state;
	expect_result("<a>1", false, "<a>a(1>1");
	expect_result("<a>1", true, "<a@1000 >a@1010 (1@999 >1@1010 ");
}

static void spans_open_at_a_gap_end_there_and_come_back_as_lost(void **state)
{
	(void)state;
	expect_result("<1<2!.>2>1", true,
		      "<1@1000 <2@1010 >2@1010 >1@1010 !@1020 .@1030 (2@1029 >2@1040 (1@1028 "
		      ">1@1050 ");
	expect_result("!<a>a", false, "!<a>a");
}

static void threads_do_not_mix(void **state)
{
	(void)state;
	expect_result("<a/<b/>a/>b", false, "<a<b>a>b");
	expect_result("<a/!/>a", false, "<a!>a");
	expect_result("<1/>1", false, "<1(1>1");
}

static void a_new_file_begins_with_what_is_open(void **state)
{
	(void)state;
	expect_result("<a<b^>b^>a^", false, "<a<b<a<b>b<a>a");
	expect_result("<a<b^>b>a", true, "<a@1000 <b@1010 <a@1000 <b@1010 >b@1020 >a@1030 ");
	expect_result("^", false, "");
}

static void a_new_file_keeps_names_that_events_brought(void **state)
{
	(void)state;
	struct script script = {.now_ns = 1000};
	script.spans.emit = note;
	script.spans.context = &script;
	const struct ky_site site = {
		.kind = KYMO_KIND_BEGIN, .flags = KYMO_SITE_NAME, .name = {"", 0}};
	char name[] = "mine";
	const struct ky_event event = {.kind = KYMO_KIND_BEGIN,
				       .site = &site,
				       .thread = &script.threads[0],
				       .name = {name, 4}};
	ky_spans_pass(&script.spans, &event);
	memset(name, 'x', 4);
	ky_spans_reopen(&script.spans);
	ky_spans_free(&script.spans);
	assert_string_equal(script.out, "<mine<mine");
}

static void depth_has_no_limit(void **state)
{
	(void)state;
	static char text[4001], expected[4001];
	struct script script = {.now_ns = 1000};
	for (int i = 0; i < 200; i++)
		strcat(text, "<1");
	for (int i = 0; i < 200; i++)
		strcat(text, ">1");
	strcpy(expected, text);
	script.spans.emit = note;
	script.spans.context = &script;
	play(&script, text);
	ky_spans_free(&script.spans);
	assert_string_equal(script.out, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(balanced_spans_pass_as_they_are),
		cmocka_unit_test(an_end_alone_gets_a_begin_before_the_first_event),
		cmocka_unit_test(an_end_without_a_name_says_that_its_begin_is_lost),
		cmocka_unit_test(the_end_of_a_scope_closes_what_was_left_open_in_it),
		cmocka_unit_test(an_end_by_hand_closes_the_innermost),
		cmocka_unit_test(the_end_of_a_scope_that_was_open_before_closes_what_came_after),
		cmocka_unit_test(spans_open_at_a_gap_end_there_and_come_back_as_lost),
		cmocka_unit_test(threads_do_not_mix),
		cmocka_unit_test(a_new_file_begins_with_what_is_open),
		cmocka_unit_test(a_new_file_keeps_names_that_events_brought),
		cmocka_unit_test(depth_has_no_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
