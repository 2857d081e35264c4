/* SPDX-License-Identifier: MIT */
/*
 * calls.c: ways to call a function: deep, mutual, as the last thing, with arguments of all kinds, with values in
 * every register across the call, from memory without a file, and functions so short or so shaped that no jump fits
 * in.
 */
#include "torture.h"

#include <complex.h>
#include <stdarg.h>
#include <sys/mman.h>

#ifdef __clang__
#define LAST_CALL __attribute__((musttail)) return
#else
#define LAST_CALL return
#endif

/* ---- depth ---- */

static NOINLINE uint64_t deep(unsigned depth, uint64_t digest)
{
	if (depth == 0)
		return digest;
	uint64_t result = deep(depth - 1, mix(digest, depth));
	KEEP(result);
	return mix(result, depth);
}

static NOINLINE uint64_t fibonacci(unsigned n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static uint64_t recursion(void)
{
	uint64_t digest = deep(20000, 1);
	for (unsigned i = 0; i < torture_scale; i++)
		digest = mix(digest, fibonacci(20));
	return digest;
}

static NOINLINE int is_odd(unsigned n);
static NOINLINE int is_even(unsigned n)
{
	int result = n == 0 ? 1 : is_odd(n - 1);
	KEEP(result);
	return result;
}
static NOINLINE int is_odd(unsigned n)
{
	int result = n == 0 ? 0 : is_even(n - 1);
	KEEP(result);
	return result;
}

static uint64_t mutual(void)
{
	uint64_t digest = 0;
	for (unsigned i = 0; i < 200 * torture_scale; i++)
		digest = mix(digest, (uint64_t)is_even(i % 300));
	return digest;
}

/* ---- tail calls ---- */

static NOINLINE uint64_t state_b(uint64_t digest, unsigned steps);
static NOINLINE uint64_t state_c(uint64_t digest, unsigned steps);
static NOINLINE uint64_t state_a(uint64_t digest, unsigned steps)
{
	if (steps == 0)
		return digest;
	LAST_CALL state_b(mix(digest, 1), steps - 1);
}
static NOINLINE uint64_t state_b(uint64_t digest, unsigned steps)
{
	if (steps == 0)
		return digest;
	if (digest & 1)
		LAST_CALL state_a(mix(digest, 2), steps - 1);
	LAST_CALL state_c(mix(digest, 3), steps - 1);
}
static NOINLINE uint64_t state_c(uint64_t digest, unsigned steps)
{
	if (steps == 0)
		return digest;
	LAST_CALL state_a(mix(digest, 4), steps - 1);
}

static uint64_t tail_calls(void)
{
	uint64_t digest = 5;
	for (unsigned i = 0; i < 20 * torture_scale; i++)
		digest = state_a(digest, 5000);
	return digest;
}

/* ---- arguments and results ---- */

static NOINLINE double sum_of(unsigned count, ...)
{
	va_list list;
	double sum = 0;
	va_start(list, count);
	for (unsigned i = 0; i < count; i++)
		sum = sum * 1.25 + (i & 1 ? va_arg(list, double) : (double)va_arg(list, int));
	va_end(list);
	return sum;
}

static uint64_t bits_of(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static uint64_t varargs(void)
{
	uint64_t digest = 0;
	for (int i = 0; i < 1000; i++)
		digest = mix(digest, bits_of(sum_of(18, i, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6,
						    6.5, 7, 7.5, 8, 8.5 * i, 9, 9.5)));
	char text[200];
	for (int i = 0; i < 200; i++) {
		snprintf(text, sizeof(text), "%d %f %s %Lg %p", i, i * 0.5, "text", 1.5L * i, NULL);
		for (const char *c = text; *c; c++)
			digest = mix(digest, (uint64_t)*c);
	}
	return digest;
}

struct small {
	double a;
	long b;
};
struct pair {
	double a, b;
};
struct large {
	long words[23];
};

static NOINLINE struct small turn(struct small s)
{
	return (struct small){(double)s.b * 0.5, (long)(s.a * 2) + 1};
}
static NOINLINE struct pair swap(struct pair p)
{
	return (struct pair){p.b + 1, p.a * 0.75};
}
static NOINLINE struct large rotate(struct large l, int by)
{
	struct large result;
	for (int i = 0; i < 23; i++)
		result.words[i] = l.words[(i + by) % 23] + i;
	return result;
}

static uint64_t structs(void)
{
	struct small s = {1.5, 7};
	struct pair p = {2.5, 3.5};
	struct large l = {{1, 2, 3}};
	for (int i = 0; i < 1000; i++) {
		s = turn(s);
		s.b &= 0xffff;
		p = swap(p);
		l = rotate(l, i % 23);
	}
	uint64_t digest = mix(bits_of(s.a), (uint64_t)s.b);
	digest = mix(mix(digest, bits_of(p.a)), bits_of(p.b));
	for (int i = 0; i < 23; i++)
		digest = mix(digest, (uint64_t)l.words[i]);
	return digest;
}

static NOINLINE double many(long a, double b, long c, double d, long e, double f, long g, double h,
			    long i, double j, long k, double l, long m, double n, long o, double p,
			    double q, double r, double s, struct large t)
{
	return (double)(a + 3 * c + 5 * e + 7 * g + 9 * i + 11 * k + 13 * m + 15 * o) + b + d * 2 +
	       f * 4 + h * 6 + j * 8 + l * 10 + n * 12 + p * 14 + q * 16 + r * 18 + s * 20 +
	       (double)t.words[22];
}

static uint64_t many_arguments(void)
{
	uint64_t digest = 0;
	struct large t = {{0}};
	for (int i = 0; i < 1000; i++) {
		t.words[22] = i;
		digest = mix(digest, bits_of(many(i, 1.5, 2, 2.5, 3, 3.5, i, 4.5, 5, 5.5, 6, 6.5, 7,
						  7.5, 8, 8.5, 9.5, i * 0.5, 11.5, t)));
	}
	return digest;
}

static NOINLINE long double longer(long double x, int n)
{
	return n == 0 ? x : longer(x * 1.0000001L + 1, n - 1) - 0.5L;
}
static NOINLINE long double complex turned(long double complex z)
{
	return z * (0.6L + 0.8L * I) + 1;
}

static uint64_t long_double(void)
{
	long double complex z = 0;
	long double x = 0;
	for (int i = 0; i < 500; i++) {
		x = longer(x, 20) * 0.25L;
		z = turned(z) * 0.99L;
	}
	return mix(mix(bits_of((double)x), bits_of((double)creall(z))), bits_of((double)cimagl(z)));
}

/* ---- values in registers across a call ---- */

typedef double vector __attribute__((vector_size(32)));

#define AVX __attribute__((noinline, target("avx")))

static AVX vector blend(vector a, vector b, double c)
{
	return a * c + b;
}
static AVX uint64_t blend_many(void)
{
	vector a = {1, 2, 3, 4}, b = {0.5, 0.25, 0.125, 0.0625};
	for (int i = 0; i < 2000; i++)
		a = blend(b, blend(a, b, 0.5), 1.5) * 0.75;
	return mix(mix(bits_of(a[0]), bits_of(a[1])), mix(bits_of(a[2]), bits_of(a[3])));
}

/*
 * A function that changes nothing, and one that calls it with a pattern of its own in every register and reports
 * whether all are as before: everything that a compiler that knows the callee may rely on.
 */
__asm__(".text\n"
	".p2align 4\n"
	".type changes_nothing, @function\n"
	"changes_nothing: .cfi_startproc\n"
	"	movq %rax, %rax\n"
	"	nopl (%rax)\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size changes_nothing, .-changes_nothing\n"
	".p2align 4\n"
	".type keeps_registers, @function\n"
	"keeps_registers: .cfi_startproc\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	.cfi_adjust_cfa_offset 48\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	mov $101, %eax; mov $102, %ebx; mov $103, %ecx; mov $104, %edx; mov $105, %esi\n"
	"	mov $106, %edi; mov $107, %ebp; mov $108, %r8d; mov $109, %r9d; mov $110, %r10d\n"
	"	mov $111, %r11d; mov $112, %r12d; mov $113, %r13d; mov $114, %r14d; mov $115, "
	"%r15d\n"
	"	movq %rax, %xmm0; movq %rbx, %xmm1; movq %rcx, %xmm2; movq %rdx, %xmm3\n"
	"	movq %rsi, %xmm4; movq %rdi, %xmm5; movq %rbp, %xmm6; movq %r8, %xmm7\n"
	"	movq %r9, %xmm8; movq %r10, %xmm9; movq %r11, %xmm10; movq %r12, %xmm11\n"
	"	movq %r13, %xmm12; movq %r14, %xmm13; movq %r15, %xmm14; movq %rax, %xmm15\n"
	"	call changes_nothing\n"
	"	cmp $101, %rax; jne 1f; cmp $102, %rbx; jne 1f; cmp $103, %rcx; jne 1f\n"
	"	cmp $104, %rdx; jne 1f; cmp $105, %rsi; jne 1f; cmp $106, %rdi; jne 1f\n"
	"	cmp $107, %rbp; jne 1f; cmp $108, %r8; jne 1f; cmp $109, %r9; jne 1f\n"
	"	cmp $110, %r10; jne 1f; cmp $111, %r11; jne 1f; cmp $112, %r12; jne 1f\n"
	"	cmp $113, %r13; jne 1f; cmp $114, %r14; jne 1f; cmp $115, %r15; jne 1f\n"
	"	movq %xmm0, %rax; cmp $101, %rax; jne 1f; movq %xmm1, %rax; cmp $102, %rax; jne "
	"1f\n"
	"	movq %xmm2, %rax; cmp $103, %rax; jne 1f; movq %xmm3, %rax; cmp $104, %rax; jne "
	"1f\n"
	"	movq %xmm4, %rax; cmp $105, %rax; jne 1f; movq %xmm5, %rax; cmp $106, %rax; jne "
	"1f\n"
	"	movq %xmm6, %rax; cmp $107, %rax; jne 1f; movq %xmm7, %rax; cmp $108, %rax; jne "
	"1f\n"
	"	movq %xmm8, %rax; cmp $109, %rax; jne 1f; movq %xmm9, %rax; cmp $110, %rax; jne "
	"1f\n"
	"	movq %xmm10, %rax; cmp $111, %rax; jne 1f; movq %xmm11, %rax; cmp $112, %rax; jne "
	"1f\n"
	"	movq %xmm12, %rax; cmp $113, %rax; jne 1f; movq %xmm13, %rax; cmp $114, %rax; jne "
	"1f\n"
	"	movq %xmm14, %rax; cmp $115, %rax; jne 1f; movq %xmm15, %rax; cmp $101, %rax; jne "
	"1f\n"
	"	mov $1, %eax\n"
	"	jmp 2f\n"
	"1:	xor %eax, %eax\n"
	"2:	add $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	.cfi_adjust_cfa_offset -48\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size keeps_registers, .-keeps_registers\n");
int keeps_registers(void);

/* Known to the compiler to change few registers: its callers keep values in the others (-fipa-ra). */
static NOINLINE long frugal(long a)
{
	return a * 3 + 1;
}
static NOINLINE uint64_t crowded(long a, long b, long c, long d, long e, long f)
{
	long g = a ^ b, h = c ^ d, i = e ^ f, j = a + f;
	for (int n = 0; n < 50; n++) {
		g += frugal(a);
		h ^= frugal(b + g);
		i -= frugal(c ^ h);
		j += frugal(d + i) ^ e ^ f;
	}
	return mix(mix((uint64_t)g, (uint64_t)h), mix((uint64_t)i, (uint64_t)j));
}

static uint64_t registers(void)
{
	uint64_t digest = 0;
	for (int i = 0; i < 500; i++) {
		must(keeps_registers(), "a register has changed across a call");
		digest = mix(digest, crowded(i, 2, 3, i * 4, 5, 6));
	}
	return __builtin_cpu_supports("avx") ? mix(digest, blend_many()) : digest;
}

/* ---- functions where no jump fits, or with a branch to the first instruction ---- */

__asm__(".text\n"
	".type returns, @function\n"
	"returns: ret\n"
	".size returns, .-returns\n"
	".type zero, @function\n"
	"zero: xor %eax, %eax\n"
	"	ret\n"
	".size zero, .-zero\n"
	".type loops_to_start, @function\n"
	"loops_to_start: dec %edi\n"
	"	jnz loops_to_start\n"
	"	lea 5(%rdi), %eax\n"
	"	ret\n"
	".size loops_to_start, .-loops_to_start\n"
	".type loops_inside, @function\n"
	"loops_inside: xor %eax, %eax\n"
	"1:	add $2, %eax\n"
	"	dec %edi\n"
	"	jnz 1b\n"
	"	ret\n"
	".size loops_inside, .-loops_inside\n"
	".type branches_at_once, @function\n"
	"branches_at_once: test %edi, %edi\n"
	"	je 1f\n"
	"	mov %edi, %eax\n"
	"	ret\n"
	"1:	mov $77, %eax\n"
	"	ret\n"
	".size branches_at_once, .-branches_at_once\n"
	".type calls_at_once, @function\n"
	"calls_at_once: call zero\n"
	"	lea 3(%rdi), %eax\n"
	"	ret\n"
	".size calls_at_once, .-calls_at_once\n"
	".type reads_near, @function\n"
	"reads_near: mov 1f(%rip), %eax\n"
	"	add %edi, %eax\n"
	"	ret\n"
	"1:	.long 4711\n"
	".size reads_near, .-reads_near\n");
void returns(void);
int zero(void), loops_to_start(int n), loops_inside(int n), branches_at_once(int n);
int calls_at_once(int n), reads_near(int n);

static uint64_t odd_shapes(void)
{
	uint64_t digest = 0;
	for (int i = 0; i < 300; i++) {
		returns();
		digest = mix(digest, (uint64_t)zero());
		digest = mix(digest, (uint64_t)loops_to_start(i + 1));
		digest = mix(digest, (uint64_t)loops_inside(i + 1));
		digest = mix(digest, (uint64_t)branches_at_once(i % 2));
		digest = mix(digest, (uint64_t)calls_at_once(i));
		digest = mix(digest, (uint64_t)reads_near(i));
	}
	return digest;
}

/* ---- callers outside files ---- */

static NOINLINE uint64_t called_from_nowhere(uint64_t value)
{
	return mix(value, 3);
}

static uint64_t generated(void)
{
	/* sub $8,%rsp; call *%rsi; inc %rax; add $8,%rsp; ret */
	static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd6, 0x48,
					     0xff, 0xc0, 0x48, 0x83, 0xc4, 0x08, 0xc3};
	void *const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(page != MAP_FAILED, "memory for code");
	memcpy(page, code, sizeof(code));
	uint64_t (*call)(uint64_t, uint64_t(*)(uint64_t));
	memcpy(&call, &page, sizeof(call));
	uint64_t digest = 0;
	for (int i = 0; i < 1000; i++)
		digest = call(digest, called_from_nowhere);
	munmap(page, 4096);
	return digest;
}

static int by_digit(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x % 1000 != y % 1000 ? (x % 1000 > y % 1000) - (x % 1000 < y % 1000)
				    : (x > y) - (x < y);
}

/* From a library back into the program. */
static uint64_t callbacks(void)
{
	uint32_t numbers[2000];
	uint64_t digest = 0;
	for (uint32_t i = 0; i < 2000; i++)
		numbers[i] = i * 2654435761u;
	qsort(numbers, 2000, sizeof(numbers[0]), by_digit);
	for (uint32_t i = 0; i < 2000; i++)
		digest = mix(digest, numbers[i]);
	return digest;
}

/* ---- exact counts ---- */

uint64_t counted_leaf(uint64_t value);
uint64_t counted_branch(uint64_t value);
NOINLINE uint64_t counted_leaf(uint64_t value)
{
	KEEP(value);
	return value + 1;
}
NOINLINE uint64_t counted_branch(uint64_t value)
{
	for (int i = 0; i < 10; i++)
		value = counted_leaf(value);
	KEEP(value);
	return value;
}

static uint64_t counted(void)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < 1000; i++)
		value = counted_branch(value);
	return value;
}

int main(int argc, char **argv)
{
	static const struct torture cases[] = {
		{"recursion", recursion},
		{"mutual", mutual},
		{"tail_calls", tail_calls},
		{"varargs", varargs},
		{"structs", structs},
		{"many_arguments", many_arguments},
		{"long_double", long_double},
		{"registers", registers},
		{"odd_shapes", odd_shapes},
		{"generated", generated},
		{"callbacks", callbacks},
		{"counted", counted},
		{NULL, NULL},
	};
	return argc ? torture_main(cases, argv) : 2;
}
