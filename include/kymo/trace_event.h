/* SPDX-License-Identifier: MIT */
/*
 * trace_event.h: Chromium's trace event macros, recorded by kymo. Code written for Chromium, V8, Skia
 * or Node compiles unchanged: C++11 and later, and C11.
 *
 *	TRACE_EVENT1("net", "Socket::Read", "bytes", bytes);
 *	TRACE_EVENT_NESTABLE_ASYNC_BEGIN0("net", "request", TRACE_ID_LOCAL(this));
 *
 * A category is a string or a comma-separated list, and lives as long as the program; so do keys. A
 * trace point keeps the category and the keys that it had first. Names may be anything: one that is a
 * constant is stored once with the trace point, any other is copied into each event (there is no
 * difference between the COPY_ forms and the others). As with kymo.h there is no lock, and no
 * allocation but for what values make of themselves. Nothing is initialised at run time, and nothing
 * is evaluated while the category is off.
 *
 * Values are integers, enums, floating point, bool, pointers and C strings; in C++ also whatever has
 * c_str(), or data() and size(), or becomes an arithmetic type by itself (std::atomic), times (in
 * microseconds), and pointers, raw or smart, to what has AppendAsTraceFormat(std::string *): the
 * text that it makes is recorded, and nothing is freed that the caller still owns. All strings are
 * copied and cut at KYMO_STRING_MAX. There are up to KYMO_ARGS_MAX pairs in an event.
 *
 * Ids are integers or pointers. Pointers and TRACE_ID_LOCAL() mean something in this process alone.
 * TRACE_ID_WITH_SCOPE() mixes a hash of the scope into the id. Times are microseconds of
 * CLOCK_MONOTONIC: numbers, or objects with since_origin().InMicroseconds() or ToInternalValue().
 *
 * Where kymo has no event of that kind: the steps of an ASYNC_STEP_ are instants of the asynchronous
 * span with an argument "step"; marks are instants; a flow flag becomes a flow event named "flow"
 * inside of the span (same category and id: one arrow); contexts are asynchronous spans.
 *
 * Compiled with -DKYMO_DISABLE nothing is left but the store of false through the pointers that
 * TRACE_EVENT_CATEGORY_GROUP_ENABLED and TRACE_EVENT_IS_NEW_TRACE get.
 */
#ifndef KYMO_TRACE_EVENT_H
#define KYMO_TRACE_EVENT_H

#include <kymo/kymo.h>

/* Whom an instant concerns. */
#define TRACE_EVENT_SCOPE_GLOBAL (0u << 3)
#define TRACE_EVENT_SCOPE_PROCESS (1u << 3)
#define TRACE_EVENT_SCOPE_THREAD (2u << 3)
#define TRACE_EVENT_SCOPE_NAME_GLOBAL ('g')
#define TRACE_EVENT_SCOPE_NAME_PROCESS ('p')
#define TRACE_EVENT_SCOPE_NAME_THREAD ('t')

/* Flags; only the flow's and the scope's mean something here. */
#define TRACE_EVENT_FLAG_NONE 0u
#define TRACE_EVENT_FLAG_COPY (1u << 0)
#define TRACE_EVENT_FLAG_HAS_ID (1u << 1)
#define TRACE_EVENT_FLAG_SCOPE_OFFSET (1u << 3)
#define TRACE_EVENT_FLAG_SCOPE_EXTRA (1u << 4)
#define TRACE_EVENT_FLAG_EXPLICIT_TIMESTAMP (1u << 5)
#define TRACE_EVENT_FLAG_ASYNC_TTS (1u << 6)
#define TRACE_EVENT_FLAG_BIND_TO_ENCLOSING (1u << 7)
#define TRACE_EVENT_FLAG_FLOW_IN (1u << 8)
#define TRACE_EVENT_FLAG_FLOW_OUT (1u << 9)
#define TRACE_EVENT_FLAG_HAS_CONTEXT_ID (1u << 10)
#define TRACE_EVENT_FLAG_HAS_PROCESS_ID (1u << 11)
#define TRACE_EVENT_FLAG_HAS_LOCAL_ID (1u << 12)
#define TRACE_EVENT_FLAG_HAS_GLOBAL_ID (1u << 13)
#define TRACE_EVENT_FLAG_JAVA_STRING_LITERALS (1u << 16)
#define TRACE_EVENT_FLAG_SCOPE_MASK (TRACE_EVENT_FLAG_SCOPE_OFFSET | TRACE_EVENT_FLAG_SCOPE_EXTRA)

/* A category that is off unless it is asked for by this whole name. */
#define TRACE_DISABLED_BY_DEFAULT(name) "disabled-by-default-" name

/*
 * ------------------------------------------------------------------------------------------------
 * Private from here on, as far as the next line of this kind: what the macros expand to.
 *
 * A trace point looks like one of kymo.h's, with two differences. Whether it has a name of its own
 * (KYMO_SITE_NAME) depends on whether the name is a constant: a constant of the trace point says so,
 * and folds away. And a category or key that is no constant is filled in before the trace point
 * registers, so that no static initialiser ever runs.
 * ------------------------------------------------------------------------------------------------
 */

/* The integer types that both languages have. */
#define KYMO_I_TE_SIGNED(X) X(char) X(signed char) X(short) X(int) X(long) X(long long)
#define KYMO_I_TE_UNSIGNED(X)                                                                      \
	X(unsigned char) X(unsigned short) X(unsigned int) X(unsigned long) X(unsigned long long)
#define KYMO_I_TE_INTEGERS(X) KYMO_I_TE_SIGNED(X) KYMO_I_TE_UNSIGNED(X)

#ifndef KYMO_DISABLE

#ifdef __cplusplus

/* A value that is one word. */
template <unsigned Type> struct kymo_i_te_plain {
	enum { type = Type };
	uint64_t bits;
	uint64_t word() const
	{
		return bits;
	}
};
/* Characters without an end: a copy, one longer than what is kept, to tell that it was cut. */
struct kymo_i_te_chars {
	enum { type = KYMO_TYPE_STRING };
	char text[KYMO_STRING_MAX + 2];
	uint64_t word() const
	{
		return (uint64_t)(uintptr_t)text;
	}
};
/* A text that was made for this event. */
template <typename Text> struct kymo_i_te_made {
	enum { type = KYMO_TYPE_STRING };
	bool some;
	Text text;
	uint64_t word() const
	{
		return some ? (uint64_t)(uintptr_t)text.c_str() : 0;
	}
};
/* An id, with KYMO_SITE_LOCAL_ID or without. */
template <unsigned Flags> struct kymo_i_te_id {
	enum { type = KYMO_TYPE_UINT, flags = Flags };
	uint64_t bits;
	uint64_t word() const
	{
		return bits;
	}
};

/* kymo_i_te_hold(value): its type and word. What the word points to lives as long as the result. */
#define KYMO_I_TE_HOLD(T)                                                                          \
	KYMO_I_INLINE kymo_i_te_plain<sizeof(kymo_i_type_of((T)0)) - 1> kymo_i_te_hold(T v)        \
	{                                                                                          \
		return {kymo_i_word_of(v)};                                                        \
	}
