/* SPDX-License-Identifier: MIT */
/*
 * layout.h: the drum, byte by byte. Other processes read it and may write to the fields marked (outside). A reader
 * trusts nothing in it.
 *
 *   0                 struct ky_drum_header, one page
 *   clock_at          struct ky_drum_clock: readings of the counter and of the system's clocks
 *   categories_at     struct ky_drum_category[]: the byte that a trace point tests is in here
 *   buckets_at        u32[]: hash table over the heap's records
 *   rings_at          struct ky_drum_ring[]: the directory of rings
 *   heap_at           append-only records: strings and trace points, 16-byte aligned
 *   space_at          the rings' memory, page-aligned
 *
 *   A ring is a power-of-two number of blocks. Block number n is at position n modulo that number.
 *   The owner overwrites the oldest block; it never looks at readers.
 *
 *      block n-3     block n-2     block n-1     block n (being written)
 *     ┌───┬───────┐ ┌───┬───────┐ ┌───┬───────┐ ┌───┬─────────────┐
 *     │hdr│events │ │hdr│events │ │hdr│events0│ │hdr│events000000…│
 *     └───┴───────┘ └───┴───────┘ └───┴───────┘ └───┴─────────────┘
 *      The header names the thread that wrote the block, when the block began and how many events the ring had before it:
 *   a block decodes on its own, and a gap between two blocks is an exact number of events. In a drum that kymo made
 *   the writers may be of several processes. Events: see kymo_impl.h. Zero words follow a block's last event.
 *
 * A reader copies a block while the owner may overwrite it: read seq (acquire); it must be the number wanted plus one;
 * copy; fence; read seq again: if it is unchanged, the copy is good. The owner sets seq to 0 before it touches
 * anything else in the block.
 *
 * Invariants of the drum:
 *   - The parts do not overlap, and come in the order above. Places and sizes never change after magic is set.
 *   - heap_used and rings_used only grow; space_used too, unless the disk is full. heap_used <= heap_bytes,
 *     space_used <= budget_bytes <= space_bytes. names_used <= heap_bytes / KY_NAMES_PART.
 *   - A heap record is complete before its number appears anywhere, and never changes afterwards. Strings and trace
 *     points are unique by content, but for two copies that lost a race (heap.c).
 *   - A category's entry never moves or changes its name. Free entries come after all others.
 *   - A ring's entry is complete before its bytes are not 0, and its place and size never change afterwards.
 *
 * Every struct has a fixed size, checked below. A change of the layout needs a new version.
 */
#ifndef KY_CORE_LAYOUT_H
#define KY_CORE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define KY_DRUM_MAGIC 0x6d7572646f6d796bu /* "kymodrum" */
#define KY_DRUM_VERSION 1
#define KY_DRUM_NAME "kymo-drum"

#define KY_BLOCK_BYTES 4096u
#define KY_BLOCK_WORDS (KY_BLOCK_BYTES / 8)
#define KY_BLOCK_HEAD_WORDS 8u
/* The largest event's items: a block holds a control word, the event's header and these. */
#define KY_EVENT_WORDS_MAX (KY_BLOCK_WORDS - KY_BLOCK_HEAD_WORDS - 2)
#define KY_RING_BLOCKS_MIN 4u
#define KY_RING_BYTES_MIN (KY_RING_BLOCKS_MIN * KY_BLOCK_BYTES)
#define KY_HEAP_UNIT 16u
#define KY_RECORDERS_MAX 48u
/* The largest of these that readers accept. A trace point's number has 22 bits. */
#define KY_RINGS_MAX (1u << 16)
#define KY_CATEGORIES_MAX (1u << 16)
#define KY_HEAP_END_MAX (KY_HEAP_UNIT << 22)
/* Names of threads take at most this part of the heap, so that trace points have room. */
#define KY_NAMES_PART 4u
#define KY_TEXT_BYTES_MAX 4096u

