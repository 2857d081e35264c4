/* SPDX-License-Identifier: MIT */
/*
 * kymo_layout.h: a .kymo file, byte by byte; docs/formats/kymo.md says the same in words.
 *
 *   ┌──────┬────────┬──────┬──────┬────────┬──────┬─ … ─┬────────┬───────┬─────┐
 *   │ FILE │ DEFINE │ DATA │ DATA │ DEFINE │ DATA │     │ DEFINE │ INDEX │ END │
 *   └──────┴────────┴──────┴──────┴────────┴──────┴─ … ─┴────────┴───────┴─────┘
 *                                   only what is new       all of it again
 *
 * Every chunk is struct ky_kymo_chunk and a body. It has a checksum of its own head, so that a
 * reader that lost its place finds the next chunk by the magic, and one of its body, which is
 * compared when the body is used. A file may be cut off anywhere: it is whole up to the last whole
 * chunk.
 *
 * DATA is a batch of pieces of rings. Unpacked ("raw") it is, for each piece, struct ky_kymo_piece
 * and its words as they were in the ring (kymo.h). In the file it is that, or the columns of
 * kymo_pack.h; each section is one zstd frame where that is smaller. A DATA chunk needs nothing but
 * itself to be unpacked, and the definitions before it to be understood.
 *
 * A file of several sources (a capture of several processes) is the files of each, chunk by chunk as they come, told apart
 * by the chunk's source; places in INDEX and END are those of the file. Source 0 has the common parts: snapshots, notes, clocks. Its
 * FILE chunk asks for version 2, its END is the last chunk.
 *
 * A file of columns has no rings but a trace as the model has it: kymo_columns.h. Its FILE chunk asks for version 3.
 *
 * All numbers are little-endian. Everything is padded with zeros to 8 bytes. A struct that may grow
 * begins with its size; a reader takes what it knows and skips the rest. A chunk or record of a
 * kind that it does not know is skipped too. END never grows: it is the last KY_KYMO_END_BYTES of a
 * file.
 */
#ifndef KY_FORMATS_KYMO_KYMO_LAYOUT_H
#define KY_FORMATS_KYMO_KYMO_LAYOUT_H

#include <kymo/kymo.h>
#include <stddef.h>
#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file's structs are used in place");

#define KY_KYMO_MAGIC UINT64_C(0x1a0a0d6f6d796b89) /* 0x89 "kymo" CR LF 0x1a */
#define KY_KYMO_VERSION 1
#define KY_KYMO_VERSION_SOURCES 2 /* of a file of several sources */
#define KY_KYMO_VERSION_COLUMNS 3 /* of a file of columns: kymo_columns.h */
/* A body is at least raw / this: what a reader needs stays in proportion to the file. */
#define KY_KYMO_RATIO_MAX 256u
/* The same for definitions, which take more memory when read. */
#define KY_KYMO_DEFINE_RATIO_MAX 32u
/* Largest DATA, unpacked, that a reader must take. */
#define KY_KYMO_RAW_MAX (16u << 20)
#define KY_KYMO_SITES (1u << 22) /* an event's header has so many bits for its trace point */

#define KY_KYMO_PADDED(bytes) (((bytes) + 7) & ~(uint64_t)7)

enum ky_kymo_chunk_type {
	KY_KYMO_FILE = 1,
	KY_KYMO_DEFINE = 2,
	KY_KYMO_DATA = 3,
	KY_KYMO_INDEX = 4,
	KY_KYMO_END = 5,
	KY_KYMO_STREAM = 6,
	/* Of a file of columns. */
	KY_KYMO_SCHEMA = 7,
	KY_KYMO_COLUMN = 8,
	KY_KYMO_PLACES = 9,
};

struct ky_kymo_chunk {
	uint64_t magic;
	uint16_t head_bytes; /* of this struct; the body begins behind it */
	uint16_t type;       /* enum ky_kymo_chunk_type */
	uint32_t number;     /* of the chunk among its source's, from 0 */
	uint32_t body_bytes;
	uint32_t source;    /* whose chunk it is, in a file of several sources; else 0 */
	uint64_t body_hash; /* XXH64 of the body */
	uint64_t head_hash; /* XXH64 of the fields before it */
};

/* FILE: the first chunk. */
struct ky_kymo_head {
	uint32_t size;
	uint16_t version;
	uint16_t version_min; /* a reader must know this one */
	uint64_t ticks_per_s; /* rough, for information */
	uint64_t pad[2];
};

/* DEFINE: struct ky_kymo_define, then the records, compressed when stored_bytes is not bytes. */
enum { KY_KYMO_DEFINE_ALL = 1 }; /* flag: everything that was defined before, once more */

struct ky_kymo_define {
	uint32_t size;
	uint32_t flags;
	uint32_t bytes;
	uint32_t stored_bytes;
};