KYMO_I_TE_INTEGERS(KYMO_I_TE_HOLD)
KYMO_I_TE_HOLD(bool)
KYMO_I_TE_HOLD(float)
KYMO_I_TE_HOLD(double)
KYMO_I_TE_HOLD(long double)
KYMO_I_TE_HOLD(char *)
KYMO_I_TE_HOLD(const char *)
KYMO_I_TE_HOLD(decltype(nullptr))
#undef KYMO_I_TE_HOLD
template <unsigned Flags>
KYMO_I_INLINE kymo_i_te_id<Flags> kymo_i_te_hold(const kymo_i_te_id<Flags> &id)
{
	return id;
}

/* Of overloads that differ in rank alone, the highest that compiles is taken. */
template <unsigned N> struct kymo_i_te_rank : kymo_i_te_rank<N - 1> {
};
template <> struct kymo_i_te_rank<0> {
};

/* The class that AppendAsTraceFormat() appends to, which is std::string, without naming it. */
template <typename Class, typename Result, typename Text>
Text kymo_i_te_text_of(Result (Class::*)(Text *) const);
template <typename T>
auto kymo_i_te_text_by(const T *) -> decltype(kymo_i_te_text_of(&T::AppendAsTraceFormat));

template <typename Text, typename Pointer>
KYMO_I_INLINE kymo_i_te_made<Text> kymo_i_te_make(const Pointer &convertable)
{
	kymo_i_te_made<Text> made = {convertable ? true : false, Text()};
	if (made.some)
		convertable->AppendAsTraceFormat(&made.text);
	return made;
}

template <typename T>
KYMO_I_INLINE auto kymo_i_te_hold_pointer(T *v, kymo_i_te_rank<1>)
	-> kymo_i_te_made<decltype(kymo_i_te_text_by(v))>
{
	return kymo_i_te_make<decltype(kymo_i_te_text_by(v))>(v);
}
template <typename T>
KYMO_I_INLINE kymo_i_te_plain<KYMO_TYPE_POINTER> kymo_i_te_hold_pointer(T *v, kymo_i_te_rank<0>)
{
	return {(uint64_t)(uintptr_t)v};
}
template <typename T>
KYMO_I_INLINE auto kymo_i_te_hold(T *v) -> decltype(kymo_i_te_hold_pointer(v, kymo_i_te_rank<1>()))
{
	return kymo_i_te_hold_pointer(v, kymo_i_te_rank<1>());
}

template <typename T, bool> struct kymo_i_te_integer_if {
};
template <typename T> struct kymo_i_te_integer_if<T, true> {
	typedef __underlying_type(T) type;
};
/* The integer type of an enum; there is none of other types. */
template <typename T> struct kymo_i_te_integer : kymo_i_te_integer_if<T, __is_enum(T)> {
};

KYMO_I_INLINE kymo_i_te_chars kymo_i_te_copy(const char *data, size_t bytes)
{
	kymo_i_te_chars copy;
	const size_t kept = bytes <= KYMO_STRING_MAX ? bytes : KYMO_STRING_MAX + 1;
	if (kept)
		__builtin_memcpy(copy.text, data, kept);
	copy.text[kept] = '\0';
	return copy;
}

/* Of enums the number, then strings, convertables, times, and what becomes a number by itself. */
template <typename T>
KYMO_I_INLINE auto kymo_i_te_hold_object(const T &v, kymo_i_te_rank<7>)
	-> decltype(kymo_i_te_hold((typename kymo_i_te_integer<T>::type)v))
{
	return kymo_i_te_hold((typename kymo_i_te_integer<T>::type)v);
}
template <typename T>
KYMO_I_INLINE auto kymo_i_te_hold_object(const T &v, kymo_i_te_rank<6>)
	-> decltype(kymo_i_te_hold(v.c_str()))
{
	return kymo_i_te_hold(v.c_str());
}
template <typename T>
KYMO_I_INLINE auto kymo_i_te_hold_object(const T &v, kymo_i_te_rank<5>)
	-> decltype(kymo_i_te_copy(v.data(), v.size()))
{
	return kymo_i_te_copy(v.data(), v.size());
}
template <typename T>
KYMO_I_INLINE auto kymo_i_te_hold_object(const T &v, kymo_i_te_rank<4>)
	-> kymo_i_te_made<decltype(kymo_i_te_text_by(&*v))>
{
	return kymo_i_te_make<decltype(kymo_i_te_text_by(&*v))>(v);
}
template <typename T>
KYMO_I_INLINE auto kymo_i_te_hold_object(const T &v, kymo_i_te_rank<3>)
	-> decltype(kymo_i_te_hold(v.since_origin().InMicroseconds()))
{
	return kymo_i_te_hold(v.since_origin().InMicroseconds());
}
template <typename T>
KYMO_I_INLINE auto kymo_i_te_hold_object(const T &v, kymo_i_te_rank<2>)
	-> decltype(kymo_i_te_hold(v.ToInternalValue()))
{
	return kymo_i_te_hold(v.ToInternalValue());
}
template <typename T>
KYMO_I_INLINE auto kymo_i_te_hold_object(const T &v, kymo_i_te_rank<1>)
	-> decltype(kymo_i_te_hold(+v))
{
	return kymo_i_te_hold(+v);
}
template <typename T>
KYMO_I_INLINE kymo_i_te_plain<KYMO_TYPE_NONE> kymo_i_te_hold_object(const T &, kymo_i_te_rank<0>)
{
	static_assert(sizeof(T) == 0, "trace_event.h says which values an event can have");
	return {0};
}
template <typename T>
KYMO_I_INLINE auto kymo_i_te_hold(const T &v)
	-> decltype(kymo_i_te_hold_object(v, kymo_i_te_rank<7>()))
{
	return kymo_i_te_hold_object(v, kymo_i_te_rank<7>());
}

#define KYMO_I_TE_TYPE(v) ((uint64_t) decltype(kymo_i_te_hold(v))::type)
#define KYMO_I_TE_WORD(v) kymo_i_te_hold(v).word()

/* Names, categories and keys. */
constexpr inline const char *kymo_i_te_text(const char *text)
{
	return text;
}
template <typename T> KYMO_I_INLINE auto kymo_i_te_text(const T &text) -> decltype(text.c_str())
{
	return text.c_str();
}
template <typename T>
KYMO_I_INLINE auto kymo_i_te_text(const T &text) -> decltype(kymo_i_te_text(text.value))
{
	return text.value; /* perfetto::StaticString and DynamicString */
}
#define KYMO_I_TE_TEXT(text) kymo_i_te_text(text)

/* Times, in nanoseconds, and thread ids. */
template <typename T>
KYMO_I_INLINE auto kymo_i_te_microseconds(const T &time, kymo_i_te_rank<2>)
	-> decltype((int64_t)time.since_origin().InMicroseconds())
{
	return (int64_t)time.since_origin().InMicroseconds();
}
template <typename T>
KYMO_I_INLINE auto kymo_i_te_microseconds(const T &time, kymo_i_te_rank<1>)
	-> decltype((int64_t)time.ToInternalValue())
{
	return (int64_t)time.ToInternalValue();
}
template <typename T> KYMO_I_INLINE int64_t kymo_i_te_microseconds(T time, kymo_i_te_rank<0>)
{
	return (int64_t)time;
}
template <typename T>
KYMO_I_INLINE auto kymo_i_te_thread(const T &tid, kymo_i_te_rank<1>) -> decltype((int64_t)tid.raw())
{
	return (int64_t)tid.raw();
}
template <typename T> KYMO_I_INLINE int64_t kymo_i_te_thread(T tid, kymo_i_te_rank<0>)
{
	return (int64_t)tid;
}
#define KYMO_I_TE_US(time) kymo_i_te_microseconds(time, kymo_i_te_rank<2>())
#define KYMO_I_TE_TID(tid) ((uint64_t)kymo_i_te_thread(tid, kymo_i_te_rank<1>()))

