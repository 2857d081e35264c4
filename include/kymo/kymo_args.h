/* SPDX-License-Identifier: MIT */
/*
 * kymo_args.h: how the macros of kymo.h take their arguments apart: the pairs of keys and values, each
 * value's type and word, and the errors that a reader of a compiler's messages understands. Private;
 * kymo_impl.h includes it first.
 *
 * Each mistake is one static assertion whose text begins with "kymo:". What the assertion rejects is then
 * replaced by something harmless, so that the compiler does not report it a second time.
 */
/* kymo.h includes this file where it needs it. */
#include "kymo.h"
#ifndef KYMO_ARGS_H
#define KYMO_ARGS_H

#pragma GCC system_header

#define KYMO_I_INLINE static inline __attribute__((__always_inline__, __unused__))

#ifdef __cplusplus
#define KYMO_I_NULL nullptr
#else
#define KYMO_I_NULL NULL
#endif

/*
 * True for a string literal and for a constant that is one. In a constant expression the compiler decides
 * at once: no optimisation changes the answer later.
 */
#define KYMO_I_IS_LITERAL(text) __builtin_constant_p(text)
#define KYMO_I_LITERAL(text) (__builtin_constant_p(text) ? (text) : "")

/* A value's word, by its type. */
KYMO_I_INLINE uint64_t kymo_i_word_int(int64_t ky_v)
{
	return (uint64_t)ky_v;
}
KYMO_I_INLINE uint64_t kymo_i_word_uint(uint64_t ky_v)
{
	return ky_v;
}
KYMO_I_INLINE uint64_t kymo_i_word_double(double ky_v)
{
	uint64_t ky_word;
	__builtin_memcpy(&ky_word, &ky_v, sizeof(ky_word));
	return ky_word;
}
KYMO_I_INLINE uint64_t kymo_i_word_pointer(const volatile void *ky_v)
{
	return (uint64_t)(uintptr_t)ky_v;
}

#ifndef __cplusplus

/*
 * C chooses by _Generic, which does not evaluate the value. No type of _Generic matches a bit-field of
 * gcc, so what is left over is a pointer only if the compiler classifies it as one (5). The classes that
 * can be recorded: integer 1, char 2, enum 3, bool 4, pointer 5, real 8, function 10.
 */
#define KYMO_I_IS_VALUE(v) ((0x53e >> __builtin_classify_type(v) & 1) != 0)
#define KYMO_I_IS_NUMBER(v) ((0x11e >> __builtin_classify_type(v) & 1) != 0)
/* The value, or 0 in place of what is no number; only its type matters. */
#define KYMO_I_NUMBER(v) __builtin_choose_expr(KYMO_I_IS_NUMBER(v), (v), 0)
#define KYMO_I_TYPE(v)                                                                             \
	((uint64_t)_Generic((v),                                                                   \
		_Bool: KYMO_TYPE_BOOL,                                                             \
		char: KYMO_TYPE_INT,                                                               \
		signed char: KYMO_TYPE_INT,                                                        \
		short: KYMO_TYPE_INT,                                                              \
		int: KYMO_TYPE_INT,                                                                \
		long: KYMO_TYPE_INT,                                                               \
		long long: KYMO_TYPE_INT,                                                          \
		unsigned char: KYMO_TYPE_UINT,                                                     \
		unsigned short: KYMO_TYPE_UINT,                                                    \
		unsigned int: KYMO_TYPE_UINT,                                                      \
		unsigned long: KYMO_TYPE_UINT,                                                     \
		unsigned long long: KYMO_TYPE_UINT,                                                \
		float: KYMO_TYPE_DOUBLE,                                                           \
		double: KYMO_TYPE_DOUBLE,                                                          \
		long double: KYMO_TYPE_DOUBLE,                                                     \
		char *: KYMO_TYPE_STRING,                                                          \
		const char *: KYMO_TYPE_STRING,                                                    \
		default: KYMO_I_IS_NUMBER(v)                                                       \
			? ((__typeof__(KYMO_I_NUMBER(v) + 0))-1 > 0 ? KYMO_TYPE_UINT               \
								    : KYMO_TYPE_INT)               \
			: KYMO_TYPE_POINTER))
