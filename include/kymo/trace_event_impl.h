/* SPDX-License-Identifier: MIT */
/*
 * trace_event_impl.h: what the macros of trace_event.h expand to. Private; trace_event.h includes it
 * last.
 *
 * A trace point is one of kymo.h's, with two differences. Whether it has a name of its own
 * (KYMO_SITE_NAME) depends on whether the name is a constant: a constant of the trace point says so,
 * and folds away. And a category or key that is no constant is filled in before the trace point
 * registers, so that no static initialiser ever runs. Prefixes are those of kymo_impl.h; plain names
 * are members of the program's own classes.
 */
#ifndef KYMO_TRACE_EVENT_IMPL_H
#define KYMO_TRACE_EVENT_IMPL_H

#pragma GCC system_header

#include "trace_event.h"

/* The integer types that both languages have. */
#define KYMO_I_TE_SIGNED(X) X(char) X(signed char) X(short) X(int) X(long) X(long long)
#define KYMO_I_TE_UNSIGNED(X)                                                                      \
	X(unsigned char) X(unsigned short) X(unsigned int) X(unsigned long) X(unsigned long long)
#define KYMO_I_TE_INTEGERS(X) KYMO_I_TE_SIGNED(X) KYMO_I_TE_UNSIGNED(X)

#define KYMO_I_TE_NOW(clock)                                                                       \
	(__extension__({                                                                           \
		struct timespec kymo_i_now;                                                        \
		clock_gettime(clock, &kymo_i_now);                                                 \
		(int64_t) kymo_i_now.tv_sec * 1000000 + kymo_i_now.tv_nsec / 1000;                 \
	}))

/* An event as TRACE_EVENT_API_ADD_TRACE_EVENT has it. */
struct kymo_i_te_event {
	char ky_phase;
	int ky_args;
	unsigned ky_flags;
	const unsigned char *ky_category; /* its byte */
	const char *ky_name;
	uint64_t ky_id;
	uint64_t ky_bind_id;
	uint64_t ky_time_ns;
	const char *const *ky_keys;
	const unsigned char *ky_types;
	const uint64_t *ky_values;
};

#ifndef KYMO_DISABLE

#ifdef __cplusplus

/* A text made for this event. */
template <typename KY_Text> struct kymo_i_te_made {
	enum { ky_type = KYMO_TYPE_STRING };
	bool ky_some;
	KY_Text ky_text;
	uint64_t ky_word() const
	{
		return ky_some ? (uint64_t)(uintptr_t)ky_text.c_str() : 0;
	}
};
/* An id, with KYMO_SITE_LOCAL_ID or without. */
template <unsigned KY_Flags> struct kymo_i_te_id {
	enum { ky_type = KYMO_TYPE_UINT, ky_flags = KY_Flags };
	uint64_t ky_bits;
	uint64_t ky_word() const
	{
		return ky_bits;
	}
};