#else

#define KYMO_I_TE_TYPE(v) KYMO_I_TYPE(v)
#define KYMO_I_TE_WORD(v) KYMO_I_WORD(v)
#define KYMO_I_TE_TEXT(text) (text)
#define KYMO_I_TE_US(time) ((int64_t)(time))
#define KYMO_I_TE_TID(tid) ((uint64_t)(int64_t)(tid))

#endif
#define KYMO_I_TE_NS(time) ((uint64_t)KYMO_I_TE_US(time) * 1000u)

/* The id with a hash of the scope mixed in (FNV-1a), the same in every process. */
KYMO_I_INLINE uint64_t kymo_i_te_mix(const char *scope, uint64_t id)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (; scope && *scope; scope++)
		hash = (hash ^ (unsigned char)*scope) * 0x100000001b3u;
	return hash ^ id;
}

#ifdef __cplusplus

/* kymo_i_te_id_of(id): pointers mean something in this process alone. */
template <typename T> KYMO_I_INLINE kymo_i_te_id<KYMO_SITE_LOCAL_ID> kymo_i_te_id_of(T *v)
{
	return {(uint64_t)(uintptr_t)v};
}
template <typename T> KYMO_I_INLINE kymo_i_te_id<0> kymo_i_te_id_of(const T &v)
{
	return {kymo_i_te_hold(v).word()};
}
template <unsigned Flags>
KYMO_I_INLINE kymo_i_te_id<Flags> kymo_i_te_id_of(const kymo_i_te_id<Flags> &id)
{
	return id;
}
#define KYMO_I_TE_ID_OF(T)                                                                         \
	KYMO_I_INLINE kymo_i_te_id<0> kymo_i_te_id_of(T v)                                         \
	{                                                                                          \
		return {kymo_i_word_of(v)};                                                        \
	}
KYMO_I_TE_INTEGERS(KYMO_I_TE_ID_OF)
#undef KYMO_I_TE_ID_OF
#define KYMO_I_TE_ID_WORD(id) kymo_i_te_id_of(id).word()
#define KYMO_I_TE_ID_FLAGS(id) ((unsigned)decltype(kymo_i_te_id_of(id))::flags)

template <unsigned Flags> KYMO_I_INLINE kymo_i_te_id<Flags> kymo_i_te_id_as(uint64_t word)
{
	return {word};
}
template <typename T>
KYMO_I_INLINE auto kymo_i_te_scope(const char *scope, const T &id) -> decltype(kymo_i_te_id_of(id))
{
	return {kymo_i_te_mix(scope, kymo_i_te_id_of(id).bits)};
}
/* An id of several numbers. */
template <typename T, typename Next, typename... More>
KYMO_I_INLINE auto kymo_i_te_scope(const char *scope, const T &id, const Next &next,
				   const More &...more) -> decltype(kymo_i_te_id_of(id))
{
	const uint64_t rest = kymo_i_te_scope("", next, more...).bits;
	return {kymo_i_te_mix(scope, kymo_i_te_id_of(id).bits * 31 + rest)};
}
#define TRACE_ID_LOCAL(id) kymo_i_te_id_as<KYMO_SITE_LOCAL_ID>(KYMO_I_TE_ID_WORD(id))
#define TRACE_ID_GLOBAL(id) kymo_i_te_id_as<0>(KYMO_I_TE_ID_WORD(id))
#define TRACE_ID_WITH_SCOPE(scope, ...) kymo_i_te_scope(KYMO_I_TE_TEXT(scope), __VA_ARGS__)

#else

struct kymo_i_te_local {
	uint64_t bits;
};
struct kymo_i_te_global {
	uint64_t bits;
};
KYMO_I_INLINE uint64_t kymo_i_te_local_word(struct kymo_i_te_local id)
{
	return id.bits;
}
KYMO_I_INLINE uint64_t kymo_i_te_global_word(struct kymo_i_te_global id)
{
	return id.bits;
}
KYMO_I_INLINE struct kymo_i_te_local kymo_i_te_local_id(const char *scope, uint64_t id)
{
	return (struct kymo_i_te_local){scope ? kymo_i_te_mix(scope, id) : id};
}
KYMO_I_INLINE struct kymo_i_te_global kymo_i_te_global_id(const char *scope, uint64_t id)
{
	return (struct kymo_i_te_global){scope ? kymo_i_te_mix(scope, id) : id};
}
/* clang-format off */
#define KYMO_I_TE_SIGNED_WORD(T) T: kymo_i_word_int,
#define KYMO_I_TE_UNSIGNED_WORD(T) T: kymo_i_word_uint,
#define KYMO_I_TE_INTEGER_FLAGS(T) T: 0u,
#define KYMO_I_TE_INTEGER_MAKE(T) T: kymo_i_te_global_id,
#define KYMO_I_TE_ID_WORD(id)                                                                      \
	_Generic((id),                                                                             \
		KYMO_I_TE_SIGNED(KYMO_I_TE_SIGNED_WORD)                                            \
		KYMO_I_TE_UNSIGNED(KYMO_I_TE_UNSIGNED_WORD)                                        \
		struct kymo_i_te_local: kymo_i_te_local_word,                                      \
		struct kymo_i_te_global: kymo_i_te_global_word,                                    \
		default: kymo_i_word_pointer)(id)
#define KYMO_I_TE_ID_FLAGS(id)                                                                     \
	_Generic((id),                                                                             \
		KYMO_I_TE_INTEGERS(KYMO_I_TE_INTEGER_FLAGS)                                        \
		struct kymo_i_te_global: 0u,                                                       \
		default: KYMO_SITE_LOCAL_ID)
#define TRACE_ID_WITH_SCOPE(scope, id)                                                             \
	_Generic((id),                                                                             \
		KYMO_I_TE_INTEGERS(KYMO_I_TE_INTEGER_MAKE)                                         \
		struct kymo_i_te_global: kymo_i_te_global_id,                                      \
		default: kymo_i_te_local_id)(scope, KYMO_I_TE_ID_WORD(id))
/* clang-format on */
#define TRACE_ID_LOCAL(id) kymo_i_te_local_id(NULL, KYMO_I_TE_ID_WORD(id))
#define TRACE_ID_GLOBAL(id) kymo_i_te_global_id(NULL, KYMO_I_TE_ID_WORD(id))

#endif

/* A constant of a trace point. clang refuses local variables in a C++ enum, C has no constexpr. */
#ifdef __cplusplus
#define KYMO_I_TE_CONSTANT(constant, value) constexpr unsigned constant = (value)
#else
#define KYMO_I_TE_CONSTANT(constant, value) enum { constant = (value) }
#endif

/*
 * Whether a text is a literal, or a constant that is one. In a constant expression the answer is
 * final at once: no optimisation changes it later.
 */
#define KYMO_I_TE_IS_LITERAL(text) __builtin_constant_p(KYMO_I_TE_TEXT(text))
#define KYMO_I_TE_LITERAL(text) (KYMO_I_TE_IS_LITERAL(text) ? KYMO_I_TE_TEXT(text) : NULL)