#define KYMO_I_WORD(v)                                                                             \
	_Generic((v), _Bool                                                                        \
		 : kymo_i_word_uint, char                                                          \
		 : kymo_i_word_int, signed char                                                    \
		 : kymo_i_word_int, short                                                          \
		 : kymo_i_word_int, int                                                            \
		 : kymo_i_word_int, long                                                           \
		 : kymo_i_word_int, long long                                                      \
		 : kymo_i_word_int, unsigned char                                                  \
		 : kymo_i_word_uint, unsigned short                                                \
		 : kymo_i_word_uint, unsigned int                                                  \
		 : kymo_i_word_uint, unsigned long                                                 \
		 : kymo_i_word_uint, unsigned long long                                            \
		 : kymo_i_word_uint, float                                                         \
		 : kymo_i_word_double, double                                                      \
		 : kymo_i_word_double, long double                                                 \
		 : kymo_i_word_double, default                                                     \
		 : __builtin_choose_expr(KYMO_I_IS_NUMBER(v), kymo_i_word_int,                     \
					 kymo_i_word_pointer))(                                    \
		__builtin_choose_expr(KYMO_I_IS_VALUE(v), (v), (void *)0))
#define KYMO_I_NAME(name) ((const char *)(name))

#else

/* C++ chooses by overloading: kymo_i_hold(v) holds the type and word of v, and what the word points to. */
extern "C++" {

/* A value of one word. */
template <unsigned KY_Type> struct kymo_i_plain {
	enum { ky_type = KY_Type };
	uint64_t ky_bits;
	uint64_t ky_word() const
	{
		return ky_bits;
	}
};
/* Characters without a final NUL: a copy, one longer than what is kept, to show that it was cut. */
struct kymo_i_chars {
	enum { ky_type = KYMO_TYPE_STRING };
	char ky_text[KYMO_STRING_MAX + 2];
	uint64_t ky_word() const
	{
		return (uint64_t)(uintptr_t)ky_text;
	}
};
KYMO_I_INLINE kymo_i_chars kymo_i_copy(const char *ky_data, size_t ky_bytes)
{
	kymo_i_chars ky_copy;
	const size_t ky_kept = ky_bytes <= KYMO_STRING_MAX ? ky_bytes : KYMO_STRING_MAX + 1;
	if (ky_kept)
		__builtin_memcpy(ky_copy.ky_text, ky_data, ky_kept);
	ky_copy.ky_text[ky_kept] = '\0';
	return ky_copy;
}

#define KYMO_I_HOLD(T, type, how)                                                                  \
	KYMO_I_INLINE kymo_i_plain<type> kymo_i_hold(T ky_v)                                       \
	{                                                                                          \
		return {how(ky_v)};                                                                \
	}
KYMO_I_HOLD(bool, KYMO_TYPE_BOOL, kymo_i_word_uint)
KYMO_I_HOLD(char, KYMO_TYPE_INT, kymo_i_word_int)
KYMO_I_HOLD(signed char, KYMO_TYPE_INT, kymo_i_word_int)
KYMO_I_HOLD(short, KYMO_TYPE_INT, kymo_i_word_int)
KYMO_I_HOLD(int, KYMO_TYPE_INT, kymo_i_word_int)
KYMO_I_HOLD(long, KYMO_TYPE_INT, kymo_i_word_int)
KYMO_I_HOLD(long long, KYMO_TYPE_INT, kymo_i_word_int)
KYMO_I_HOLD(unsigned char, KYMO_TYPE_UINT, kymo_i_word_uint)
KYMO_I_HOLD(unsigned short, KYMO_TYPE_UINT, kymo_i_word_uint)
KYMO_I_HOLD(unsigned int, KYMO_TYPE_UINT, kymo_i_word_uint)
KYMO_I_HOLD(unsigned long, KYMO_TYPE_UINT, kymo_i_word_uint)
KYMO_I_HOLD(unsigned long long, KYMO_TYPE_UINT, kymo_i_word_uint)
KYMO_I_HOLD(float, KYMO_TYPE_DOUBLE, kymo_i_word_double)
KYMO_I_HOLD(double, KYMO_TYPE_DOUBLE, kymo_i_word_double)
KYMO_I_HOLD(char *, KYMO_TYPE_STRING, kymo_i_word_pointer)
KYMO_I_HOLD(const char *, KYMO_TYPE_STRING, kymo_i_word_pointer)
#undef KYMO_I_HOLD
KYMO_I_INLINE kymo_i_plain<KYMO_TYPE_DOUBLE> kymo_i_hold(long double ky_v)
{
	return {kymo_i_word_double((double)ky_v)};
}
KYMO_I_INLINE kymo_i_plain<KYMO_TYPE_POINTER> kymo_i_hold(decltype(nullptr))
{
	return {0};
}
template <typename KY_T> KYMO_I_INLINE kymo_i_plain<KYMO_TYPE_POINTER> kymo_i_hold(KY_T *ky_v)
{
	return {(uint64_t)(uintptr_t)ky_v};
}

/* Overloads that differ only in rank: the compiler takes the highest that compiles. */
template <unsigned KY_N> struct kymo_i_rank : kymo_i_rank<KY_N - 1> {
};
template <> struct kymo_i_rank<0> {
};

template <typename KY_T, bool> struct kymo_i_integer_if {
};
template <typename KY_T> struct kymo_i_integer_if<KY_T, true> {
	typedef __underlying_type(KY_T) ky_type;
};
/* The integer type of an enum; undefined for other types. */
template <typename KY_T> struct kymo_i_integer : kymo_i_integer_if<KY_T, __is_enum(KY_T)> {
};

/* The class itself; undefined for other types. */
template <typename KY_T, bool> struct kymo_i_class_if {
};
template <typename KY_T> struct kymo_i_class_if<KY_T, true> {
	typedef KY_T ky_type;
};
template <typename KY_T> struct kymo_i_class : kymo_i_class_if<KY_T, __is_class(KY_T)> {
};

/* In this order: enums, strings, and objects that convert to a number or a pointer. */
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_hold_object(const KY_T &ky_v, kymo_i_rank<4>)
	-> decltype(kymo_i_hold((typename kymo_i_integer<KY_T>::ky_type)ky_v))
{
	return kymo_i_hold((typename kymo_i_integer<KY_T>::ky_type)ky_v);
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_hold_object(const KY_T &ky_v, kymo_i_rank<3>)
	-> decltype(kymo_i_hold(ky_v.c_str()))
{
	return kymo_i_hold(ky_v.c_str());
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_hold_object(const KY_T &ky_v, kymo_i_rank<2>)
	-> decltype(kymo_i_copy(ky_v.data(), ky_v.size()))
{
	return kymo_i_copy(ky_v.data(), ky_v.size());
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_hold_object(const KY_T &ky_v, kymo_i_rank<1>)
	-> decltype(kymo_i_hold(+(const typename kymo_i_class<KY_T>::ky_type &)ky_v))
{
	return kymo_i_hold(+ky_v);
}
template <typename KY_T>
KYMO_I_INLINE kymo_i_plain<KYMO_TYPE_NONE> kymo_i_hold_object(const KY_T &, kymo_i_rank<0>)
{
	static_assert(
		sizeof(KY_T) == 0,
		"kymo: a value of this type cannot be recorded: give a number, a bool, an enum, a "
		"pointer or a string");
	return {0};
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_hold(const KY_T &ky_v)
	-> decltype(kymo_i_hold_object(ky_v, kymo_i_rank<4>()))
{
	return kymo_i_hold_object(ky_v, kymo_i_rank<4>());
}

/*
 * The type of a value, in a constant expression. The value is in a branch that is never taken, and not in
 * a sizeof or decltype, in which C++11 allows no lambda.
 */
template <typename KY_Held> KYMO_I_INLINE KY_Held *kymo_i_no_address(const KY_Held &)
{
	return nullptr;
}
template <typename KY_Held> constexpr uint64_t kymo_i_type(KY_Held *)
{
	return KY_Held::ky_type;
}
#define KYMO_I_TYPE(v) kymo_i_type(false ? kymo_i_no_address(kymo_i_hold(v)) : nullptr)

/* The types of all values, four bits each, the first lowest. */
template <typename... KY_Held> struct kymo_i_types {
	static constexpr uint64_t ky_all()
	{
		return 0;
	}
};
template <typename KY_First, typename... KY_Held> struct kymo_i_types<KY_First, KY_Held...> {
	static constexpr uint64_t ky_all()
	{
		return KY_First::ky_type | kymo_i_types<KY_Held...>::ky_all() << 4;
	}
};

/* A name that is no literal. */
KYMO_I_INLINE const char *kymo_i_name(const char *ky_name)
{
	return ky_name;
}
KYMO_I_INLINE const char *kymo_i_name(const unsigned char *ky_name)
{
	return reinterpret_cast<const char *>(ky_name);
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_name(const KY_T &ky_name) -> decltype(ky_name.c_str())
{
	return ky_name.c_str();
}
#define KYMO_I_NAME(name) kymo_i_name(name)

/* Use values without evaluating them: never called. */
template <typename... KY_T> inline bool kymo_i_ignore(const KY_T &...)
{
	return false;
}

} /* extern "C++" */

#endif

/*
 * The number of pairs after the first argument: 0 to 12; ODD when a key has no value; MANY when there are
 * more than an event can have.
 */
#define KYMO_I_PAIRS(...)                                                                          \
	KYMO_I_64TH(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, \
		    MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY,  \
		    MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY,  \
		    MANY, 12, ODD, 11, ODD, 10, ODD, 9, ODD, 8, ODD, 7, ODD, 6, ODD, 5, ODD, 4,    \
		    ODD, 3, ODD, 2, ODD, 1, ODD, 0, )
#define KYMO_I_64TH(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17,    \
		    a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32,     \
		    a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47,     \
		    a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, a62,     \
		    a63, n, ...)                                                                   \
	n
#define KYMO_I_JOIN(a, b) KYMO_I_JOIN_(a, b)
#define KYMO_I_JOIN_(a, b) a##b
/* 1 for one argument, 2 for more. */
#define KYMO_I_MORE(...)                                                                           \
	KYMO_I_64TH(__VA_ARGS__, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, \
		    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,  \
		    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, )
/* The number of arguments, 1 to 17, or MANY. */
#define KYMO_I_COUNT(...)                                                                          \
	KYMO_I_64TH(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, \
		    MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY,  \
		    MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY,  \
		    MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, 17, 16, 15, 14, 13, 12,  \
		    11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, )

/*
 * KYMO_I_EACH(x, k1, v1, k2, v2, ...) names the macro that takes a macro M and these arguments, and is
 * M(0, k1, v1) M(1, k2, v2) ... x is any argument that came before the pairs, so that the list is never
 * empty. Without pairs that an event can have it is M() once, with a number that says why.
 */
#define KYMO_I_EACH(...) KYMO_I_JOIN(KYMO_I_EACH_, KYMO_I_PAIRS(__VA_ARGS__))
#define KYMO_I_WALK(M, ...) KYMO_I_EACH(__VA_ARGS__)(M, __VA_ARGS__)
#define KYMO_I_NO_VALUE 0x40
#define KYMO_I_TOO_MANY 0x80
#define KYMO_I_EACH_ODD(M, ...) M(KYMO_I_NO_VALUE, "", 0)
#define KYMO_I_EACH_MANY(M, ...) M(KYMO_I_TOO_MANY, "", 0)
#define KYMO_I_EACH_0(M, x)
#define KYMO_I_EACH_1(M, x, k0, v0) M(0, k0, v0)
#define KYMO_I_EACH_2(M, x, k0, v0, k1, v1) M(0, k0, v0) M(1, k1, v1)
#define KYMO_I_EACH_3(M, x, k0, v0, k1, v1, k2, v2) M(0, k0, v0) M(1, k1, v1) M(2, k2, v2)
#define KYMO_I_EACH_4(M, x, k0, v0, k1, v1, k2, v2, k3, v3)                                        \
	M(0, k0, v0) M(1, k1, v1) M(2, k2, v2) M(3, k3, v3)
#define KYMO_I_EACH_5(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4)                                \
	M(0, k0, v0) M(1, k1, v1) M(2, k2, v2) M(3, k3, v3) M(4, k4, v4)
#define KYMO_I_EACH_6(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4, k5, v5)                        \
	M(0, k0, v0) M(1, k1, v1) M(2, k2, v2) M(3, k3, v3) M(4, k4, v4) M(5, k5, v5)
#define KYMO_I_EACH_7(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4, k5, v5, k6, v6)                \
	M(0, k0, v0) M(1, k1, v1) M(2, k2, v2) M(3, k3, v3) M(4, k4, v4) M(5, k5, v5) M(6, k6, v6)
#define KYMO_I_EACH_8(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4, k5, v5, k6, v6, k7, v7)        \
	M(0, k0, v0)                                                                               \
	M(1, k1, v1) M(2, k2, v2) M(3, k3, v3) M(4, k4, v4) M(5, k5, v5) M(6, k6, v6) M(7, k7, v7)
#define KYMO_I_EACH_9(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4, k5, v5, k6, v6, k7, v7, k8,    \
		      v8)                                                                          \
	M(0, k0, v0)                                                                               \
	M(1, k1, v1)                                                                               \
	M(2, k2, v2) M(3, k3, v3) M(4, k4, v4) M(5, k5, v5) M(6, k6, v6) M(7, k7, v7) M(8, k8, v8)
#define KYMO_I_EACH_10(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4, k5, v5, k6, v6, k7, v7, k8,   \
		       v8, k9, v9)                                                                 \
	M(0, k0, v0)                                                                               \
	M(1, k1, v1)                                                                               \
	M(2, k2, v2)                                                                               \
	M(3, k3, v3) M(4, k4, v4) M(5, k5, v5) M(6, k6, v6) M(7, k7, v7) M(8, k8, v8) M(9, k9, v9)
#define KYMO_I_EACH_11(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4, k5, v5, k6, v6, k7, v7, k8,   \
		       v8, k9, v9, k10, v10)                                                       \
	M(0, k0, v0)                                                                               \
	M(1, k1, v1)                                                                               \
	M(2, k2, v2)                                                                               \
	M(3, k3, v3)                                                                               \
	M(4, k4, v4)                                                                               \
	M(5, k5, v5) M(6, k6, v6) M(7, k7, v7) M(8, k8, v8) M(9, k9, v9) M(10, k10, v10)
#define KYMO_I_EACH_12(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4, k5, v5, k6, v6, k7, v7, k8,   \
		       v8, k9, v9, k10, v10, k11, v11)                                             \
	M(0, k0, v0)                                                                               \
	M(1, k1, v1)                                                                               \
	M(2, k2, v2)                                                                               \
	M(3, k3, v3)                                                                               \
	M(4, k4, v4)                                                                               \
	M(5, k5, v5)                                                                               \
	M(6, k6, v6) M(7, k7, v7) M(8, k8, v8) M(9, k9, v9) M(10, k10, v10) M(11, k11, v11)