/* kymo_i_te_hold(v) holds the type and word of v, and what the word points to. */
#define KYMO_I_TE_HOLD(T)                                                                          \
	KYMO_I_INLINE auto kymo_i_te_hold(T ky_v)->decltype(kymo_i_hold(ky_v))                     \
	{                                                                                          \
		return kymo_i_hold(ky_v);                                                          \
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
template <unsigned KY_Flags>
KYMO_I_INLINE kymo_i_te_id<KY_Flags> kymo_i_te_hold(const kymo_i_te_id<KY_Flags> &ky_id)
{
	return ky_id;
}

/* The class that AppendAsTraceFormat() appends to, which is std::string, without naming it. */
template <typename KY_Class, typename KY_Result, typename KY_Text>
KY_Text kymo_i_te_text_of(KY_Result (KY_Class::*)(KY_Text *) const);
template <typename KY_T>
auto kymo_i_te_text_by(const KY_T *) -> decltype(kymo_i_te_text_of(&KY_T::AppendAsTraceFormat));

template <typename KY_Text, typename KY_Pointer>
KYMO_I_INLINE kymo_i_te_made<KY_Text> kymo_i_te_make(const KY_Pointer &ky_convertable)
{
	kymo_i_te_made<KY_Text> ky_made = {ky_convertable ? true : false, KY_Text()};
	if (ky_made.ky_some)
		ky_convertable->AppendAsTraceFormat(&ky_made.ky_text);
	return ky_made;
}

template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_hold_pointer(KY_T *ky_v, kymo_i_rank<1>)
	-> kymo_i_te_made<decltype(kymo_i_te_text_by(ky_v))>
{
	return kymo_i_te_make<decltype(kymo_i_te_text_by(ky_v))>(ky_v);
}
template <typename KY_T>
KYMO_I_INLINE kymo_i_plain<KYMO_TYPE_POINTER> kymo_i_te_hold_pointer(KY_T *ky_v, kymo_i_rank<0>)
{
	return {(uint64_t)(uintptr_t)ky_v};
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_hold(KY_T *ky_v)
	-> decltype(kymo_i_te_hold_pointer(ky_v, kymo_i_rank<1>()))
{
	return kymo_i_te_hold_pointer(ky_v, kymo_i_rank<1>());
}

/* In this order: enums, strings, convertables, times, and what converts to a number. */
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_hold_object(const KY_T &ky_v, kymo_i_rank<7>)
	-> decltype(kymo_i_te_hold((typename kymo_i_integer<KY_T>::ky_type)ky_v))
{
	return kymo_i_te_hold((typename kymo_i_integer<KY_T>::ky_type)ky_v);
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_hold_object(const KY_T &ky_v, kymo_i_rank<6>)
	-> decltype(kymo_i_te_hold(ky_v.c_str()))
{
	return kymo_i_te_hold(ky_v.c_str());
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_hold_object(const KY_T &ky_v, kymo_i_rank<5>)
	-> decltype(kymo_i_copy(ky_v.data(), ky_v.size()))
{
	return kymo_i_copy(ky_v.data(), ky_v.size());
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_hold_object(const KY_T &ky_v, kymo_i_rank<4>)
	-> kymo_i_te_made<decltype(kymo_i_te_text_by(&*ky_v))>
{
	return kymo_i_te_make<decltype(kymo_i_te_text_by(&*ky_v))>(ky_v);
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_hold_object(const KY_T &ky_v, kymo_i_rank<3>)
	-> decltype(kymo_i_te_hold(ky_v.since_origin().InMicroseconds()))
{
	return kymo_i_te_hold(ky_v.since_origin().InMicroseconds());
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_hold_object(const KY_T &ky_v, kymo_i_rank<2>)
	-> decltype(kymo_i_te_hold(ky_v.ToInternalValue()))
{
	return kymo_i_te_hold(ky_v.ToInternalValue());
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_hold_object(const KY_T &ky_v, kymo_i_rank<1>)
	-> decltype(kymo_i_te_hold(+ky_v))
{
	return kymo_i_te_hold(+ky_v);
}
template <typename KY_T>
KYMO_I_INLINE kymo_i_plain<KYMO_TYPE_NONE> kymo_i_te_hold_object(const KY_T &, kymo_i_rank<0>)
{
	static_assert(
		sizeof(KY_T) == 0,
		"kymo: a value of this type cannot be recorded: trace_event.h says which can");
	return {0};
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_hold(const KY_T &ky_v)
	-> decltype(kymo_i_te_hold_object(ky_v, kymo_i_rank<7>()))
{
	return kymo_i_te_hold_object(ky_v, kymo_i_rank<7>());
}

#define KYMO_I_TE_TYPE(v) ((uint64_t) decltype(kymo_i_te_hold(v))::ky_type)
#define KYMO_I_TE_WORD(v) kymo_i_te_hold(v).ky_word()

/* Names, categories and keys. */
constexpr inline const char *kymo_i_te_text(const char *ky_text)
{
	return ky_text;
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_text(const KY_T &ky_text) -> decltype(ky_text.c_str())
{
	return ky_text.c_str();
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_text(const KY_T &ky_text) -> decltype(kymo_i_te_text(ky_text.value))
{
	return ky_text.value; /* perfetto::StaticString and DynamicString */
}
#define KYMO_I_TE_TEXT(text) kymo_i_te_text(text)

/* Times, in nanoseconds, and thread ids. */
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_microseconds(const KY_T &ky_time, kymo_i_rank<2>)
	-> decltype((int64_t)ky_time.since_origin().InMicroseconds())
{
	return (int64_t)ky_time.since_origin().InMicroseconds();
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_microseconds(const KY_T &ky_time, kymo_i_rank<1>)
	-> decltype((int64_t)ky_time.ToInternalValue())
{
	return (int64_t)ky_time.ToInternalValue();
}
template <typename KY_T> KYMO_I_INLINE int64_t kymo_i_te_microseconds(KY_T ky_time, kymo_i_rank<0>)
{
	return (int64_t)ky_time;
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_thread(const KY_T &ky_tid, kymo_i_rank<1>)
	-> decltype((int64_t)ky_tid.raw())
{
	return (int64_t)ky_tid.raw();
}
template <typename KY_T> KYMO_I_INLINE int64_t kymo_i_te_thread(KY_T ky_tid, kymo_i_rank<0>)
{
	return (int64_t)ky_tid;
}
#define KYMO_I_TE_US(time) kymo_i_te_microseconds(time, kymo_i_rank<2>())
#define KYMO_I_TE_TID(tid) ((uint64_t)kymo_i_te_thread(tid, kymo_i_rank<1>()))

#else

#define KYMO_I_TE_TYPE(v) KYMO_I_TYPE(v)
#define KYMO_I_TE_WORD(v) KYMO_I_WORD(v)
#define KYMO_I_TE_TEXT(text) (text)
#define KYMO_I_TE_US(time) ((int64_t)(time))
#define KYMO_I_TE_TID(tid) ((uint64_t)(int64_t)(tid))

#endif
#define KYMO_I_TE_NS(time) ((uint64_t)KYMO_I_TE_US(time) * 1000u)

/* Mix a hash of the scope (FNV-1a) into the id; the result is the same in every process. */
KYMO_I_INLINE uint64_t kymo_i_te_mix(const char *ky_scope, uint64_t ky_id)
{
	uint64_t ky_hash = 0xcbf29ce484222325u;
	for (; ky_scope && *ky_scope; ky_scope++)
		ky_hash = (ky_hash ^ (unsigned char)*ky_scope) * 0x100000001b3u;
	return ky_hash ^ ky_id;
}

#ifdef KYMO_EMBEDDED /* a host knows trace points alone: nothing is recorded */
KYMO_I_INLINE uint64_t kymo_i_te_add(const struct kymo_i_te_event *ky_event)
{
	(void)ky_event;
	return 0;
}
#else
#ifdef __cplusplus
extern "C" {
#endif
/* Record it, if its category is on. Return 1 if it was recorded, else 0. */
KYMO_API uint64_t kymo_i_te_add(const struct kymo_i_te_event *ky_event);
#ifdef __cplusplus
}
#endif
#endif

KYMO_I_INLINE uint64_t kymo_i_te_put(char ky_phase, const unsigned char *ky_category,
				     const char *ky_name, const char *ky_scope, uint64_t ky_id,
				     uint64_t ky_bind_id, int ky_args, const char *const *ky_keys,
				     const unsigned char *ky_types, const uint64_t *ky_values,
				     unsigned ky_flags, uint64_t ky_time_ns)
{
	struct kymo_i_te_event ky_event;
	if (!KYMO_I_LOAD(ky_category))
		return 0;
	ky_event.ky_phase = ky_phase;
	ky_event.ky_args = ky_args;
	ky_event.ky_flags = ky_flags;
	ky_event.ky_category = ky_category;
	ky_event.ky_name = ky_name;
	ky_event.ky_id = ky_scope ? kymo_i_te_mix(ky_scope, ky_id) : ky_id;
	ky_event.ky_bind_id = ky_bind_id;
	ky_event.ky_time_ns = ky_time_ns;
	ky_event.ky_keys = ky_keys;
	ky_event.ky_types = ky_types;
	ky_event.ky_values = ky_values;
	return kymo_i_te_add(&ky_event);
}
#define KYMO_I_TE_ADD(phase, flag, name, scope, id, bind, num, names, types, values, flags, time)  \
	kymo_i_te_put(phase, flag, name, scope, (uint64_t)(id), (uint64_t)(bind), (int)(num),      \
		      (const char *const *)(names), types, values, flags, KYMO_I_TE_NS(time))

#ifdef __cplusplus

/* kymo_i_te_id_of(id): a pointer has a meaning in this process alone. */
template <typename KY_T> KYMO_I_INLINE kymo_i_te_id<KYMO_SITE_LOCAL_ID> kymo_i_te_id_of(KY_T *ky_v)
{
	return {(uint64_t)(uintptr_t)ky_v};
}
template <typename KY_T> KYMO_I_INLINE kymo_i_te_id<0> kymo_i_te_id_of(const KY_T &ky_v)
{
	return {kymo_i_te_hold(ky_v).ky_word()};
}
template <unsigned KY_Flags>
KYMO_I_INLINE kymo_i_te_id<KY_Flags> kymo_i_te_id_of(const kymo_i_te_id<KY_Flags> &ky_id)
{
	return ky_id;
}
#define KYMO_I_TE_ID_OF(T)                                                                         \
	KYMO_I_INLINE kymo_i_te_id<0> kymo_i_te_id_of(T ky_v)                                      \
	{                                                                                          \
		return {kymo_i_hold(ky_v).ky_bits};                                                \
	}
KYMO_I_TE_INTEGERS(KYMO_I_TE_ID_OF)
#undef KYMO_I_TE_ID_OF
#define KYMO_I_TE_ID_WORD(id) kymo_i_te_id_of(id).ky_word()
#define KYMO_I_TE_ID_FLAGS(id) ((unsigned)decltype(kymo_i_te_id_of(id))::ky_flags)

template <unsigned KY_Flags> KYMO_I_INLINE kymo_i_te_id<KY_Flags> kymo_i_te_id_as(uint64_t ky_word)
{
	return {ky_word};
}
template <typename KY_T>
KYMO_I_INLINE auto kymo_i_te_scope(const char *ky_scope, const KY_T &ky_id)
	-> decltype(kymo_i_te_id_of(ky_id))
{
	return {kymo_i_te_mix(ky_scope, kymo_i_te_id_of(ky_id).ky_bits)};
}
/* An id made of several numbers. */
template <typename KY_T, typename KY_Next, typename... KY_More>
KYMO_I_INLINE auto kymo_i_te_scope(const char *ky_scope, const KY_T &ky_id, const KY_Next &ky_next,
				   const KY_More &...ky_more) -> decltype(kymo_i_te_id_of(ky_id))
{
	const uint64_t ky_rest = kymo_i_te_scope("", ky_next, ky_more...).ky_bits;
	return {kymo_i_te_mix(ky_scope, kymo_i_te_id_of(ky_id).ky_bits * 31 + ky_rest)};
}
#define KYMO_I_TE_LOCAL(id) kymo_i_te_id_as<KYMO_SITE_LOCAL_ID>(KYMO_I_TE_ID_WORD(id))
#define KYMO_I_TE_GLOBAL(id) kymo_i_te_id_as<0>(KYMO_I_TE_ID_WORD(id))
#define KYMO_I_TE_WITH_SCOPE(scope, ...) kymo_i_te_scope(KYMO_I_TE_TEXT(scope), __VA_ARGS__)

#else

struct kymo_i_te_local {
	uint64_t ky_bits;
};
struct kymo_i_te_global {
	uint64_t ky_bits;
};
KYMO_I_INLINE uint64_t kymo_i_te_local_word(struct kymo_i_te_local ky_id)
{
	return ky_id.ky_bits;
}
KYMO_I_INLINE uint64_t kymo_i_te_global_word(struct kymo_i_te_global ky_id)
{
	return ky_id.ky_bits;
}
KYMO_I_INLINE struct kymo_i_te_local kymo_i_te_local_id(const char *ky_scope, uint64_t ky_id)
{
	return (struct kymo_i_te_local){ky_scope ? kymo_i_te_mix(ky_scope, ky_id) : ky_id};
}
KYMO_I_INLINE struct kymo_i_te_global kymo_i_te_global_id(const char *ky_scope, uint64_t ky_id)
{
	return (struct kymo_i_te_global){ky_scope ? kymo_i_te_mix(ky_scope, ky_id) : ky_id};
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
#define KYMO_I_TE_WITH_SCOPE(scope, id)                                                             \
	_Generic((id),                                                                             \
		KYMO_I_TE_INTEGERS(KYMO_I_TE_INTEGER_MAKE)                                         \
		struct kymo_i_te_global: kymo_i_te_global_id,                                      \
		default: kymo_i_te_local_id)(scope, KYMO_I_TE_ID_WORD(id))
/* clang-format on */
#define KYMO_I_TE_LOCAL(id) kymo_i_te_local_id(NULL, KYMO_I_TE_ID_WORD(id))
#define KYMO_I_TE_GLOBAL(id) kymo_i_te_global_id(NULL, KYMO_I_TE_ID_WORD(id))

#endif

/* A constant of a trace point. clang refuses local variables in a C++ enum, C has no constexpr. */
#ifdef __cplusplus
#define KYMO_I_TE_CONSTANT(constant, value) constexpr unsigned constant = (value)
#else
#define KYMO_I_TE_CONSTANT(constant, value) enum { constant = (value) }
#endif

/*
 * True for a literal and for a constant that is one. In a constant expression the compiler decides at
 * once: no optimisation changes the answer later.
 */
#define KYMO_I_TE_IS_LITERAL(text) KYMO_I_IS_LITERAL(KYMO_I_TE_TEXT(text))
#define KYMO_I_TE_LITERAL(text) (KYMO_I_TE_IS_LITERAL(text) ? KYMO_I_TE_TEXT(text) : NULL)

#define KYMO_I_TE_PAIR_KEY(i, key, value) KYMO_I_TE_LITERAL(key),
#define KYMO_I_TE_PAIR_IS_LITERAL(i, key, value) &&KYMO_I_TE_IS_LITERAL(key)
#define KYMO_I_TE_PAIR_LEARN(i, key, value) kymo_i_learn(&kymo_i_te_k[(i)&15], KYMO_I_TE_TEXT(key));
#define KYMO_I_TE_PAIR_TYPE(i, key, value) | KYMO_I_TE_TYPE(value) << (4 * ((i)&15))
#define KYMO_I_TE_PAIR_WORD(i, key, value) KYMO_I_TE_WORD(value),
#define KYMO_I_TE_COUNT(...) (0 KYMO_I_WALK(KYMO_I_PAIR_ONE, __VA_ARGS__))

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
	 ((uint64_t)0 KYMO_I_WALK(KYMO_I_TE_PAIR_TYPE, __VA_ARGS__))                               \
		 << (4 * KYMO_I_TE_LEAD(flags)))

/* Define the trace point: flags are the items that it has, more are its other flags. */
#define KYMO_I_TE_SITE(at, kind, flags, more, cat, name, ...)                                      \
	KYMO_I_CHECK_PAIRS(0, __VA_ARGS__)                                                         \
	KYMO_I_TE_CONSTANT(at##_flags,                                                             \
			   (flags) | (KYMO_I_TE_IS_LITERAL(name) ? 0u : KYMO_SITE_NAME));          \
	KYMO_I_TE_CONSTANT(at##_learns, (KYMO_I_TE_IS_LITERAL(cat) KYMO_I_WALK(                    \
						KYMO_I_TE_PAIR_IS_LITERAL, __VA_ARGS__))           \
						? 0u                                               \
						: 1u);                                             \
	static const char *at##_keys[] = {"", "", "", "",                                          \
					  KYMO_I_WALK(KYMO_I_TE_PAIR_KEY, __VA_ARGS__) NULL};      \
	static struct kymo_site_info at##_info = {                                                 \
		KYMO_I_ABI,                                                                        \
		(kind),                                                                            \
		(uint8_t)(at##_flags | (more)),                                                    \
		(uint8_t)(KYMO_I_TE_COUNT(__VA_ARGS__) + KYMO_I_TE_LEAD(at##_flags)),              \
		KYMO_I_TE_COUNT(__VA_ARGS__),                                                      \
		0,                                                                                 \
		__LINE__,                                                                          \
		0,                                                                                 \
		KYMO_I_TE_TYPES(at##_flags, __VA_ARGS__),                                          \
		KYMO_I_TE_LITERAL(cat),                                                            \
		(at##_flags & KYMO_SITE_NAME) ? "" : KYMO_I_TE_TEXT(name),                         \
		__FILE__,                                                                          \
		__func__,                                                                          \
		&at##_keys[4u - KYMO_I_TE_LEAD(at##_flags)]};                                      \
	static struct kymo_i_site at = {&kymo_i_unset, 0, &at##_info}

/*
 * True when the category is on, given KYMO_I_MAYBE_ON. The first pass fills in what the static
 * initialiser could not, and registers the trace point; nothing is evaluated before that. The acquire
 * load is that of kymo_i_is_enabled().
 */
#define KYMO_I_TE_READY(at, cat, ...)                                                              \
	(!KYMO_I_UNLIKELY(__atomic_load_n(&(at).ky_word, __ATOMIC_ACQUIRE) == 0) ||                \
	 __extension__({                                                                           \
		 if (at##_learns) {                                                                \
			 const char **const kymo_i_te_k = &at##_keys[4];                           \
			 (void)kymo_i_te_k;                                                        \
			 kymo_i_learn_category(&at##_info, KYMO_I_TE_TEXT(cat));                   \
			 KYMO_I_WALK(KYMO_I_TE_PAIR_LEARN, __VA_ARGS__)                            \
		 }                                                                                 \
		 kymo_i_register(&(at));                                                           \
	 }))

struct kymo_i_te_words {
	uint64_t ky_at[KYMO_I_ITEMS_MAX + 1];
};
#ifdef __cplusplus
#define KYMO_I_TE_WORDS kymo_i_te_words
#else
#define KYMO_I_TE_WORDS (struct kymo_i_te_words)
#endif

/* All but the words is constant, so that all of this folds. */
KYMO_I_INLINE int kymo_i_te_event(struct kymo_i_site *ky_site, uint32_t ky_flags, uint64_t ky_types,
				  uint64_t ky_time_ns, uint64_t ky_tid, const char *ky_name,
				  uint64_t ky_id, uint32_t ky_args,
				  const struct kymo_i_te_words ky_words)
{
	uint64_t ky_values[KYMO_I_ITEMS_MAX];
	uint32_t ky_items = 0;
	ky_values[0] = 0;
	if (ky_flags & KYMO_SITE_TIME)
		ky_values[ky_items++] = ky_time_ns;
	if (ky_flags & KYMO_SITE_TID)
		ky_values[ky_items++] = ky_tid;
	if (ky_flags & KYMO_SITE_NAME)
		ky_values[ky_items++] = (uint64_t)(uintptr_t)ky_name;
	if (ky_flags & KYMO_SITE_ID)
		ky_values[ky_items++] = ky_id;
	for (uint32_t ky_i = 0; ky_i < ky_args; ky_i++)
		ky_values[ky_items++] = ky_words.ky_at[ky_i];
	return kymo_i_event(ky_site, ky_items, ky_types, ky_values);
}

/* One full expression: its temporaries, to which words point, live until the event is recorded. */
#define KYMO_I_TE_RECORD(recorded, at, name, time, tid, id, ...)                                   \
	const int recorded = kymo_i_te_event(                                                      \
		&(at), at##_flags, KYMO_I_TE_TYPES(at##_flags, __VA_ARGS__), KYMO_I_TE_NS(time),   \
		KYMO_I_TE_TID(tid), KYMO_I_TE_TEXT(name), KYMO_I_TE_ID_WORD(id),                   \
		KYMO_I_TE_COUNT(__VA_ARGS__),                                                      \
		KYMO_I_TE_WORDS{{KYMO_I_WALK(KYMO_I_TE_PAIR_WORD, __VA_ARGS__) 0}})

/* A whole trace point. "..." is any argument, then the pairs. */
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

/* Like KYMO_I_SCOPE: the trace point has the same name in all translation units. */
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
				(at).ky_site = &kymo_i_site;                                       \
		}                                                                                  \
	} while (0)

#define KYMO_I_TE_ENABLED(cat)                                                                     \
	(KYMO_I_STATIC(cat) && __extension__({                                                     \
		 KYMO_I_TE_SITE(kymo_i_site, KYMO_KIND_NONE, 0, 0, cat, "", 0);                    \
		 KYMO_I_MAYBE_ON(kymo_i_site) && KYMO_I_TE_READY(kymo_i_site, cat, 0);             \
	 }))

#define KYMO_I_TE_FLAG(cat)                                                                        \
	(__extension__({                                                                           \
		KYMO_I_TE_SITE(kymo_i_site, KYMO_KIND_NONE, 0, 0, cat, "", 0);                     \
		if (KYMO_I_MAYBE_ON(kymo_i_site))                                                  \
			(void)KYMO_I_TE_READY(kymo_i_site, cat, 0);                                \
		KYMO_I_LOAD(&kymo_i_site.ky_enabled);                                              \
	}))

/* The flow event that the flags ask for. */
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

#else /* KYMO_DISABLE: evaluate nothing, yet use all arguments, so that the compiler does not warn */

#define KYMO_I_TE_LOCAL(id) (id)
#define KYMO_I_TE_GLOBAL(id) (id)
#define KYMO_I_TE_WITH_SCOPE(scope, ...) KYMO_I_FIRST(__VA_ARGS__)
#define KYMO_I_TE_TEXT(text) (text)
#define KYMO_I_TE_US(time) (time)
#define KYMO_I_TE_ID_WORD(id) (id)
#define KYMO_I_TE_ID_FLAGS(id) 0

#ifdef __cplusplus
/* A branch never taken, because clang warns of constants that only a sizeof mentions. */
#define KYMO_I_TE_POINT(kind, flags, more, cat, name, time, tid, id, ...)                          \
	((void)(false && kymo_i_ignore(cat, name, time, tid, id, __VA_ARGS__)))
#define KYMO_I_TE_ADD(phase, flag, name, scope, id, bind, num, names, types, values, flags, time)  \
	((uint64_t)(false && kymo_i_ignore(phase, flag, name, scope, id, bind, num, names, types,  \
					   values, flags, time)))
#else
#define KYMO_I_TE_UNUSED(value) ((void)sizeof(((void)(value), 0)))
#define KYMO_I_TE_POINT(kind, flags, more, cat, name, time, tid, id, ...)                          \
	(KYMO_I_TE_UNUSED(name), KYMO_I_TE_UNUSED(time), KYMO_I_TE_UNUSED(tid),                    \
	 KYMO_I_TE_UNUSED(id) KYMO_I_WALK(KYMO_I_PAIR_UNUSED, __VA_ARGS__))
#define KYMO_I_TE_ADD(phase, flag, name, scope, id, bind, num, names, types, values, flags, time)  \
	(KYMO_I_TE_UNUSED(phase), KYMO_I_TE_UNUSED(flag), KYMO_I_TE_UNUSED(name),                  \
	 KYMO_I_TE_UNUSED(scope), KYMO_I_TE_UNUSED(id), KYMO_I_TE_UNUSED(bind),                    \
	 KYMO_I_TE_UNUSED(num), KYMO_I_TE_UNUSED(names), KYMO_I_TE_UNUSED(types),                  \
	 KYMO_I_TE_UNUSED(values), KYMO_I_TE_UNUSED(flags), KYMO_I_TE_UNUSED(time), (uint64_t)0)
#endif
#define KYMO_I_TE_SCOPE(cat, name, ...) KYMO_I_TE_POINT(0, 0, 0, cat, name, 0, 0, 0, __VA_ARGS__)
#define KYMO_I_TE_FLOW(cat, id, flow) KYMO_I_TE_POINT(0, 0, 0, cat, "", 0, 0, id, flow)
#define KYMO_I_TE_ENABLED(cat) 0
#define KYMO_I_TE_FLAG(cat) ((const unsigned char *)"")
#define KYMO_I_TE_IS_NEW(ret) ((void)(*(ret) = 0))

#endif /* KYMO_DISABLE */

/* Events with more than a name and pairs; the last argument before the pairs is in "...". */
#define KYMO_I_TE_PLAIN(kind, cat, ...)                                                            \
	KYMO_I_TE_POINT(kind, 0, 0, cat, KYMO_I_FIRST(__VA_ARGS__), 0, 0, 0, __VA_ARGS__)
#define KYMO_I_TE_SPAN(cat, ...) KYMO_I_TE_SCOPE(cat, KYMO_I_FIRST(__VA_ARGS__), __VA_ARGS__)
#define KYMO_I_TE_TIME(kind, cat, name, ...)                                                       \
	KYMO_I_TE_POINT(kind, KYMO_SITE_TIME, 0, cat, name, KYMO_I_FIRST(__VA_ARGS__), 0, 0,       \
			__VA_ARGS__)
#define KYMO_I_TE_ID(kind, cat, name, ...)                                                         \
	KYMO_I_TE_POINT(kind, KYMO_SITE_ID, KYMO_I_TE_ID_FLAGS(KYMO_I_FIRST(__VA_ARGS__)), cat,    \
			name, 0, 0, KYMO_I_FIRST(__VA_ARGS__), __VA_ARGS__)
#define KYMO_I_TE_ID_TIME(kind, cat, name, id, ...)                                                \
	KYMO_I_TE_POINT(kind, KYMO_SITE_TIME | KYMO_SITE_ID, KYMO_I_TE_ID_FLAGS(id), cat, name,    \
			KYMO_I_FIRST(__VA_ARGS__), 0, id, __VA_ARGS__)
#define KYMO_I_TE_ID_TID_TIME(kind, cat, name, id, tid, ...)                                       \
	KYMO_I_TE_POINT(kind, KYMO_SITE_TIME | KYMO_SITE_TID | KYMO_SITE_ID,                       \
			KYMO_I_TE_ID_FLAGS(id), cat, name, KYMO_I_FIRST(__VA_ARGS__), tid, id,     \
			__VA_ARGS__)
#define KYMO_I_TE_TID_TIME(kind, cat, name, tid, ...)                                              \
	KYMO_I_TE_POINT(kind, KYMO_SITE_TIME | KYMO_SITE_TID, 0, cat, name,                        \
			KYMO_I_FIRST(__VA_ARGS__), tid, 0, __VA_ARGS__)

/* The flag for an instant's scope; a scope that is no constant counts as the thread's. */
#define KYMO_I_TE_CONCERNS_IS(scope, whom)                                                         \
	(__builtin_constant_p(scope) && ((scope)&TRACE_EVENT_FLAG_SCOPE_MASK) == (whom))
#define KYMO_I_TE_CONCERNS(scope)                                                                  \
	((KYMO_I_TE_CONCERNS_IS(scope, TRACE_EVENT_SCOPE_GLOBAL) ? KYMO_SITE_GLOBAL : 0u) |        \
	 (KYMO_I_TE_CONCERNS_IS(scope, TRACE_EVENT_SCOPE_PROCESS) ? KYMO_SITE_PROCESS : 0u))
#define KYMO_I_TE_INSTANT(cat, name, ...)                                                          \
	KYMO_I_TE_POINT(KYMO_KIND_INSTANT, 0, KYMO_I_TE_CONCERNS(KYMO_I_FIRST(__VA_ARGS__)), cat,  \
			name, 0, 0, 0, __VA_ARGS__)
#define KYMO_I_TE_INSTANT_TIME(cat, name, scope, ...)                                              \
	KYMO_I_TE_POINT(KYMO_KIND_INSTANT, KYMO_SITE_TIME, KYMO_I_TE_CONCERNS(scope), cat, name,   \
			KYMO_I_FIRST(__VA_ARGS__), 0, 0, __VA_ARGS__)

/* A span, then the flow event that the flags ask for. */
#define KYMO_I_TE_FLOW_SPAN(cat, name, id, ...)                                                    \
	KYMO_I_TE_SCOPE(cat, name, __VA_ARGS__);                                                   \
	KYMO_I_TE_FLOW(cat, id, KYMO_I_FIRST(__VA_ARGS__))

/* Events with a step. */
#define KYMO_I_TE_ASYNC_STEP(cat, name, id, ...)                                                   \
	KYMO_I_TE_ID(KYMO_KIND_ASYNC_INSTANT, cat, name, id, "step", __VA_ARGS__)
#define KYMO_I_TE_FLOW_STEP(cat, name, id, ...)                                                    \
	KYMO_I_TE_ID(KYMO_KIND_FLOW_STEP, cat, name, id, "step", __VA_ARGS__)

/* TRACE_EVENT_END: an odd number of arguments begins with the category alone, an even one with a name. */
#define KYMO_I_TE_END_1(...)                                                                       \
	KYMO_I_TE_POINT(KYMO_KIND_END, 0, 0, KYMO_I_FIRST(__VA_ARGS__), "", 0, 0, 0, __VA_ARGS__)
#define KYMO_I_TE_END_2(...) KYMO_I_TE_PLAIN(KYMO_KIND_END, __VA_ARGS__)
#define KYMO_I_TE_PARITY(...)                                                                      \
	KYMO_I_64TH(__VA_ARGS__, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, \
		    1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2,  \
		    1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, )

#endif /* KYMO_TRACE_EVENT_IMPL_H */
