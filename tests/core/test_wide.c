/* SPDX-License-Identifier: MIT */
/* test_wide.c: an event changes no register of AVX-512, in a function that alone is compiled for it. */
#include <kymo/kymo.h>

#include <immintrin.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LANES 16
#define EVENTS 20000

/* Values that are kept over an event are in registers that it does not say it changes: zmm16 and up, and masks. */
__attribute__((noinline, target("avx512f"))) static void add_smaller(const float *in, float *out)
{
	const __m512 a = _mm512_loadu_ps(in), b = _mm512_loadu_ps(in + LANES);
	const __m512 c = _mm512_loadu_ps(in + 2 * LANES), d = _mm512_loadu_ps(in + 3 * LANES);
	const __mmask16 first = _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
	const __mmask16 second = _mm512_cmp_ps_mask(c, d, _CMP_LT_OQ);
	KYMO_INSTANT("wide", "event", "number", 3);
	_mm512_storeu_ps(out, _mm512_mask_add_ps(a, first, a, b));
	_mm512_storeu_ps(out + LANES, _mm512_mask_add_ps(c, second, c, d));
}

static void wide_registers_are_kept(void **state)
{
	float in[4 * LANES], out[2 * LANES], want[2 * LANES];
	(void)state;
	for (int i = 0; i < 4 * LANES; i++)
		in[i] = (float)(i * 37 % 101);
	for (int i = 0; i < 2 * LANES; i++) {
		const float *const at = in + i + i / LANES * LANES;
		want[i] = at[0] < at[LANES] ? at[0] + at[LANES] : at[0];
	}
	for (int i = 0; i < EVENTS; i++) {
		add_smaller(in, out);
		assert_memory_equal(out, want, sizeof(out));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(wide_registers_are_kept)};
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx512f")) {
		puts("skipped: this CPU has no AVX-512");
		return 77;
	}
	if (!getenv("KYMO_CATEGORIES")) {
		setenv("KYMO_CATEGORIES", "wide", 1);
		execl("/proc/self/exe", "test_wide", (char *)NULL);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
