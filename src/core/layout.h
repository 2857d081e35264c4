/* SPDX-License-Identifier: MIT */
/*
 * layout.h: the drum, byte by byte. Other processes read it and may write to the fields marked
 * (outside); everything in it is untrusted to whoever reads it.
 *
 *   0                 struct ky_drum_header, one page
 *   clock_at          struct ky_drum_clock and its samples: counter against the system's clocks
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
 *   The header says who wrote the block, when it began and how many events the ring had before it: a
 *   block decodes on its own, and a gap between two blocks is an exact number of events. In a drum that
 *   kymo made the writers may be of several processes.
 *   Events: see kymo.h. After a block's last event come zero words.
 *
 * How a reader copies a block while the owner may overwrite it: read seq (acquire); it must be the
 * number wanted plus one; copy; fence; read seq again: unchanged means that the copy is good. The
 * owner sets seq to 0 before it touches anything else in the block.
 *
 * Invariants: header.heap_used, space_used and rings_used only grow. A heap record is complete before
 * its offset appears anywhere. A category's entry never moves. A ring's entry is complete before its
 * bytes field is non-zero. Strings and trace points are unique by content.
 *
 * Every struct has a fixed size, checked below; version changes when anything does.
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
/* The largest event's items: a block holds its header, a control word and the event. */
#define KY_EVENT_WORDS_MAX (KY_BLOCK_WORDS - KY_BLOCK_HEAD_WORDS - 2)
#define KY_RING_BLOCKS_MIN 4u
#define KY_RING_BYTES_MIN (KY_RING_BLOCKS_MIN * KY_BLOCK_BYTES)
#define KY_HEAP_UNIT 16u
#define KY_RECORDERS_MAX 48u
/* What no drum exceeds: readers refuse more. A trace point's number has 22 bits. */
#define KY_RINGS_MAX (1u << 16)
#define KY_CATEGORIES_MAX (1u << 16)
#define KY_HEAP_END_MAX (KY_HEAP_UNIT << 22)
#define KY_TEXT_BYTES_MAX 4096u

/* An event's header word, beside what kymo.h defines. */
#define KY_WORD_SITE_SHIFT 42
#define KY_WORD_LENGTH(w) ((uint32_t)((w) >> 33) & 0x1ffu)
#define KY_WORD_IS_END(w) (((w) >> 32 & 1) != 0)
#define KY_WORD_LOW(w) ((uint32_t)(w))
#define KY_WORD_SITE(w) ((uint32_t)((w) >> KY_WORD_SITE_SHIFT))
/* Site numbers below this are not offsets (the header page is there) but control words. */
#define KY_CONTROL_MAX 256u
#define KY_CONTROL_HIGH 1u /* the low half holds the counter's high half from here on */

/* Somebody who wants categories on: sessions of the process first, recorders outside after them. */
struct ky_drum_recorder {
	uint32_t pattern;    /* string in the heap: category globs; 0 is free (outside) */
	uint32_t pid;        /* of the recorder (outside) */
	uint64_t started_ns; /* when that process began, to tell a reused pid (outside) */
	uint64_t
		namespaces; /* where pid and started_ns hold: another's are not ours to judge (outside) */
	uint64_t pad;
};
#define KY_RECORDERS_INSIDE 32u /* slots below are for sessions of the process itself */
#define KY_RECORDER_ENV 31u     /* KYMO_CATEGORIES */

/* Whose drum it is: several of one process are of the same threads, and their spans nest in this order. */
enum ky_drum_layer {
	KY_DRUM_OWN,       /* the program's own recorder's; another after exec, told by its image */
	KY_DRUM_FUNCTIONS, /* made by kymo for its function calls: stays beside the program's own */
	KY_DRUM_SWITCHES,  /* made by kymo: when its threads were off the CPU */
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
	uint32_t clock_max; /* samples */
	uint32_t categories_max;
	uint32_t buckets_count; /* a power of two */
	uint32_t rings_max;
	uint64_t heap_bytes;
	uint64_t space_bytes;
	uint64_t image; /* of the program that made it, drawn anew by each exec */
	uint64_t layer; /* enum ky_drum_layer */

	uint64_t heap_used;    /* bytes from heap_at */
	uint64_t space_used;   /* bytes from space_at */
	uint64_t budget_bytes; /* space_used stays below this */
	uint64_t ring_bytes;   /* of a new ring */
	uint32_t rings_used;
	uint32_t process_name;  /* string in the heap */
	uint32_t overflow_site; /* stands for trace points that found no room in the heap */
	uint32_t exited;        /* the process ended in order */
	uint64_t pad1[2];

	/* What did not make it, beside what is overwritten in the rings. */
	uint64_t lost_ringless; /* events of threads that got no ring */
	uint64_t lost_nested;   /* events in signal handlers nested too deep */
	uint64_t refused_sites; /* trace points without room: their events have no name */
	uint64_t refused_strings;
	uint64_t refused_categories; /* trace points that stay off */
	uint64_t pad2[3];

	uint64_t snapshots;       /* how often kymo_snapshot() was called */
	uint64_t mark_ticks;      /* of the last kymo_mark_start(), 0 is none */
	uint64_t recorders_taken; /* a bit for each slot in use (outside) */
	uint64_t pad3[5];
	struct ky_drum_recorder recorders[KY_RECORDERS_MAX];
};
#define KY_DRUM_HEADER_BYTES 4096u

struct ky_drum_reading {
	uint64_t ticks;
	uint64_t boottime_ns;
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
};

struct ky_drum_clock {
	uint32_t seq;  /* odd while the samples are being moved */
	uint32_t lock; /* the process's own */
	uint32_t count;
	uint32_t pad[5];
	struct ky_drum_reading readings[];
};

/*
 * state: bits 0..7 are the byte that trace points test: 1 when any of the others is set. Bit 8 + i:
 * recorder i wants it (outside: set and clear with compare-and-swap on the whole word).
 */
struct ky_drum_category {
	uint64_t state;
	uint32_t name; /* string in the heap; 0 is a free entry */
	uint32_t pad;
};

struct ky_drum_ring {
	uint64_t at;     /* from the beginning of the drum */
	uint64_t bytes;  /* 0: the entry is not complete */
	uint64_t head;   /* blocks begun so far; the newest is number head - 1 */
	uint32_t owner;  /* thread id, 0 when free */
	uint32_t level;  /* 0: the thread itself; else signal handlers that interrupted an event */
	uint64_t events; /* written so far; true only while there is no owner */
	uint64_t released_ticks;
	uint64_t pad[2];
};

struct ky_drum_block {
	uint64_t seq;           /* block number + 1; 0 while it is being begun */
	uint64_t events_before; /* in this ring, ever */
	uint64_t ticks;         /* when it began; its high half holds until a control word */
	uint32_t tid;
	uint32_t name; /* the thread's, a string in the heap */
	uint32_t level;
	uint32_t
		pid; /* 0: the drum's own; else a child's that it forked, which writes into its parent's drum */
	uint64_t pad2[3];
	uint64_t words[KY_BLOCK_WORDS - KY_BLOCK_HEAD_WORDS];
};

/* Set in the number of a process of another pid namespace: no process here has that number. */
#define KY_PID_APART (1u << 30)

enum ky_heap_kind { KY_HEAP_STRING = 1, KY_HEAP_SITE = 2 };

/* Records are named by their offset from the drum's beginning in units of KY_HEAP_UNIT. */
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

#endif