/* An event's header word; kymo_impl.h has the rest of it. */
#define KY_WORD_SITE_SHIFT 42
#define KY_WORD_LENGTH(w) ((uint32_t)((w) >> 33) & 0x1ffu)
#define KY_WORD_IS_END(w) (((w) >> 32 & 1) != 0)
#define KY_WORD_LOW(w) ((uint32_t)(w))
#define KY_WORD_SITE(w) ((uint32_t)((w) >> KY_WORD_SITE_SHIFT))
/* Site numbers below this are control words: no heap record is in the header page. */
#define KY_CONTROL_MAX 256u
#define KY_CONTROL_HIGH 1u /* the low half holds the counter's high half from here on */

/*
 * A recorder that wants categories on: sessions of the process in the first slots, recorders outside after them.
 *
 * Invariants: a slot is in use while its bit in recorders_taken is set, and only its owner writes to it then. While
 * pattern is 0 no category's state has the recorder's bit, but for a moment in heap.c's apply().
 */
struct ky_drum_recorder {
	uint32_t pattern; /* string in the heap: category globs; 0 is free (outside) */
	uint32_t pid;     /* of the recorder (outside) */
	uint64_t
		started_ns; /* when that process began: a later process may have its pid (outside) */
	/* Where pid and started_ns hold: in other namespaces they have no meaning (outside). */
	uint64_t namespaces;
	uint64_t pad;
};
#define KY_RECORDERS_INSIDE 32u /* slots below are for sessions of the process itself */
#define KY_RECORDER_ENV 31u     /* KYMO_CATEGORIES */

enum ky_env_state {
	KY_ENV_NONE,    /* no copy has begun a session yet */
	KY_ENV_RUNNING, /* one has, or has failed */
	KY_ENV_LEFT,    /* it was unloaded: the next one goes on */
};

/*
 * A session that is to miss no event: a writer that would overwrite a block which it has not read takes a larger ring
 * while the budget lasts, and then waits.
 */
struct ky_drum_reader {
	uint32_t state;    /* enum ky_reader_state (outside) */
	uint32_t pid;      /* whose session it is (outside) */
	uint64_t stall_ns; /* how long an event waits for it at most; 0: not at all (outside) */
};
enum ky_reader_state { KY_READER_NONE, KY_READER_TAKEN, KY_READER_ACTIVE };
#define KY_READERS_MAX 2u

/* What made the drum. A process may have one of each: their spans are of the same threads and nest in this order. */
enum ky_drum_layer {
	KY_DRUM_OWN,       /* the program's own recorder; after exec another, with another image */
	KY_DRUM_FUNCTIONS, /* kymo, for its function calls */
	KY_DRUM_SWITCHES,  /* kymo: when its threads were off the CPU */
};

struct ky_drum_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint64_t drum_bytes;
	uint32_t pid;
	uint32_t tick_source; /* enum ky_tick_source (ticks.h) */
	uint64_t made_boottime_ns;
	uint64_t clock_at;
	uint64_t categories_at;
	uint64_t buckets_at;
	uint64_t rings_at;
	uint64_t heap_at;
	uint64_t space_at;
	uint32_t clock_max; /* readings */
	uint32_t categories_max;
	uint32_t buckets_count; /* a power of two */
	uint32_t rings_max;
	uint64_t heap_bytes;
	uint64_t space_bytes;
	uint64_t image; /* a random number of the program that made it; each exec draws another */
	uint64_t layer; /* enum ky_drum_layer */

	uint64_t heap_used;    /* bytes from heap_at */
	uint64_t space_used;   /* bytes from space_at */
	uint64_t budget_bytes; /* space_used stays below this */
	uint64_t ring_bytes;   /* of a new ring */
	uint32_t rings_used;
	uint32_t process_name;  /* string in the heap */
	uint32_t overflow_site; /* used by trace points that found no room in the heap */
	uint32_t exited;        /* the process ended by exit() */
	uint64_t room_changes;  /* how often a ring was released or the budget grew */
	uint64_t names_used;    /* bytes of the heap that threads' names take */

	/* Losses other than events overwritten in the rings. */
	uint64_t lost_ringless; /* events of threads that got no ring */
	uint64_t lost_nested;   /* events in signal handlers nested too deep */
	uint64_t refused_sites; /* trace points without room: their events have no name */
	uint64_t refused_strings;
	uint64_t refused_categories; /* trace points that stay off */
	uint64_t lost_unfinished;    /* events that their thread left in the middle: siglongjmp */
	uint64_t refused_names;      /* names of threads without room: they have none */
	uint64_t stalled;            /* events that waited for a session, at the start of a block */

	uint64_t snapshots;       /* how often kymo_snapshot() was called */
	uint64_t mark_ticks;      /* of the last kymo_mark_start(); 0 before the first */
	uint64_t recorders_taken; /* a bit for each slot in use (outside) */
	/*
	 * KYMO_TRACE's session, of whichever copy of the library in the process came first. Read by the process alone. left_
	 * is what the next one needs when that copy is unloaded.
	 */
	uint32_t env_state;     /* enum ky_env_state */
	uint32_t reported;      /* notice.h: a bit for each variable that was complained of */
	uint64_t left_identity; /* of its file */
	uint64_t pad0;
	uint32_t left_rotation; /* files of ${rotation} */
	uint32_t left_files;    /* files in all */
	uint64_t stalled_ns;    /* how long all together */
	struct ky_drum_recorder recorders[KY_RECORDERS_MAX];
	struct ky_drum_reader readers[KY_READERS_MAX];
	/*
	 * uint64_t[KY_READERS_MAX][rings_max], after the directory of rings: how many blocks of each ring a reader has read
	 * (outside).
	 */
	uint64_t reads_at;
	uint64_t left_losses
		[8]; /* the losses above by cause (losses.h), as far as it has reported them */
};
#define KY_DRUM_HEADER_BYTES 4096u