/* The same for single values, for the arguments of KYMO_PRINT. */
#define KYMO_I_LIST(...) KYMO_I_JOIN(KYMO_I_LIST_, KYMO_I_COUNT(__VA_ARGS__))
#define KYMO_I_LIST_MANY(M, ...) M(KYMO_I_TOO_MANY, "", 0)
#define KYMO_I_LIST_1(M, x)
#define KYMO_I_LIST_2(M, x, v0) M(0, "", v0)
#define KYMO_I_LIST_3(M, x, v0, v1) M(0, "", v0) M(1, "", v1)
#define KYMO_I_LIST_4(M, x, v0, v1, v2) M(0, "", v0) M(1, "", v1) M(2, "", v2)
#define KYMO_I_LIST_5(M, x, v0, v1, v2, v3) M(0, "", v0) M(1, "", v1) M(2, "", v2) M(3, "", v3)
#define KYMO_I_LIST_6(M, x, v0, v1, v2, v3, v4)                                                    \
	M(0, "", v0) M(1, "", v1) M(2, "", v2) M(3, "", v3) M(4, "", v4)
#define KYMO_I_LIST_7(M, x, v0, v1, v2, v3, v4, v5)                                                \
	M(0, "", v0) M(1, "", v1) M(2, "", v2) M(3, "", v3) M(4, "", v4) M(5, "", v5)