#define KYMO_I_TE_PAIR_KEY(i, key, value) KYMO_I_TE_LITERAL(key),
#define KYMO_I_TE_PAIR_IS_LITERAL(i, key, value) &&KYMO_I_TE_IS_LITERAL(key)
#define KYMO_I_TE_PAIR_LEARN(i, key, value) kymo_i_te_learn(&kymo_i_te_k[i], KYMO_I_TE_TEXT(key));
#define KYMO_I_TE_PAIR_TYPE(i, key, value) | KYMO_I_TE_TYPE(value) << (4 * (i))
#define KYMO_I_TE_PAIR_WORD(i, key, value) KYMO_I_TE_WORD(value),
#define KYMO_I_TE_COUNT(...) (0 KYMO_I_EACH(KYMO_I_PAIR_ONE, __VA_ARGS__))

/* How many items come before the arguments; the types of all. */
#define KYMO_I_TE_BIT(flags, flag) (((unsigned)(flags) & (flag)) ? 1u : 0u)
#define KYMO_I_TE_FIRST(flags)                                                                     \
	(KYMO_I_TE_BIT(flags, KYMO_SITE_TIME) + KYMO_I_TE_BIT(flags, KYMO_SITE_TID))
#define KYMO_I_TE_NAMED(flags) (KYMO_I_TE_FIRST(flags) + KYMO_I_TE_BIT(flags, KYMO_SITE_NAME))
#define KYMO_I_TE_LEAD(flags) (KYMO_I_TE_NAMED(flags) + KYMO_I_TE_BIT(flags, KYMO_SITE_ID))
#define KYMO_I_TE_ITEM(flags, flag, type, before)                                                  \
	((uint64_t)KYMO_I_TE_BIT(flags, flag) * (type) << (4 * (before)))
#define KYMO_I_TE_TYPES(flags, ...)                                                                \
	(KYMO_I_TE_ITEM(flags, KYMO_SITE_TIME, KYMO_TYPE_UINT, 0) |                                \
	 KYMO_I_TE_ITEM(flags, KYMO_SITE_TID, KYMO_TYPE_INT,                                       \
			KYMO_I_TE_BIT(flags, KYMO_SITE_TIME)) |                                    \
	 KYMO_I_TE_ITEM(flags, KYMO_SITE_NAME, KYMO_TYPE_STRING, KYMO_I_TE_FIRST(flags)) |         \
	 KYMO_I_TE_ITEM(flags, KYMO_SITE_ID, KYMO_TYPE_UINT, KYMO_I_TE_NAMED(flags)) |             \
	 ((uint64_t)0 KYMO_I_EACH(KYMO_I_TE_PAIR_TYPE, __VA_ARGS__))                               \
		 << (4 * KYMO_I_TE_LEAD(flags)))

/* Defines the trace point: flags are the items that it has, more is what else is known of it. */
#define KYMO_I_TE_SITE(at, kind, flags, more, cat, name, ...)                                      \
	KYMO_I_TE_CONSTANT(KYMO_I_JOIN(at, _flags),                                                \
			   (flags) | (KYMO_I_TE_IS_LITERAL(name) ? 0u : KYMO_SITE_NAME));          \
	KYMO_I_TE_CONSTANT(                                                                        \
		KYMO_I_JOIN(at, _learns),                                                          \
		(KYMO_I_TE_IS_LITERAL(cat) KYMO_I_EACH(KYMO_I_TE_PAIR_IS_LITERAL, __VA_ARGS__))    \
			? 0u                                                                       \
			: 1u);                                                                     \
	static const char *KYMO_I_JOIN(at, _keys)[] = {                                            \
		"", "", "", "", KYMO_I_EACH(KYMO_I_TE_PAIR_KEY, __VA_ARGS__) NULL};                \
	static struct kymo_site_info KYMO_I_JOIN(at, _info) = {                                    \
		KYMO_I_ABI,                                                                        \
		(kind),                                                                            \
		(uint8_t)(KYMO_I_JOIN(at, _flags) | (more)),                                       \
		(uint8_t)(KYMO_I_TE_COUNT(__VA_ARGS__) + KYMO_I_TE_LEAD(KYMO_I_JOIN(at, _flags))), \
		KYMO_I_TE_COUNT(__VA_ARGS__),                                                      \
		0,                                                                                 \
		__LINE__,                                                                          \
		0,                                                                                 \
		KYMO_I_TE_TYPES(KYMO_I_JOIN(at, _flags), __VA_ARGS__),                             \
		KYMO_I_TE_LITERAL(cat),                                                            \
		(KYMO_I_JOIN(at, _flags) & KYMO_SITE_NAME) ? "" : KYMO_I_TE_TEXT(name),            \
		__FILE__,                                                                          \
		__func__,                                                                          \
		&KYMO_I_JOIN(at, _keys)[4u - KYMO_I_TE_LEAD(KYMO_I_JOIN(at, _flags))]};            \
	static struct kymo_i_site at = {&kymo_i_unset, 0, &KYMO_I_JOIN(at, _info)}

KYMO_I_INLINE void kymo_i_te_learn(const char **slot, const char *text)
{
	if (!KYMO_I_LOAD(slot))
		KYMO_I_STORE(slot, text);
}
/*
 * Whether the category is on, where KYMO_I_MAYBE_ON says that it may be. The first pass fills in what the
 * static initialiser could not, and registers the trace point; before that nothing is evaluated.
 */
#define KYMO_I_TE_READY(at, cat, ...)                                                              \
	(!KYMO_I_UNLIKELY(__atomic_load_n(&(at).word, __ATOMIC_ACQUIRE) == 0) || __extension__({   \
		if (KYMO_I_JOIN(at, _learns)) {                                                    \
			const char **const kymo_i_te_k = &KYMO_I_JOIN(at, _keys)[4];               \
			(void)kymo_i_te_k;                                                         \
			kymo_i_te_learn(&KYMO_I_JOIN(at, _info).category, KYMO_I_TE_TEXT(cat));    \
			KYMO_I_EACH(KYMO_I_TE_PAIR_LEARN, __VA_ARGS__)                             \
		}                                                                                  \
		kymo_i_enabled_slow(&(at));                                                        \
	}))

struct kymo_i_te_words {
	uint64_t at[KYMO_ARGS_MAX + 1];
};
#ifdef __cplusplus
#define KYMO_I_TE_WORDS kymo_i_te_words
#else
#define KYMO_I_TE_WORDS (struct kymo_i_te_words)
#endif

/* Everything but the words themselves is constant, so that all of this folds. */
KYMO_I_INLINE int kymo_i_te_event(struct kymo_i_site *site, uint32_t flags, uint64_t types,
				  uint64_t time_ns, uint64_t tid, const char *name, uint64_t id,
				  uint32_t args, const struct kymo_i_te_words words)
{
	uint64_t values[KYMO_I_ITEMS_MAX];
	uint32_t items = 0;
	values[0] = 0;
	if (flags & KYMO_SITE_TIME)
		values[items++] = time_ns;
	if (flags & KYMO_SITE_TID)
		values[items++] = tid;
	if (flags & KYMO_SITE_NAME)
		values[items++] = (uint64_t)(uintptr_t)name;
	if (flags & KYMO_SITE_ID)
		values[items++] = id;
	for (uint32_t i = 0; i < args; i++)
		values[items++] = words.at[i];
	return kymo_i_event(site, 0, items, types, values);
}