enum ky_kymo_record_kind {
	KY_KYMO_PROCESS = 1,
	KY_KYMO_THREAD = 2,
	KY_KYMO_CLOCK = 3,
	KY_KYMO_SITE = 4,
	KY_KYMO_SNAPSHOT = 5,
	KY_KYMO_NOTE = 6, /* a text alone */
	KY_KYMO_PROGRAM_END = 7,
	KY_KYMO_LOSS = 8, /* how much is missing that the pieces do not count, and (a text) why */
};

/* A record: this, a struct by its kind, then its texts one behind the other, without NUL. */
struct ky_kymo_record {
	uint32_t bytes; /* with this struct and the padding */
	uint16_t kind;
	uint16_t fixed_bytes; /* of the struct by its kind */
};

/* One for each process that has threads in the file; the last is the file's own. */
struct ky_kymo_process {
	int32_t pid;
	uint32_t name_bytes;
	uint32_t command_bytes;
	/* The layer of the source's drum, in the order in which their spans nest: 0 its own, 1 calls, 2 off CPU. */
	uint32_t layer;
};

/*
 * Found by tid; a later one of the same tid renames it. Threads of several processes may have the same tid: then
 * tid is a number that only tells them apart in this file, and shown_tid the real one.
 */
struct ky_kymo_thread {
	int32_t pid;
	int32_t tid;
	uint32_t name_bytes;
	int32_t shown_tid; /* 0: tid */
};

struct ky_kymo_clock {
	uint64_t ticks;
	uint64_t boottime_ns;
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
};

enum { KY_KYMO_CATEGORY, KY_KYMO_NAME, KY_KYMO_SOURCE, KY_KYMO_FUNCTION, KY_KYMO_KEYS };
#define KY_KYMO_SITE_TEXTS (KY_KYMO_KEYS + KYMO_ARGS_MAX)

struct ky_kymo_site {
	uint32_t site; /* as in the words of the events: header >> 42 */
	uint8_t kind;  /* enum kymo_kind */
	uint8_t flags; /* KYMO_SITE_ */
	uint8_t items;
	uint8_t args;
	uint32_t line;
	uint32_t pad;
	uint64_t types;                          /* four bits an item, the first lowest */
	uint32_t text_bytes[KY_KYMO_SITE_TEXTS]; /* category, name, file, function, keys */
};

/* A snapshot of a flight recorder: why this part of the time is in the file. Texts: trigger, reason, stack. */
struct ky_kymo_snapshot {
	uint64_t time_ns; /* CLOCK_BOOTTIME */
	uint64_t from_ns;
	uint64_t to_ns;
	int32_t pid;
	int32_t tid;
	uint64_t args[2];
	uint32_t args_count;
	uint32_t trigger_bytes;
	uint32_t reason_bytes;
	uint32_t stack_bytes;
	uint64_t noticed_ns; /* when the recorder saw that it was asked for; 0: not known */
};

/*
 * Of source 0: the program whose drum is that source ended, as its process did or at an execve; or one of its threads did.
 * A file of one source has the ends of its own threads, with source 0. Spans do not last longer.
 */
struct ky_kymo_program_end {
	uint64_t time_ns; /* CLOCK_BOOTTIME */
	uint32_t source;
	uint32_t tid; /* 0: the program */
};

struct ky_kymo_loss {
	uint64_t count;
	uint32_t what_bytes;
	uint32_t number; /* of the record among these: two may say the same */
};

/*
 * STREAM: struct ky_kymo_stream, then a part of something in another format, compressed when stored_bytes is not bytes. The
 * parts of a source, one behind the other, are the whole.
 */
enum ky_kymo_stream_kind {
	KY_KYMO_STREAM_FTRACE = 1,  /* struct ky_kymo_ftrace records: a copy of tracefs */
	KY_KYMO_STREAM_PERF = 2,    /* perf.data as it goes through a pipe */
	KY_KYMO_STREAM_SYMBOLS = 3, /* struct ky_kymo_symbol records */
};

struct ky_kymo_stream {
	uint32_t size;
	uint32_t kind; /* enum ky_kymo_stream_kind */
	uint32_t bytes;
	uint32_t stored_bytes;
};

/* A file of tracefs, or a page of a CPU's ring. Padded to 8 bytes. */
enum ky_kymo_ftrace_kind {
	KY_KYMO_FTRACE_FILE = 1, /* path in tracefs, then its content */
	KY_KYMO_FTRACE_PAGE = 2, /* content alone */
};
struct ky_kymo_ftrace {
	uint32_t bytes; /* with this struct, without the padding */
	uint16_t kind;  /* enum ky_kymo_ftrace_kind */
	uint16_t path_bytes;
	uint32_t cpu;
	uint32_t pad;
};

/*
 * Names for an address in a file: the function and the functions inlined there, the innermost first, one record each,
 * the last one without KY_KYMO_SYMBOL_INLINED. Texts: module (the path, as the mapping has it; "[kernel]"), build
 * id in hexadecimal, name (demangled), file. pid is not 0 for code that was made at run time: then address is
 * one of the process, else it is an offset in the file.
 */