struct ky_drum_reading {
	uint64_t ticks;
	uint64_t boottime_ns;
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
};

/*
 * Invariants: count <= clock_max. ticks of the first count readings strictly increase, boottime_ns never decreases.
 * A reading whose ticks are 0 is being written. Only the thread that holds lock writes here.
 */
struct ky_drum_clock {
	uint32_t seq;  /* odd while readings are being moved */
	uint32_t lock; /* not 0 while a thread of the process writes here: which */
	uint32_t count;
	uint32_t pad1;
	uint64_t frame;       /* that thread's stack pointer */
	uint64_t every_ticks; /* how often the clocks are read even when no session runs */
	struct ky_drum_reading readings[];
};

/*
 * state: bits 0..7 are the byte that trace points test. Bit 8 + i: recorder i wants the category (outside: set and
 * clear with compare-and-swap on the whole word).
 *
 * Invariant: the byte is 1 if any other bit is set, else 0.
 */
struct ky_drum_category {
	uint64_t state;
	uint32_t name; /* string in the heap; 0 is a free entry */
	uint32_t pad;
};

/*
 * Invariants: bytes is a power of two, at least KY_RING_BYTES_MIN; at and at + bytes are within the rings' space, and
 * no two rings overlap. Only the owner writes to the ring and its entry; a free ring is taken by a compare-and-swap of
 * owner from 0, a dead thread's from its id. head only grows. The newest blocks, head - 1 and down, are whole.
 */
struct ky_drum_ring {
	uint64_t at;     /* from the beginning of the drum */
	uint64_t bytes;  /* 0: the entry is not complete */
	uint64_t head;   /* blocks begun so far; the newest is number head - 1 */
	uint32_t owner;  /* thread id, 0 when free */
	uint32_t level;  /* 0: the thread itself; else signal handlers that interrupted an event */
	uint64_t events; /* written so far; right only while owner is 0 */
	uint64_t released_ticks; /* by the last owner, with KY_RING_MOVED */
	uint64_t left_events;    /* stream_place.h: how far KYMO_TRACE's session came */
	uint64_t left_place;
};

/* In released_ticks: the thread goes on in another ring. Else it ended, or its process did. */
#define KY_RING_MOVED UINT64_C(1)

/*
 * Invariants, while seq is not 0: it is the block's number + 1; words hold whole events from the first on, then zeros;
 * events_before of a block plus its events are events_before of the next one of the ring.
 */
struct ky_drum_block {
	uint64_t seq;           /* block number + 1; 0 while it is being begun */
	uint64_t events_before; /* in this ring, ever */
	uint64_t ticks;         /* when it began; its high half holds until a control word */
	uint32_t tid;
	uint32_t name; /* the thread's, a string in the heap; KY_NAME_SAME */
	uint32_t level;
	uint32_t pid; /* of a forked child that writes into its parent's drum; 0: the drum's own */
	uint64_t left_ticks; /* of an owner's first block: released_ticks of the owner before */
	uint64_t pad2[2];
	uint64_t words[KY_BLOCK_WORDS - KY_BLOCK_HEAD_WORDS];
};