#define KYMO_I_LIST_8(M, x, v0, v1, v2, v3, v4, v5, v6)                                            \
	M(0, "", v0) M(1, "", v1) M(2, "", v2) M(3, "", v3) M(4, "", v4) M(5, "", v5) M(6, "", v6)
#define KYMO_I_LIST_9(M, x, v0, v1, v2, v3, v4, v5, v6, v7)                                        \
	M(0, "", v0)                                                                               \
	M(1, "", v1) M(2, "", v2) M(3, "", v3) M(4, "", v4) M(5, "", v5) M(6, "", v6) M(7, "", v7)
#define KYMO_I_LIST_10(M, ...) KYMO_I_LIST_MANY(M)
#define KYMO_I_LIST_11(M, ...) KYMO_I_LIST_MANY(M)
#define KYMO_I_LIST_12(M, ...) KYMO_I_LIST_MANY(M)
#define KYMO_I_LIST_13(M, ...) KYMO_I_LIST_MANY(M)
#define KYMO_I_LIST_14(M, ...) KYMO_I_LIST_MANY(M)
#define KYMO_I_LIST_15(M, ...) KYMO_I_LIST_MANY(M)
#define KYMO_I_LIST_16(M, ...) KYMO_I_LIST_MANY(M)
#define KYMO_I_LIST_17(M, ...) KYMO_I_LIST_MANY(M)

