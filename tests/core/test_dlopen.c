/* SPDX-License-Identifier: MIT */
/*
 * test_dlopen.c: an instrumented library is loaded and unloaded a thousand times. Its trace points
 * are the same each time, so the drum does not grow, and what was recorded stays readable when the
 * library is gone. KYMO_TARGET_TRACED_MODULE names the library.
 */
#include "readback.h"

#include <dlfcn.h>
#include <kymo/kymo.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS 1000u

static uint64_t function_value(void *library, const char *name)
{
	void *at = dlsym(library, name);
	uint64_t value = 0;
	CHECK(at);
	memcpy(&value, &at, sizeof(at));
	return value;
}

static void load_trace_unload(uint32_t number)
{
	void *library = dlopen(getenv("KYMO_TARGET_TRACED_MODULE"), RTLD_NOW | RTLD_LOCAL);
	if (!library)
		check_failed(__FILE__, __LINE__, dlerror());
	void (*trace)(uint32_t) = (void (*)(uint32_t))function_value(library, "plugin_trace");
	uint32_t (*calls)(void) = (uint32_t(*)(void))function_value(library, "plugin_calls");
	CHECK(calls() == 0);
	trace(number);
	CHECK(calls() == 1);
	dlclose(library);
}

static void check_event(void *context, const struct ky_event *e)
{
	uint32_t *at = context;
	const uint32_t number = *at / 3;
	CHECK(e->kind != KYMO_KIND_LOST && strcmp(e->site->category.data, "plugin") == 0);
	CHECK(strstr(e->site->file.data, "dlopen_plugin.c"));
	if (*at % 3 == 0)
		CHECK(e->kind == KYMO_KIND_BEGIN && strcmp(e->name.data, "work") == 0);
	else if (*at % 3 == 2)
		CHECK(e->kind == KYMO_KIND_END && strcmp(e->name.data, "work") == 0);
	else
		CHECK(strcmp(readback_arg(e, "text")->string, "from the plugin") == 0);
	if (*at % 3 != 2)
		CHECK(readback_arg(e, "number")->value.u == number);
	++*at;
}

static void load_often(void)
{
	uint32_t at = 0;
	ky_limits.categories = "*";
	load_trace_unload(0);
	const struct ky_drum_header *header = ky_drum_get()->header;
	const uint64_t used = header->heap_used, rings = header->rings_used;
	for (uint32_t i = 1; i < ROUNDS; i++)
		load_trace_unload(i);
	CHECK(header->heap_used == used && header->rings_used == rings);
	const struct readback totals = readback(check_event, &at);
	CHECK(totals.events == 3 * ROUNDS && totals.lost == 0 && totals.damaged == 0);
	CHECK(header->refused_sites + header->refused_strings + header->refused_categories == 0);
}

static void a_library_that_comes_and_goes_is_registered_once(void **state)
{
	(void)state;
	if (!getenv("KYMO_TARGET_TRACED_MODULE"))
		skip();
	assert_int_equal(in_child(load_often), 0);
}

static void *load_in_thread(void *context)
{
	load_trace_unload((uint32_t)(uintptr_t)context);
	return NULL;
}

/* A thread that ends after the library it traced in is gone. */
static void load_in_threads(void)
{
	uint32_t at = 0;
	ky_limits.categories = "*";
	for (uintptr_t i = 0; i < 100; i++) {
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, load_in_thread, (void *)i) == 0);
		pthread_join(thread, NULL);
	}
	const struct readback totals = readback(check_event, &at);
	CHECK(totals.events == 300 && totals.lost == 0 && totals.damaged == 0);
}

static void threads_may_outlive_the_library_they_traced_in(void **state)
{
	(void)state;
	if (!getenv("KYMO_TARGET_TRACED_MODULE"))
		skip();
	assert_int_equal(in_child(load_in_threads), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_library_that_comes_and_goes_is_registered_once),
		cmocka_unit_test(threads_may_outlive_the_library_they_traced_in),
	};
	return cmocka_run_group_tests_name("dlopen", tests, NULL, NULL);
}