enum { KY_KYMO_SYMBOL_INLINED = 1 };
struct ky_kymo_symbol {
	uint32_t bytes; /* with this struct and the padding */
	uint32_t flags;
	uint64_t address;
	int32_t pid;
	uint32_t line;
	uint16_t module_bytes;
	uint16_t build_id_bytes;
	uint16_t name_bytes;
	uint16_t file_bytes;
};

/* DATA: struct ky_kymo_data, its sections' sizes, the sections, padding. */
enum ky_kymo_form {
	KY_KYMO_RAW = 0,    /* one section: the pieces as they are */
	KY_KYMO_PACKED = 1, /* the columns of kymo_pack.h */
};

struct ky_kymo_data {
	uint32_t size;
	uint32_t form;      /* enum ky_kymo_form */
	uint32_t raw_bytes; /* unpacked */
	uint32_t pieces;
	uint32_t events;
	uint32_t sections;
	uint64_t lost;        /* sum of the pieces' */
	uint64_t first_ticks; /* of the earliest event or loss */
	uint64_t last_ticks;
};

struct ky_kymo_section {
	uint32_t bytes;
	uint32_t stored_bytes; /* less than bytes: it is a zstd frame; else equal */
};

/* A piece of a ring: whole events, in order. Its words follow. */
struct ky_kymo_piece {
	uint32_t head_bytes; /* of this struct */
	uint32_t words;
	uint32_t ring;
	uint32_t tid;
	uint32_t level;  /* above 0: of signal handlers that interrupted an event */
	uint32_t from;   /* where in the block the piece begins, in words */
	uint64_t number; /* of the block in its ring */
	uint64_t ticks;  /* of its first word; without words: about when the loss was noticed */
	uint64_t lost;   /* events of the ring that are missing right before it */
};

/* INDEX: struct ky_kymo_index, an entry for each DATA chunk, then all entries' thread ids (u32). */
struct ky_kymo_index {
	uint32_t size;
	uint32_t entry_bytes;
	uint64_t entries;
	uint64_t threads;    /* ids in the list */
	uint64_t events;     /* in all */
	uint64_t lost;       /* in all: also what never got into a ring */
	uint64_t lost_rings; /* the part of it that the pieces count */
	uint64_t damaged;    /* words that were no events, left out */
};

struct ky_kymo_entry {
	uint64_t at; /* of the chunk in the file */
	uint64_t first_ticks;
	uint64_t last_ticks;
	uint64_t first_ns; /* CLOCK_BOOTTIME */
	uint64_t last_ns;
	uint64_t lost;
	uint32_t events;
	uint32_t pieces;
	uint32_t raw_bytes;
	uint32_t chunk_bytes; /* head and body */
	uint32_t threads_at;  /* its first in the list of thread ids */
	uint32_t threads;
};

/* END: where the way in is. */
struct ky_kymo_end {
	uint32_t size;
	uint32_t pad;
	uint64_t define_at; /* DEFINE with everything */
	uint64_t index_at;
};
#define KY_KYMO_END_BYTES (sizeof(struct ky_kymo_chunk) + sizeof(struct ky_kymo_end))

_Static_assert(sizeof(struct ky_kymo_chunk) == 40, "layout");
_Static_assert(sizeof(struct ky_kymo_head) == 32, "layout");
_Static_assert(sizeof(struct ky_kymo_define) == 16, "layout");
_Static_assert(sizeof(struct ky_kymo_record) == 8, "layout");
_Static_assert(sizeof(struct ky_kymo_process) == 16, "layout");
_Static_assert(sizeof(struct ky_kymo_thread) == 16, "layout");
_Static_assert(sizeof(struct ky_kymo_clock) == 32, "layout");
_Static_assert(sizeof(struct ky_kymo_site) == 72, "layout");
_Static_assert(sizeof(struct ky_kymo_snapshot) == 72, "layout");
_Static_assert(sizeof(struct ky_kymo_program_end) == 16, "layout");
_Static_assert(sizeof(struct ky_kymo_loss) == 16, "layout");
_Static_assert(sizeof(struct ky_kymo_stream) == 16, "layout");
_Static_assert(sizeof(struct ky_kymo_ftrace) == 16, "layout");
_Static_assert(sizeof(struct ky_kymo_symbol) == 32, "layout");
_Static_assert(sizeof(struct ky_kymo_data) == 48, "layout");
_Static_assert(sizeof(struct ky_kymo_section) == 8, "layout");
_Static_assert(sizeof(struct ky_kymo_piece) == 48, "layout");
_Static_assert(sizeof(struct ky_kymo_index) == 56, "layout");
_Static_assert(sizeof(struct ky_kymo_entry) == 72, "layout");
_Static_assert(KY_KYMO_END_BYTES == 64, "layout");

#endif