#define KYMO_I_PAIR_KEY(i, key, value) KYMO_I_LITERAL(key),
#define KYMO_I_PAIR_WORD(i, key, value) KYMO_I_WORD(value),
#define KYMO_I_PAIR_HOLD(i, key, value) , kymo_i_hold(value)
#define KYMO_I_PAIR_TYPE(i, key, value) | KYMO_I_TYPE(value) << (4 * ((i)&15))
#define KYMO_I_PAIR_ONE(i, key, value) +1
#define KYMO_I_PAIR_BITS(i, key, value) | (i)
#define KYMO_I_PAIR_IS_LITERAL(i, key, value) &&KYMO_I_IS_LITERAL(key)
#define KYMO_I_PAIR_IS_VALUE(i, key, value) &&KYMO_I_IS_VALUE(value)

/*
 * What the checks below found. The number of items is at most that of the arguments and of what leads
 * them.
 */
#define KYMO_I_HAS_VALUES(...) ((0 KYMO_I_WALK(KYMO_I_PAIR_BITS, __VA_ARGS__)) != KYMO_I_NO_VALUE)
#define KYMO_I_FITS(lead, EACH, ...)                                                               \
	((0 EACH(KYMO_I_PAIR_BITS, __VA_ARGS__)) != KYMO_I_TOO_MANY &&                             \
	 0 EACH(KYMO_I_PAIR_ONE, __VA_ARGS__) <= KYMO_ARGS_MAX + (lead))