/* One full expression: what a word points to lives until the event is recorded. */
#define KYMO_I_TE_RECORD(recorded, at, name, time, tid, id, ...)                                   \
	const int recorded = kymo_i_te_event(                                                      \
		&(at), KYMO_I_JOIN(at, _flags),                                                    \
		KYMO_I_TE_TYPES(KYMO_I_JOIN(at, _flags), __VA_ARGS__), KYMO_I_TE_NS(time),         \
		KYMO_I_TE_TID(tid), KYMO_I_TE_TEXT(name), KYMO_I_TE_ID_WORD(id),                   \
		KYMO_I_TE_COUNT(__VA_ARGS__),                                                      \
		KYMO_I_TE_WORDS{{KYMO_I_EACH(KYMO_I_TE_PAIR_WORD, __VA_ARGS__) 0}})

/* A whole trace point. "..." is something, then the pairs. */
#define KYMO_I_TE_POINT(kind, flags, more, cat, name, time, tid, id, ...)                          \
	do {                                                                                       \
		if (KYMO_I_STATIC(cat)) {                                                          \
			KYMO_I_TE_SITE(kymo_i_site, kind, flags, more, cat, name, __VA_ARGS__);    \
			if (KYMO_I_MAYBE_ON(kymo_i_site) &&                                        \
			    KYMO_I_TE_READY(kymo_i_site, cat, __VA_ARGS__)) {                      \
				KYMO_I_TE_RECORD(kymo_i_done, kymo_i_site, name, time, tid, id,    \
						 __VA_ARGS__);                                     \
				(void)kymo_i_done;                                                 \
			}                                                                          \
		}                                                                                  \
	} while (0)

/* As KYMO_I_SCOPE: the trace point has the same name in all translation units. */
#define KYMO_I_TE_SCOPE(cat, name, ...)                                                            \
	KYMO_I_TE_SCOPE_AT(KYMO_I_JOIN(kymo_i_scope_, __COUNTER__), cat, name, __VA_ARGS__)
#define KYMO_I_TE_SCOPE_AT(at, cat, name, ...)                                                     \
	KYMO_I_SCOPE_VAR(at);                                                                      \
	do {                                                                                       \
		KYMO_I_TE_SITE(kymo_i_site, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, 0, cat, name,        \
			       __VA_ARGS__);                                                       \
		if (KYMO_I_STATIC(cat) && KYMO_I_MAYBE_ON(kymo_i_site) &&                          \
		    KYMO_I_TE_READY(kymo_i_site, cat, __VA_ARGS__)) {                              \
			KYMO_I_TE_RECORD(kymo_i_done, kymo_i_site, name, 0, 0, 0, __VA_ARGS__);    \
			if (kymo_i_done)                                                           \
				(at).site = &kymo_i_site;                                          \
		}                                                                                  \
	} while (0)

#define KYMO_I_TE_ENABLED(cat)                                                                     \
	(KYMO_I_STATIC(cat) && __extension__({                                                     \
		 KYMO_I_TE_SITE(kymo_i_site, KYMO_KIND_NONE, 0, 0, cat, "", 0);                    \
		 KYMO_I_MAYBE_ON(kymo_i_site) && KYMO_I_TE_READY(kymo_i_site, cat, 0);             \
	 }))

/* The end of an arrow that the flags say. */
#define KYMO_I_TE_FLOW(cat, id, flow)                                                              \
	do {                                                                                       \
		const unsigned kymo_i_flow =                                                       \
			(flow) & (TRACE_EVENT_FLAG_FLOW_IN | TRACE_EVENT_FLAG_FLOW_OUT);           \
		if (kymo_i_flow == TRACE_EVENT_FLAG_FLOW_OUT)                                      \
			KYMO_I_TE_ID(KYMO_KIND_FLOW_BEGIN, cat, "flow", id);                       \
		else if (kymo_i_flow == TRACE_EVENT_FLAG_FLOW_IN)                                  \
			KYMO_I_TE_ID(KYMO_KIND_FLOW_END, cat, "flow", id);                         \
		else if (kymo_i_flow)                                                              \
			KYMO_I_TE_ID(KYMO_KIND_FLOW_STEP, cat, "flow", id);                        \
	} while (0)

#define KYMO_I_TE_IS_NEW(ret)                                                                      \
	do {                                                                                       \
		static unsigned char kymo_i_te_was;                                                \
		const unsigned char kymo_i_te_is = KYMO_I_TE_ENABLED("__metadata") ? 1 : 0;        \
		*(ret) = kymo_i_te_is && !KYMO_I_LOAD(&kymo_i_te_was);                             \
		KYMO_I_STORE(&kymo_i_te_was, kymo_i_te_is);                                        \
	} while (0)

#else /* KYMO_DISABLE: nothing is evaluated, yet the compiler counts everything as used */

#define TRACE_ID_LOCAL(id) (id)
#define TRACE_ID_GLOBAL(id) (id)
#define TRACE_ID_WITH_SCOPE(scope, ...) KYMO_I_FIRST_RAW(__VA_ARGS__)
#define KYMO_I_TE_TEXT(text) (text)
#define KYMO_I_TE_US(time) (time)
#define KYMO_I_TE_ID_WORD(id) (id)
#define KYMO_I_TE_ID_FLAGS(id) 0

#ifdef __cplusplus
/* In a branch that is never taken, as clang reports constants that only a sizeof mentions. */
template <typename... T> inline bool kymo_i_te_ignore(const T &...)
{
	return false;
}
#define KYMO_I_TE_POINT(kind, flags, more, cat, name, time, tid, id, ...)                          \
	((void)(false && kymo_i_te_ignore(cat, name, time, tid, id, __VA_ARGS__)))
#else
#define KYMO_I_TE_UNUSED(value) ((void)sizeof(((void)(value), 0)))
#define KYMO_I_TE_POINT(kind, flags, more, cat, name, time, tid, id, ...)                          \
	(KYMO_I_TE_UNUSED(name), KYMO_I_TE_UNUSED(time), KYMO_I_TE_UNUSED(tid),                    \
	 KYMO_I_TE_UNUSED(id) KYMO_I_EACH(KYMO_I_PAIR_UNUSED, __VA_ARGS__))
#endif
#define KYMO_I_TE_SCOPE(cat, name, ...) KYMO_I_TE_POINT(0, 0, 0, cat, name, 0, 0, 0, __VA_ARGS__)
#define KYMO_I_TE_FLOW(cat, id, flow) KYMO_I_TE_POINT(0, 0, 0, cat, "", 0, 0, id, flow)
#define KYMO_I_TE_ENABLED(cat) 0
#define KYMO_I_TE_IS_NEW(ret) ((void)(*(ret) = 0))

#endif /* KYMO_DISABLE */

/* Events with this or that beside a name and pairs; what comes last before the pairs is in "...". */
#define KYMO_I_TE_PLAIN(kind, cat, ...)                                                            \
	KYMO_I_TE_POINT(kind, 0, 0, cat, KYMO_I_FIRST_RAW(__VA_ARGS__), 0, 0, 0, __VA_ARGS__)
