#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mistakes.py INCLUDE: mistakes in the use of the macros are one readable line, and good uses are silent.

Compiles small sources with gcc and clang, in C11, C++11, C++17 and C++20. A mistake must be rejected with one error
whose text is given here, in few lines in all. quiet.c must compile without a word, whatever warnings are on and
whatever short names the program's own macros have.
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys

# clang shows three lines for each macro on the way, of six at most.
LINES_MAX = {"gcc": 12, "g++": 12, "clang": 30, "clang++": 30}
HERE = os.path.dirname(os.path.abspath(__file__))

TOO_MANY = "kymo: at most 8 key and value pairs"
NO_VALUE = "kymo: a key has no value: give pairs of a key and a value"
NAME = "kymo: the name must be a string literal: use KYMO_%s_DYN"
CATEGORY = "kymo: the category must be a string literal"
KEY = "kymo: a key must be a string literal"
VALUE = "kymo: a value of this type cannot be recorded: give a number, a bool, an enum, a pointer or a"


def pairs(count):
    return "".join(', "k%d", %d' % (i, i) for i in range(count))


# What the body of a function is, and the error that must come of it.
MISTAKES = [
    ('KYMO_SCOPE("net", "recv"%s);' % pairs(9), TOO_MANY),
    ('KYMO_SCOPE("net", "recv"%s);' % pairs(12), TOO_MANY),
    ('KYMO_INSTANT("net", "recv"%s);' % pairs(13), TOO_MANY),
    ('KYMO_INSTANT("net", "recv"%s);' % pairs(25), TOO_MANY),
    ('KYMO_BEGIN_DYN("net", text%s);' % pairs(9), TOO_MANY),
    ('KYMO_ASYNC_BEGIN_DYN("net", text, 1%s);' % pairs(9), TOO_MANY),
    ('KYMO_PRINT("net", "%d%d%d%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6, 7, 8, 9);', "kymo: at most 8 values"),
    ('TRACE_EVENT_BEGIN2("net", "recv"%s);' % pairs(9), TOO_MANY),
    ('KYMO_SCOPE("net", "recv", "bytes");', NO_VALUE),
    ('KYMO_INSTANT("net", "recv", "bytes", 1, "peer");', NO_VALUE),
    ('KYMO_ASYNC_END("net", "recv", 1, "bytes");', NO_VALUE),
    ('TRACE_EVENT1("net", "recv", "bytes");', NO_VALUE),
    ('KYMO_SCOPE("net", text);', NAME % "SCOPE"),
    ('KYMO_SCOPE("net", text, "bytes", 1);', NAME % "SCOPE"),
    ('KYMO_SCOPE_OVER("net", text, 1000, "bytes", 1);', NAME % "SCOPE_OVER"),
    ('KYMO_BEGIN("net", text);', NAME % "BEGIN"),
    ('KYMO_INSTANT("net", text);', NAME % "INSTANT"),
    ('KYMO_COUNTER("net", text, 1);', NAME % "COUNTER"),
    ('KYMO_ASYNC_BEGIN("net", text, 1);', NAME % "ASYNC_BEGIN"),
    ('KYMO_FLOW_STEP("net", text, 1);', NAME % "FLOW_STEP"),
    ('KYMO_PRINT("net", text);', 'kymo: the format must be a string literal: use %s'),
    ('KYMO_SCOPE(text, "recv");', CATEGORY),
    ("KYMO_END(text);", CATEGORY),
    ('(void)KYMO_ENABLED(text);', CATEGORY),
    ('KYMO_INSTANT("net", "recv", text, 1);', KEY),
    ('KYMO_SCOPE("net", "recv", "peer", object);', VALUE),
    ('KYMO_INSTANT("net", "recv", "bytes", 1, "peer", object);', VALUE),
    ('KYMO_COUNTER("net", "peer", object);', VALUE),
]

SOURCE = """#include <kymo/kymo.h>
#include <kymo/trace_event.h>
struct peer {
	int number;
};
void use(const char *text, struct peer object);
void use(const char *text, struct peer object)
{
	(void)text, (void)object;
	%s
}
"""