#define KYMO_I_ARE_LITERALS(...) (1 KYMO_I_WALK(KYMO_I_PAIR_IS_LITERAL, __VA_ARGS__))

/*
 * KYMO_I_CHECK_...: reject what no event can have, each mistake with a line that says so. The macros of
 * kymo.h have the check in their own text: compilers show some lines for each macro between the program
 * and a mistake. hint says how to record a name that is no literal. In C++ kymo_i_hold_object() rejects
 * values.
 */
#ifdef KYMO_DISABLE
#define KYMO_I_CHECK_CATEGORY(cat)
#define KYMO_I_CHECK_PAIRS(lead, ...)
#define KYMO_I_CHECK(cat, name, hint, lead, ...)
#define KYMO_I_CHECK_PRINT(cat, ...)
/* An expression: for a loop that runs once clang without optimization emits code. */
#define KYMO_I_OPEN
#define KYMO_I_CLOSE
#else
  /* Between these are a check and a statement. */
#define KYMO_I_OPEN do {
#define KYMO_I_CLOSE                                                                               \
	;                                                                                          \
	}                                                                                          \
	while (0)
#ifdef __cplusplus
#define KYMO_I_CHECK_CATEGORY(cat)                                                                 \
	static_assert(KYMO_I_IS_LITERAL(cat), "kymo: the category must be a string literal");
#define KYMO_I_CHECK_PAIRS(lead, ...)                                                              \
	static_assert(KYMO_I_HAS_VALUES(__VA_ARGS__),                                              \
		      "kymo: a key has no value: give pairs of a key and a value");                \
	static_assert(KYMO_I_FITS(lead, KYMO_I_EACH(__VA_ARGS__), __VA_ARGS__),                    \
		      "kymo: at most 8 key and value pairs");
