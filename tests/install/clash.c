/* SPDX-License-Identifier: MIT */
/*
 * clash.c: every family of macros in a program whose own macros have the headers' ordinary words as
 * names (words.h, made by words.py). C11 and C++11; it only has to compile.
 */
#include <stddef.h>
#include <stdint.h>

#include "words.h"

#include <kymo/kymo.h>
#include <kymo/trace_event.h>

int kymo_test_clash(int KY1, const char *KY2, double KY3, void *KY4);

int kymo_test_clash(int KY1, const char *KY2, double KY3, void *KY4)
{
	KYMO_SCOPE("net", "scope", "1", KY1, "2", KY2, "3", KY3, "4", KY4);
	KYMO_SCOPE_DYN("net", KY2, "1", KY1);
	KYMO_SCOPE_OVER("net", "over", 1000, "1", KY1);
	KYMO_SCOPE_OVER_DYN("net", KY2, 1000, "1", KY1);
	KYMO_BEGIN("net", "begin", "2", KY2);
	KYMO_END("net");
	KYMO_INSTANT("net", "instant", "3", KY3);
	KYMO_COUNTER("net", "counter", KY1);
	KYMO_COUNTER_DYN("net", KY2, KY3);
	KYMO_ASYNC_BEGIN("net", "async", KY4, "1", KY1);
	KYMO_ASYNC_END_DYN("net", KY2, KY1);
	KYMO_FLOW_BEGIN("net", "flow", KY1);
	KYMO_PRINT("net", "%d %s", KY1, KY2);
	kymo_thread_name("thread");
	kymo_process_name("process");
	kymo_snapshot("reason", 1);
	kymo_mark_start();
	TRACE_EVENT1("net", "scope", "1", KY1);
	TRACE_EVENT_WITH_FLOW0("net", "flow", KY1, TRACE_EVENT_FLAG_FLOW_OUT);
	TRACE_EVENT_BEGIN0("net", KY2);
	TRACE_EVENT_END("net");
	TRACE_EVENT_INSTANT1(KY2, "instant", TRACE_EVENT_SCOPE_PROCESS, KY2, KY3);
	TRACE_EVENT_INSTANT_WITH_TIMESTAMP0("net", "instant", TRACE_EVENT_SCOPE_THREAD, 1);
	TRACE_COUNTER_ID1("net", "counter", KY4, KY1);
	TRACE_EVENT_NESTABLE_ASYNC_BEGIN0("net", "async", TRACE_ID_LOCAL(KY4));
	TRACE_EVENT_ASYNC_STEP_INTO0("net", "async", TRACE_ID_WITH_SCOPE("s", KY1), "step");
	TRACE_EVENT_SAMPLE_WITH_TID_AND_TIMESTAMP0("net", "sample", 1, 2);
	TRACE_EVENT_OBJECT_SNAPSHOT_WITH_ID("net", "object", KY4, KY2);
	TRACE_EVENT_CLOCK_SYNC_ISSUER("id", 1, 2);
	TRACE_EVENT_CATEGORY_GROUP_ENABLED("net", &KY1);
	TRACE_EVENT_IS_NEW_TRACE(&KY1);
	return KYMO_ENABLED("net");
}