#define KYMO_I_TE_SPAN(cat, ...) KYMO_I_TE_SCOPE(cat, KYMO_I_FIRST_RAW(__VA_ARGS__), __VA_ARGS__)
#define KYMO_I_TE_TIME(kind, cat, name, ...)                                                       \
	KYMO_I_TE_POINT(kind, KYMO_SITE_TIME, 0, cat, name, KYMO_I_FIRST_RAW(__VA_ARGS__), 0, 0,   \
			__VA_ARGS__)
#define KYMO_I_TE_ID(kind, cat, name, ...)                                                         \
	KYMO_I_TE_POINT(kind, KYMO_SITE_ID, KYMO_I_TE_ID_FLAGS(KYMO_I_FIRST_RAW(__VA_ARGS__)),     \
			cat, name, 0, 0, KYMO_I_FIRST_RAW(__VA_ARGS__), __VA_ARGS__)
#define KYMO_I_TE_ID_TIME(kind, cat, name, id, ...)                                                \
	KYMO_I_TE_POINT(kind, KYMO_SITE_TIME | KYMO_SITE_ID, KYMO_I_TE_ID_FLAGS(id), cat, name,    \
			KYMO_I_FIRST_RAW(__VA_ARGS__), 0, id, __VA_ARGS__)
#define KYMO_I_TE_ID_TID_TIME(kind, cat, name, id, tid, ...)                                       \
	KYMO_I_TE_POINT(kind, KYMO_SITE_TIME | KYMO_SITE_TID | KYMO_SITE_ID,                       \
			KYMO_I_TE_ID_FLAGS(id), cat, name, KYMO_I_FIRST_RAW(__VA_ARGS__), tid, id, \
			__VA_ARGS__)
#define KYMO_I_TE_TID_TIME(kind, cat, name, tid, ...)                                              \
	KYMO_I_TE_POINT(kind, KYMO_SITE_TIME | KYMO_SITE_TID, 0, cat, name,                        \
			KYMO_I_FIRST_RAW(__VA_ARGS__), tid, 0, __VA_ARGS__)

/* Whom an instant concerns; a scope that is no constant counts as the thread's. */
#define KYMO_I_TE_CONCERNS_IS(scope, whom)                                                         \
	(__builtin_constant_p(scope) && ((scope)&TRACE_EVENT_FLAG_SCOPE_MASK) == (whom))
#define KYMO_I_TE_CONCERNS(scope)                                                                  \
	((KYMO_I_TE_CONCERNS_IS(scope, TRACE_EVENT_SCOPE_GLOBAL) ? KYMO_SITE_GLOBAL : 0u) |        \
	 (KYMO_I_TE_CONCERNS_IS(scope, TRACE_EVENT_SCOPE_PROCESS) ? KYMO_SITE_PROCESS : 0u))
#define KYMO_I_TE_INSTANT(cat, name, ...)                                                          \
	KYMO_I_TE_POINT(KYMO_KIND_INSTANT, 0, KYMO_I_TE_CONCERNS(KYMO_I_FIRST_RAW(__VA_ARGS__)),   \
			cat, name, 0, 0, 0, __VA_ARGS__)
#define KYMO_I_TE_INSTANT_TIME(cat, name, scope, ...)                                              \
	KYMO_I_TE_POINT(KYMO_KIND_INSTANT, KYMO_SITE_TIME, KYMO_I_TE_CONCERNS(scope), cat, name,   \
			KYMO_I_FIRST_RAW(__VA_ARGS__), 0, 0, __VA_ARGS__)

/* A span, then the end of its arrow that the flags say. */
#define KYMO_I_TE_FLOW_SPAN(cat, name, id, ...)                                                    \
	KYMO_I_TE_SCOPE(cat, name, __VA_ARGS__);                                                   \
	KYMO_I_TE_FLOW(cat, id, KYMO_I_FIRST_RAW(__VA_ARGS__))

/*
 * ------------------------------------------------------------------------------------------------
 * The macros. The digit in a name is the number of pairs; above each group is what it takes.
 * ------------------------------------------------------------------------------------------------
 */

/* Strings, which are copied in any case; ids; the function as a name. */
#define TRACE_STR_COPY(text) KYMO_I_TE_TEXT(text)
#define TRACE_STR_STATIC(text) KYMO_I_TE_TEXT(text)
#define TRACE_ID_MANGLE(id) TRACE_ID_LOCAL(id)
#define TRACE_ID_DONT_MANGLE(id) TRACE_ID_GLOBAL(id)
#define TRACE_FUNC __PRETTY_FUNCTION__

/* cat, name, pairs: a span until the end of the enclosing block. _ALWAYS is Skia's. */
#define TRACE_EVENT0(...) KYMO_I_TE_SPAN(__VA_ARGS__)
#define TRACE_EVENT1(...) KYMO_I_TE_SPAN(__VA_ARGS__)
#define TRACE_EVENT2(...) KYMO_I_TE_SPAN(__VA_ARGS__)
#define TRACE_EVENT0_ALWAYS(...) KYMO_I_TE_SPAN(__VA_ARGS__)
#define TRACE_EVENT1_ALWAYS(...) KYMO_I_TE_SPAN(__VA_ARGS__)
#define TRACE_EVENT2_ALWAYS(...) KYMO_I_TE_SPAN(__VA_ARGS__)

/* cat, name, id, TRACE_EVENT_FLAG_FLOW_, pairs: the same where an arrow begins, ends or both */
#define TRACE_EVENT_WITH_FLOW0(...) KYMO_I_TE_FLOW_SPAN(__VA_ARGS__)
#define TRACE_EVENT_WITH_FLOW1(...) KYMO_I_TE_FLOW_SPAN(__VA_ARGS__)
#define TRACE_EVENT_WITH_FLOW2(...) KYMO_I_TE_FLOW_SPAN(__VA_ARGS__)

/* cat, name, [flags,] pairs: a span by hand */
#define TRACE_EVENT_BEGIN0(...) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_BEGIN1(...) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_BEGIN2(...) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_BEGIN0(...) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_BEGIN1(...) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_BEGIN2(...) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_BEGIN_WITH_FLAGS0(cat, name, flags) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, cat, name)
#define TRACE_EVENT_BEGIN_WITH_FLAGS1(cat, name, flags, ...)                                       \
	KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, cat, name, __VA_ARGS__)
#define TRACE_EVENT_END0(...) KYMO_I_TE_PLAIN(KYMO_KIND_END, __VA_ARGS__)
#define TRACE_EVENT_END1(...) KYMO_I_TE_PLAIN(KYMO_KIND_END, __VA_ARGS__)
#define TRACE_EVENT_END2(...) KYMO_I_TE_PLAIN(KYMO_KIND_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_END0(...) KYMO_I_TE_PLAIN(KYMO_KIND_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_END1(...) KYMO_I_TE_PLAIN(KYMO_KIND_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_END2(...) KYMO_I_TE_PLAIN(KYMO_KIND_END, __VA_ARGS__)
#define TRACE_EVENT_END_WITH_FLAGS0(cat, name, flags) KYMO_I_TE_PLAIN(KYMO_KIND_END, cat, name)
#define TRACE_EVENT_END_WITH_FLAGS1(cat, name, flags, ...)                                         \
	KYMO_I_TE_PLAIN(KYMO_KIND_END, cat, name, __VA_ARGS__)