/* Count the events ever written to a ring, by its newest block. */
static inline uint64_t ky_drum_block_events(const struct ky_drum_block *block)
{
	uint64_t events = __atomic_load_n(&block->events_before, __ATOMIC_RELAXED);
	for (uint32_t at = 0; at < KY_BLOCK_WORDS - KY_BLOCK_HEAD_WORDS;) {
		/* Pairs with the release store in ky_ring_commit(). */
		const uint64_t word = __atomic_load_n(&block->words[at], __ATOMIC_ACQUIRE);
		if (word == 0)
			break;
		events += KY_WORD_SITE(word) >= KY_CONTROL_MAX;
		at += 1 + KY_WORD_LENGTH(word);
	}
	return events;
}

/* As name: a thread that records after its end, which the recorder has forgotten, has the name that it had. */
#define KY_NAME_SAME UINT32_MAX

/* Set in the pid of a process in another pid namespace: no process here has such a pid. */
#define KY_PID_APART (1u << 30)

enum ky_heap_kind { KY_HEAP_STRING = 1, KY_HEAP_SITE = 2 };

/* A record's number is its offset from the drum's beginning in units of KY_HEAP_UNIT. */
struct ky_heap_record {
	uint16_t kind; /* enum ky_heap_kind */
	uint16_t pad;
	uint32_t bytes; /* after this header */
	uint32_t hash;
	uint32_t next; /* in the hash chain, 0 ends it */
};

/* Body of a KY_HEAP_SITE. Strings are records; 0 is the empty string. */
struct ky_heap_site {
	uint8_t kind; /* enum kymo_kind */
	uint8_t flags;
	uint8_t items;
	uint8_t args;
	uint32_t line;
	uint64_t types;
	uint32_t category; /* index */
	uint32_t name;
	uint32_t file;
	uint32_t function;
	uint32_t keys[8];
};

_Static_assert(sizeof(struct ky_drum_recorder) == 32, "layout");
_Static_assert(offsetof(struct ky_drum_header, heap_used) == 136, "layout");
_Static_assert(offsetof(struct ky_drum_header, lost_ringless) == 200, "layout");
_Static_assert(offsetof(struct ky_drum_header, snapshots) == 264, "layout");
_Static_assert(offsetof(struct ky_drum_header, recorders) == 328, "layout");
_Static_assert(sizeof(struct ky_drum_reader) == 16, "layout");
_Static_assert(offsetof(struct ky_drum_header, readers) == 1864, "layout");
_Static_assert(sizeof(struct ky_drum_header) <= KY_DRUM_HEADER_BYTES, "layout");
_Static_assert(KY_DRUM_HEADER_BYTES / KY_HEAP_UNIT >= KY_CONTROL_MAX, "layout");
_Static_assert(sizeof(struct ky_drum_reading) == 32, "layout");
_Static_assert(offsetof(struct ky_drum_clock, readings) == 32, "layout");
_Static_assert(sizeof(struct ky_drum_category) == 16, "layout");
_Static_assert(sizeof(struct ky_drum_ring) == 64, "layout");
_Static_assert(offsetof(struct ky_drum_block, words) == KY_BLOCK_HEAD_WORDS * 8, "layout");
_Static_assert(sizeof(struct ky_drum_block) == KY_BLOCK_BYTES, "layout");
_Static_assert(sizeof(struct ky_heap_record) == KY_HEAP_UNIT, "layout");
_Static_assert(sizeof(struct ky_heap_site) == 64, "layout");

/* Return the size of rings that a reader may ask for: one thread leaves half to the others. A size is a power of two. */
static inline uint64_t ky_ring_bytes_asked(uint64_t ring_bytes, uint64_t space_bytes)
{
	const uint64_t most = UINT64_C(1) << (63 - __builtin_clzll(space_bytes / 2 | 1));
	return ring_bytes < most ? ring_bytes : most;
}

#endif
