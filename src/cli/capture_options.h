/* SPDX-License-Identifier: MIT */
/*
 * capture_options.h: the options that run, attach and record share, and what the user said with
 * them.
 */
#ifndef KY_CLI_CAPTURE_OPTIONS_H
#define KY_CLI_CAPTURE_OPTIONS_H

#include "capture/capture.h"

struct ky_capture_command {
	struct ky_capture_options capture;
	struct ky_functrace_options functions; /* when capture.functions points to it */
	const char
		*functions_only; /* an option that was given and is for --functions; NULL: none */
	const char *output;      /* -o; NULL: the default */
	const char *format;
	bool quiet, json, follow;
	bool progress; /* a line while it runs, also where the program has the terminal */
	bool no_kernel;
	bool rotate;
	bool output_is_file;  /* once it is known: and not standard output */
	const char **targets; /* -p, as given */
	uint32_t targets_count;
	struct ky_trigger *triggers;
	char **kernel;
};

/* All of it but the verb's own, for the help. */
#define KY_CAPTURE_OPTIONS_HELP                                                                    \
	"what is recorded\n"                                                                       \
	"      --categories LIST  categories of trace points: globs, '-' before one excludes it "  \
	"(all)\n"                                                                                  \
	"      --kernel[=EVENTS]  events of the kernel: sched (as it is), syscalls, print, "       \
	"SYSTEM:EVENT,\n"                                                                          \
	"                         SYSTEM, globs of these; a list\n"                                \
	"      --sample HZ        call stacks, so many a second\n"                                 \
	"      --buffer SIZE      at least so large a ring for each new thread (16M)\n"            \
	"      --kernel-buffer SIZE\n"                                                             \
	"                         of the kernel's ring for each CPU (4M)\n"                        \
	"\n"                                                                                       \
	"when: everything, or with a trigger only what led up to it\n"                             \
	"      --trigger WHAT     may be given several times: exit, crash, interrupt (Ctrl-C), "   \
	"api\n"                                                                                    \
	"                         (kymo_snapshot()), signal:USR1, symbol:NAME, line:FILE:LINE,\n"  \
	"                         'span:CAT/NAME>5ms', 'gap:CAT/NAME>20ms', "                      \
	"'counter:CAT/NAME>100'.\n"                                                                \
	"                         symbol:? asks for it in the terminal\n"                          \
	"      --before TIME      how far a snapshot reaches back (10ms)\n"                        \
	"      --after TIME       and how far on (0)\n"                                            \
	"      --snapshots N      ends after so many\n"                                            \
	"      --cooldown TIME    none so soon after another\n"                                    \
	"      --engine NAME      of symbol: and line:, uprobe or breakpoint (what is allowed)\n"  \
	"      --duration TIME    ends after that\n"                                               \
	"\n"                                                                                       \
	"where to\n"                                                                               \
	"  -o, --output FILE      the file: .kymo, .json, .pftrace, .fxt (also .gz, .zst). "       \
	"Without "                                                                                 \
	"it\n"                                                                                     \
	"                         trace.kymo, and one that is there becomes trace.kymo.old. '-' "  \
	"is\n"                                                                                     \
	"                         standard output, as .kymo\n"                                     \
	"      --format NAME      its format, whatever its name: kymo, json, pftrace, fxt\n"       \
	"      --max-size SIZE    ends when the file is so large; with --rotate the next is "      \
	"begun\n"                                                                                  \
	"      --rotate N         keeps the last N files (0: all); FILE may have ${rotation} in "  \
	"it\n"                                                                                     \
	"  -q, --quiet            no summary, no progress line\n"                                  \
	"      --json             the summary as JSON\n"                                           \
	"      --help             this text\n"

/* Of run and attach. */
#define KY_CAPTURE_FUNCTIONS_HELP                                                                  \
	"calls of functions, of programs as they are\n"                                            \
	"      --functions[=LIST] every call of every function, or of those in the list: globs, "  \
	"'-' "                                                                                     \
	"before\n"                                                                                 \
	"                         one excludes it, module:GLOB (the program or a library), "       \
	"file:GLOB\n"                                                                              \
	"                         (source file)\n"                                                 \
	"      --min-size SIZE    only functions of at least so many bytes of code\n"              \
	"      --entry-only       when they are called, not how long they take: half the cost\n"   \
	"      --hot N            a function that is called more than N times a second is left "   \
	"alone\n"                                                                                  \
	"                         from then on (5000000; 0: never)\n"                              \
	"      --engine NAME      pt (Intel's), nops (programs compiled for it), patch, sample "   \
	"(call\n"                                                                                  \
	"                         stacks); without it the first that can be had\n"                 \
	"\n"

/*
 * Reads the options; optind is the first argument then. in_order: the first argument ends them.
 * False: used wrongly, and said.
 */
bool ky_capture_options_read(struct ky_capture_command *command, int argc, char **argv,
			     bool in_order);
/* One more name for kernel events, which may be a list. */
void ky_capture_options_kernel(struct ky_capture_command *command, const char *list);
void ky_capture_options_free(struct ky_capture_command *command);

/* "64k", "10M", "2G", "1000": false when it is none. */
bool ky_capture_parse_bytes(const char *text, uint64_t *bytes);

#endif