/* cat, name, id, tid, time, pairs: a span on behalf of another thread, so an asynchronous one */
#define TRACE_EVENT_BEGIN_WITH_ID_TID_AND_TIMESTAMP0(...)                                          \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_BEGIN_WITH_ID_TID_AND_TIMESTAMP0(...)                                     \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_BEGIN_WITH_ID_TID_AND_TIMESTAMP1(...)                                     \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_BEGIN_WITH_ID_TID_AND_TIMESTAMP2(...)                                     \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_END_WITH_ID_TID_AND_TIMESTAMP0(...)                                            \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_END_WITH_ID_TID_AND_TIMESTAMP0(...)                                       \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_END_WITH_ID_TID_AND_TIMESTAMP1(...)                                       \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_END_WITH_ID_TID_AND_TIMESTAMP2(...)                                       \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)

/* cat, name, scope, [time,] pairs: a point in time */
#define TRACE_EVENT_INSTANT0(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT1(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT2(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_COPY_INSTANT0(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_COPY_INSTANT1(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_COPY_INSTANT2(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT_WITH_FLAGS0(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT_WITH_FLAGS1(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT0_ALWAYS(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT1_ALWAYS(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT2_ALWAYS(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT_WITH_TIMESTAMP0(...) KYMO_I_TE_INSTANT_TIME(__VA_ARGS__)
#define TRACE_EVENT_INSTANT_WITH_TIMESTAMP1(...) KYMO_I_TE_INSTANT_TIME(__VA_ARGS__)
#define TRACE_EVENT_INSTANT_WITH_TIMESTAMP2(...) KYMO_I_TE_INSTANT_TIME(__VA_ARGS__)

/* cat, name, [time,] pairs: a mark */
#define TRACE_EVENT_COPY_MARK(...) KYMO_I_TE_PLAIN(KYMO_KIND_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_COPY_MARK1(...) KYMO_I_TE_PLAIN(KYMO_KIND_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_MARK_WITH_TIMESTAMP0(...) KYMO_I_TE_TIME(KYMO_KIND_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_MARK_WITH_TIMESTAMP1(...) KYMO_I_TE_TIME(KYMO_KIND_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_MARK_WITH_TIMESTAMP2(...) KYMO_I_TE_TIME(KYMO_KIND_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_COPY_MARK_WITH_TIMESTAMP(...) KYMO_I_TE_TIME(KYMO_KIND_INSTANT, __VA_ARGS__)

/* cat, name, [id, or time, or flags,] and a value or two pairs: values over time */
#define TRACE_COUNTER1(cat, name, value)                                                           \
	KYMO_I_TE_PLAIN(KYMO_KIND_COUNTER, cat, name, "value", value)
#define TRACE_COUNTER2(...) KYMO_I_TE_PLAIN(KYMO_KIND_COUNTER, __VA_ARGS__)
#define TRACE_COUNTER_ID1(cat, name, id, value)                                                    \
	KYMO_I_TE_ID(KYMO_KIND_COUNTER, cat, name, id, "value", value)
#define TRACE_COUNTER_ID2(...) KYMO_I_TE_ID(KYMO_KIND_COUNTER, __VA_ARGS__)
#define TRACE_COPY_COUNTER1(cat, name, value)                                                      \
	KYMO_I_TE_PLAIN(KYMO_KIND_COUNTER, cat, name, "value", value)
#define TRACE_COPY_COUNTER2(...) KYMO_I_TE_PLAIN(KYMO_KIND_COUNTER, __VA_ARGS__)
#define TRACE_COPY_COUNTER_ID1(cat, name, id, value)                                               \
	KYMO_I_TE_ID(KYMO_KIND_COUNTER, cat, name, id, "value", value)
#define TRACE_COPY_COUNTER_ID2(...) KYMO_I_TE_ID(KYMO_KIND_COUNTER, __VA_ARGS__)
#define TRACE_COUNTER_WITH_TIMESTAMP1(cat, name, time, value)                                      \
	KYMO_I_TE_TIME(KYMO_KIND_COUNTER, cat, name, time, "value", value)
#define TRACE_COUNTER_WITH_TIMESTAMP2(...) KYMO_I_TE_TIME(KYMO_KIND_COUNTER, __VA_ARGS__)
#define TRACE_COUNTER_WITH_FLAG1(cat, name, flags, value) TRACE_COUNTER1(cat, name, value)
#define TRACE_COUNTER1_ALWAYS(cat, name, value) TRACE_COUNTER1(cat, name, value)

/* cat, name, id, or tid and time, pairs: a sample */
#define TRACE_EVENT_SAMPLE_WITH_ID1(...) KYMO_I_TE_ID(KYMO_KIND_SAMPLE, __VA_ARGS__)
#define TRACE_EVENT_SAMPLE_WITH_TID_AND_TIMESTAMP0(...)                                            \
	KYMO_I_TE_TID_TIME(KYMO_KIND_SAMPLE, __VA_ARGS__)
#define TRACE_EVENT_SAMPLE_WITH_TID_AND_TIMESTAMP1(...)                                            \
	KYMO_I_TE_TID_TIME(KYMO_KIND_SAMPLE, __VA_ARGS__)
#define TRACE_EVENT_SAMPLE_WITH_TID_AND_TIMESTAMP2(...)                                            \
	KYMO_I_TE_TID_TIME(KYMO_KIND_SAMPLE, __VA_ARGS__)

/* cat, name, id, [step,] [time,] pairs: a span that may cross threads */
#define TRACE_EVENT_ASYNC_BEGIN0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_BEGIN1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_BEGIN2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_BEGIN0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_BEGIN1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_BEGIN2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_BEGIN_WITH_TIMESTAMP0(...)                                               \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_BEGIN_WITH_TIMESTAMP1(...)                                               \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_BEGIN_WITH_TIMESTAMP2(...)                                               \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_BEGIN_WITH_TIMESTAMP0(...)                                          \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_END0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_END1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_END2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_END0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_END1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_END2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_END_WITH_TIMESTAMP0(...)                                                 \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_END_WITH_TIMESTAMP1(...)                                                 \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_END_WITH_TIMESTAMP2(...)                                                 \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_END_WITH_TIMESTAMP0(...)                                            \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define KYMO_I_TE_ASYNC_STEP(cat, name, id, ...)                                                   \
	KYMO_I_TE_ID(KYMO_KIND_ASYNC_INSTANT, cat, name, id, "step", __VA_ARGS__)
#define TRACE_EVENT_ASYNC_STEP_INTO0(...) KYMO_I_TE_ASYNC_STEP(__VA_ARGS__)
#define TRACE_EVENT_ASYNC_STEP_INTO1(...) KYMO_I_TE_ASYNC_STEP(__VA_ARGS__)
#define TRACE_EVENT_ASYNC_STEP_PAST0(...) KYMO_I_TE_ASYNC_STEP(__VA_ARGS__)
#define TRACE_EVENT_ASYNC_STEP_PAST1(...) KYMO_I_TE_ASYNC_STEP(__VA_ARGS__)
#define TRACE_EVENT_ASYNC_STEP_INTO_WITH_TIMESTAMP0(cat, name, id, step, time)                     \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_INSTANT, cat, name, id, time, "step", step)

/* cat, name, id, [time,] [flags,] pairs: the same, nested in their order */
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP0(...)                                      \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP1(...)                                      \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP2(...)                                      \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP0(...)                                 \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP1(...)                                 \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP2(...)                                 \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TTS2(...)                                       \
	KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_FLAGS0(cat, name, id, flags)                         \
	KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, cat, name, id)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP_AND_FLAGS0(cat, name, id, time, flags)     \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, cat, name, id, time)