#define KYMO_I_CHECK(cat, name, hint, lead, ...)                                                   \
	static_assert(KYMO_I_IS_LITERAL(cat), "kymo: the category must be a string literal");      \
	static_assert(KYMO_I_IS_LITERAL(name), "kymo: the name must be a string literal: " hint);  \
	static_assert(KYMO_I_HAS_VALUES(__VA_ARGS__),                                              \
		      "kymo: a key has no value: give pairs of a key and a value");                \
	static_assert(KYMO_I_FITS(lead, KYMO_I_EACH(__VA_ARGS__), __VA_ARGS__),                    \
		      "kymo: at most 8 key and value pairs");                                      \
	static_assert(KYMO_I_ARE_LITERALS(__VA_ARGS__), "kymo: a key must be a string literal");
#define KYMO_I_CHECK_PRINT(cat, ...)                                                               \
	static_assert(KYMO_I_IS_LITERAL(cat), "kymo: the category must be a string literal");      \
	static_assert(KYMO_I_IS_LITERAL(KYMO_I_FIRST(__VA_ARGS__)),                                \
		      "kymo: the format must be a string literal: use %s");                        \
	static_assert(KYMO_I_FITS(0, KYMO_I_LIST(__VA_ARGS__), __VA_ARGS__),                       \
		      "kymo: at most 8 values");
#else
#define KYMO_I_ARE_VALUES(EACH, ...) (1 EACH(KYMO_I_PAIR_IS_VALUE, __VA_ARGS__))
#define KYMO_I_CHECK_CATEGORY(cat)                                                                 \
	_Static_assert(KYMO_I_IS_LITERAL(cat), "kymo: the category must be a string literal");
#define KYMO_I_CHECK_PAIRS(lead, ...)                                                              \
	_Static_assert(KYMO_I_HAS_VALUES(__VA_ARGS__),                                             \
		       "kymo: a key has no value: give pairs of a key and a value");               \
	_Static_assert(KYMO_I_FITS(lead, KYMO_I_EACH(__VA_ARGS__), __VA_ARGS__),                   \
		       "kymo: at most 8 key and value pairs");
#define KYMO_I_CHECK(cat, name, hint, lead, ...)                                                   \
	_Static_assert(KYMO_I_IS_LITERAL(cat), "kymo: the category must be a string literal");     \
	_Static_assert(KYMO_I_IS_LITERAL(name), "kymo: the name must be a string literal: " hint); \
	_Static_assert(KYMO_I_HAS_VALUES(__VA_ARGS__),                                             \
		       "kymo: a key has no value: give pairs of a key and a value");               \
	_Static_assert(KYMO_I_FITS(lead, KYMO_I_EACH(__VA_ARGS__), __VA_ARGS__),                   \
		       "kymo: at most 8 key and value pairs");                                     \
	_Static_assert(KYMO_I_ARE_LITERALS(__VA_ARGS__), "kymo: a key must be a string literal");  \
	_Static_assert(KYMO_I_ARE_VALUES(KYMO_I_EACH(__VA_ARGS__), __VA_ARGS__),                   \
		       "kymo: a value of this type cannot be recorded: give a number, a bool, an " \
		       "enum, a pointer or a C string");
#define KYMO_I_CHECK_PRINT(cat, ...)                                                               \
	_Static_assert(KYMO_I_IS_LITERAL(cat), "kymo: the category must be a string literal");     \
	_Static_assert(KYMO_I_IS_LITERAL(KYMO_I_FIRST(__VA_ARGS__)),                               \
		       "kymo: the format must be a string literal: use %s");                       \
	_Static_assert(KYMO_I_FITS(0, KYMO_I_LIST(__VA_ARGS__), __VA_ARGS__),                      \
		       "kymo: at most 8 values");                                                  \
	_Static_assert(KYMO_I_ARE_VALUES(KYMO_I_LIST(__VA_ARGS__), __VA_ARGS__),                   \
		       "kymo: a value of this type cannot be recorded: give a number, a bool, an " \
		       "enum, a pointer or a C string");
#endif
#endif

#endif /* KYMO_ARGS_H */