LANGUAGES = ["c11", "c++11", "c++17", "c++20"]
WARNINGS = """-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-qual -Wundef -Wfloat-equal -Werror""".split()
CPP_WARNINGS = ["-Wold-style-cast", "-Wzero-as-null-pointer-constant"]
GCC_WARNINGS = ["-Wuseless-cast"]
# Names that programs give to macros of their own.
TAKEN = "".join("#define %s (taken)\\n" % name for name in "A B C D E F K M N P R S T U V X Y Z a b i k m n p s v x at to of".split())


def compilers():
    found = [pair for pair in (("gcc", "g++"), ("clang", "clang++")) if shutil.which(pair[0]) and shutil.which(pair[1])]
    if len(found) < 2:
        print("clang is not installed: gcc alone")
    return found


def compile_text(compiler, language, options, text):
    kind = "c++" if "+" in language else "c"
    command = [compiler, "-std=" + language, "-x", kind, "-fsyntax-only", "-fdiagnostics-color=never", *options, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def check_mistake(compiler, language, options, body, message):
    """The fault found, or None."""
    result = compile_text(compiler, language, options, SOURCE % body)
    errors = [line for line in result.stderr.splitlines() if "error:" in line]
    if result.returncode == 0:
        return "is accepted"
    if len(errors) != 1 or message not in errors[0]:
        return "is not rejected with %r, once:\n%s" % (message, result.stderr)
    if len(result.stderr.splitlines()) > LINES_MAX[compiler]:
        return "is rejected in more than %d lines:\n%s" % (LINES_MAX[compiler], result.stderr)
    return None


def check_32_bits(compiler, language, options):
    """The fault found, or None. Without a C library, as there is seldom one of 32 bits."""
    options = [*options, "-m32", "-ffreestanding"]
    if compile_text(compiler, language, options, "int x;").returncode:
        return None
    text = '#include <kymo/kymo.h>\nvoid use(int x);\nvoid use(int x)\n{\n\tKYMO_SCOPE("net", "recv", "x", x);\n}\n'
    result = compile_text(compiler, language, options, text)
    errors = [line for line in result.stderr.splitlines() if "error:" in line]
    if len(errors) != 1 or "kymo: trace points need 64-bit pointers" not in errors[0]:
        return "is not rejected in one line:\n" + result.stderr
    quiet = compile_text(compiler, language, [*options, "-DKYMO_DISABLE", "-Wall", "-Werror"], text)
    return "does not compile with KYMO_DISABLE:\n" + quiet.stderr if quiet.returncode else None


def check_quiet(compiler, language, options, text):
    """The fault found, or None."""
    result = compile_text(compiler, language, options, text)
    return "is not compiled in silence:\n" + result.stderr if result.returncode or result.stderr else None


def checks(include):
    """A function without arguments for each check, and what to call it."""
    with open(os.path.join(HERE, "quiet.c"), encoding="utf-8") as file:
        quiet = file.read().replace("/* the program's own macros */", TAKEN)
    for pair in compilers():
        for language in LANGUAGES:
            cpp = "+" in language
            compiler = pair[cpp]
            where = "%s -std=%s: " % (compiler, language)
            for body, message in MISTAKES:
                yield where + body, (check_mistake, compiler, language, [include], body, message)
            yield where + "-m32", (check_32_bits, compiler, language, [include])
            for level in ["-O0", "-O2"]:
                options = [include, level, *WARNINGS, *(CPP_WARNINGS if cpp else [])]
                options += GCC_WARNINGS if compiler == "g++" else []
                yield where + "quiet.c " + level, (check_quiet, compiler, language, options, quiet)


def main():
    todo = list(checks("-I" + sys.argv[1]))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = list(pool.map(lambda check: check[1][0](*check[1][1:]), todo))
    for (name, _), fault in zip(todo, faults):
        if fault:
            print("FAILED: %s %s" % (name, fault))
    failures = sum(fault is not None for fault in faults)
    print("%d compilations, %d failures" % (len(todo), failures))
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