#define TRACE_EVENT_NESTABLE_ASYNC_END0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_END1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_END2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP0(...)                                        \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP1(...)                                        \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP2(...)                                        \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TIMESTAMP0(...)                                   \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TIMESTAMP1(...)                                   \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TIMESTAMP2(...)                                   \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TTS2(...)                                         \
	KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_FLAGS0(cat, name, id, flags)                           \
	KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, cat, name, id)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP_AND_FLAGS0(cat, name, id, time, flags)       \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, cat, name, id, time)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT_WITH_TIMESTAMP0(...)                                    \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT_WITH_TIMESTAMP1(...)                                    \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT_WITH_TIMESTAMP2(...)                                    \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_INSTANT, __VA_ARGS__)

/* cat, name, id, [step,] pairs: an arrow */
#define KYMO_I_TE_FLOW_STEP(cat, name, id, ...)                                                    \
	KYMO_I_TE_ID(KYMO_KIND_FLOW_STEP, cat, name, id, "step", __VA_ARGS__)
#define TRACE_EVENT_FLOW_BEGIN0(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_FLOW_BEGIN1(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_FLOW_BEGIN2(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_FLOW_END0(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_END, __VA_ARGS__)
#define TRACE_EVENT_FLOW_END1(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_END, __VA_ARGS__)
#define TRACE_EVENT_FLOW_END2(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_END, __VA_ARGS__)
#define TRACE_EVENT_FLOW_STEP0(...) KYMO_I_TE_FLOW_STEP(__VA_ARGS__)
#define TRACE_EVENT_FLOW_STEP1(...) KYMO_I_TE_FLOW_STEP(__VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_BEGIN0(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_BEGIN1(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_BEGIN2(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_END0(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_END1(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_END2(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_STEP0(...) KYMO_I_TE_FLOW_STEP(__VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_STEP1(...) KYMO_I_TE_FLOW_STEP(__VA_ARGS__)
#define TRACE_EVENT_FLOW_END_BIND_TO_ENCLOSING0(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_END, __VA_ARGS__)

/* The life of an object, and its state */
#define TRACE_EVENT_OBJECT_CREATED_WITH_ID(cat, name, id)                                          \
	KYMO_I_TE_ID(KYMO_KIND_OBJECT_NEW, cat, name, id)
#define TRACE_EVENT_OBJECT_SNAPSHOT_WITH_ID(cat, name, id, snapshot)                               \
	KYMO_I_TE_ID(KYMO_KIND_OBJECT_SNAPSHOT, cat, name, id, "snapshot", snapshot)
#define TRACE_EVENT_OBJECT_SNAPSHOT_WITH_ID_AND_TIMESTAMP(cat, name, id, time, snapshot)           \
	KYMO_I_TE_ID_TIME(KYMO_KIND_OBJECT_SNAPSHOT, cat, name, id, time, "snapshot", snapshot)
#define TRACE_EVENT_OBJECT_DELETED_WITH_ID(cat, name, id)                                          \
	KYMO_I_TE_ID(KYMO_KIND_OBJECT_DELETE, cat, name, id)

/* One id belongs to another; a thread works for whom the id names (a span, where it is scoped) */
#define TRACE_LINK_IDS(cat, name, id, linked)                                                      \
	KYMO_I_TE_ID(KYMO_KIND_ASYNC_INSTANT, cat, name, id, "linked_id", KYMO_I_TE_ID_WORD(linked))
#define TRACE_EVENT_ENTER_CONTEXT(cat, name, id) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, cat, name, id)
#define TRACE_EVENT_LEAVE_CONTEXT(cat, name, id) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, cat, name, id)
#define TRACE_EVENT_SCOPED_CONTEXT(cat, name, id)                                                  \
	KYMO_I_TE_SPAN(cat, name, "context", KYMO_I_TE_ID_WORD(id))

/* Facts about the process, marks that tie the clocks of two tracing systems, log messages */
#define TRACE_EVENT_METADATA1(...) KYMO_I_TE_PLAIN(KYMO_KIND_METADATA, __VA_ARGS__)
#define TRACE_EVENT_CLOCK_SYNC_RECEIVER(sync_id)                                                   \
	KYMO_I_TE_PLAIN(KYMO_KIND_CLOCK_SYNC, "__metadata", "clock_sync", "sync_id", sync_id)
#define TRACE_EVENT_CLOCK_SYNC_ISSUER(sync_id, issue_time, issue_end_time)                         \
	KYMO_I_TE_TIME(KYMO_KIND_CLOCK_SYNC, "__metadata", "clock_sync", issue_end_time,           \
		       "sync_id", sync_id, "issue_ts", KYMO_I_TE_US(issue_time))
#define TRACE_LOG_MESSAGE(file, message, line)                                                     \
	KYMO_I_TE_PLAIN(KYMO_KIND_INSTANT, "log", "LogMessage", "file", file, "message", message,  \
			"line", line)

/* Stores whether the category is on. */
#define TRACE_EVENT_CATEGORY_GROUP_ENABLED(cat, ret)                                               \
	((void)(*(ret) = KYMO_I_TE_ENABLED(cat) ? 1 : 0))
/* The same as an expression. */
#define TRACE_EVENT_CATEGORY_ENABLED(cat) (KYMO_I_TE_ENABLED(cat) ? 1 : 0)
/* Registers the category, so that a list of categories has it. */
#define TRACE_EVENT_WARMUP_CATEGORY(cat) ((void)KYMO_I_TE_ENABLED(cat))

/* Stores whether "__metadata" was switched on since this very line was last asked. */
#define TRACE_EVENT_IS_NEW_TRACE(ret) KYMO_I_TE_IS_NEW(ret)

/*
 * The newer macros, as far as the arguments are pairs: up to KYMO_ARGS_MAX of them, no tracks, flows
 * or functions. TRACE_EVENT_END takes cat, ... and also Node's cat, name, ...
 */
#define TRACE_EVENT(...) KYMO_I_TE_SPAN(__VA_ARGS__)
#define TRACE_EVENT_BEGIN(...) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_INSTANT(...) KYMO_I_TE_PLAIN(KYMO_KIND_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_END(...) KYMO_I_JOIN(KYMO_I_TE_END_, KYMO_I_TE_PARITY(__VA_ARGS__))(__VA_ARGS__)
#define KYMO_I_TE_END_ODD(...)                                                                     \
	KYMO_I_TE_POINT(KYMO_KIND_END, 0, 0, KYMO_I_FIRST_RAW(__VA_ARGS__), "", 0, 0, 0,           \
			__VA_ARGS__)
#define KYMO_I_TE_END_EVEN(...) KYMO_I_TE_PLAIN(KYMO_KIND_END, __VA_ARGS__)
#define KYMO_I_TE_PARITY(...)                                                                      \
	KYMO_I_COUNT_(__VA_ARGS__, EVEN, ODD, EVEN, ODD, EVEN, ODD, EVEN, ODD, EVEN, ODD, EVEN,    \
		      ODD, EVEN, ODD, EVEN, ODD, EVEN, ODD, EVEN, ODD, EVEN, ODD, EVEN, ODD, EVEN, \
		      ODD, 0)
#define TRACE_COUNTER(cat, name, value) TRACE_COUNTER1(cat, name, value)

#endif /* KYMO_TRACE_EVENT_H */
