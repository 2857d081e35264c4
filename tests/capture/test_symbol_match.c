/* SPDX-License-Identifier: MIT */
/* test_symbol_match.c: which functions a name means, as linkers and compilers write them. */
#include "capture/symbol_list.h"
#include "process/symbol_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static bool means(const char *wanted, const char *linked)
{
	char *readable = ky_demangle(linked);
	const bool result = ky_symbol_match(wanted, linked, readable);
	free(readable);
	return result;
}

static void names_of_c(void **state)
{
	(void)state;
	assert_true(means("recv_all", "recv_all"));
	assert_true(means("recv_all", "recv_all.constprop.0"));
	assert_true(means("recv_all", "recv_all.isra.0"));
	assert_true(means("recv_all", "recv_all@@V2"));
	assert_false(means("recv_all", "recv_all_now"));
	assert_false(means("recv_all", "recv_all.cold")); /* not where it begins */
	assert_false(means("recv_all", "recv_all.part.0"));
	assert_false(means("recv_all", "recv"));
	assert_false(means("recv", "recv_all"));
}

static void names_of_cpp(void **state)
{
	(void)state;
	assert_true(means("_ZN3net4recvEi", "_ZN3net4recvEi"));
	assert_true(means("net::recv(int)", "_ZN3net4recvEi"));
	assert_true(means("net::recv", "_ZN3net4recvEi"));
	assert_true(means("net::recv", "_ZNK3net4recvEi")); /* const behind the arguments */
	assert_true(means("net::recv", "_ZN3net4recvEi.constprop.0"));
	assert_false(means("net::recv", "_ZN3net4recvEi.cold"));
	assert_false(means("recv", "_ZN3net4recvEi"));
	assert_false(means("net::recv(long)", "_ZN3net4recvEi"));
	assert_true(means("net::operator()", "_ZN3netclEi"));
	assert_true(means("net::send<int>", "_ZN3net4sendIiEEvT_")); /* void net::send<int>(int) */
	assert_true(means("void net::send<int>(int)", "_ZN3net4sendIiEEvT_"));
}

static void names_of_rust(void **state)
{
	(void)state;
	assert_true(means("net::recv", "_RNvCs1234_3net4recv"));
	assert_true(means("net::recv", "_ZN3net4recv17h0123456789abcdefE"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_c),
		cmocka_unit_test(names_of_cpp),
		cmocka_unit_test(names_of_rust),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
