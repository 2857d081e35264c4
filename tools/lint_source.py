#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lint_source.py CHECK...: check rules of the source that no compiler knows.

  tags      a struct, union or enum tag is defined once in the source; one without ky_ or kymo_ may be local to several .c files
  layers    a part of src/ includes only what the table in docs/ARCHITECTURE.md allows, which points downwards only and
            agrees with src/meson.build; includes name their layer
  doubles   growing an array, hashing, reading the clock, parsing /proc, writing all of a buffer: each in one place

Exit with 1 when a rule is broken.
"""
import collections
import os
import re
import subprocess
import sys

found = []


def report(where, text):
    found.append("%s: %s" % (where, text))


def sources(*folders, suffixes=(".c", ".h")):
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *folders], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    return [name for name in names.splitlines() if name.endswith(suffixes) and os.path.exists(name)]


def read(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


def code(text):
    """Return C source with its comments and string literals blanked, line by line as before."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.DOTALL)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


# ---- tags ----

DEFINITION = re.compile(r"^[ \t]*(?:typedef |static |const )*(?:struct|union|enum)\s+(?:__attribute__\(\(.*?\)\)\s+)?(\w+)\s*\{",
                        re.MULTILINE)


def check_tags():
    places = collections.defaultdict(list)
    for name in sources("src", "include"):
        text = code(read(name))
        for match in DEFINITION.finditer(text):
            places[match.group(1)].append("%s:%d" % (name, line_of(text, match.start())))
    for tag, where in sorted(places.items()):
        names = {place.rsplit(":", 1)[0] for place in where}
        local = not tag.startswith(("ky_", "kymo_")) and not any(name.endswith(".h") for name in names)
        # Variants in one file, for different CPUs, are one definition.
        if len(names) > 1 and not local:
            report(where[0], "the tag %s is also defined in %s" % (tag, ", ".join(where[1:])))


# ---- layers ----

ROW = re.compile(r"^\| (src/\w+(?: \(\w+\))?) \|.*\| ([^|]*) \|$", re.MULTILINE)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
EMITTERS = "formats (emitters)"


def layers_drawn():
    """Return for each layer of the table in docs/ARCHITECTURE.md, lowest first, what it may include."""
    rows = {}
    for folder, allowed in ROW.findall(read("docs/ARCHITECTURE.md")):
        layer = folder.removeprefix("src/")
        rows[layer] = [part.strip() for part in allowed.split(",") if part.strip() not in ("–", "")]
    return rows


def layers_built():
    """Return the same from the lists of parts in src/meson.build."""
    built = {}
    for part, allowed in re.findall(r"^  \['(\w+)', \w+_sources,\s*\[([^\]]*)\]", read("src/meson.build"), re.MULTILINE):
        built[part] = re.findall(r"'(\w+)'", allowed)
    return built


def emitters():
    """Return the files of src/formats that are linked into libkymo, and their headers."""
    listed = re.search(r"^emit_sources = files\((.*?)^\)", read("src/meson.build"), re.MULTILINE | re.DOTALL)
    names = ["src/" + name for name in re.findall(r"'([^']+)'", listed.group(1))] if listed else []
    return names + [name[:-2] + ".h" for name in names]


def check_layers():
    drawn = layers_drawn()
    emitting = set(emitters())
    for layer, allowed in drawn.items():
        order = list(drawn)
        for other in allowed:
            if other not in drawn:
                report("docs/ARCHITECTURE.md", "src/%s may include %s, which is no layer" % (layer, other))
            elif order.index(other) >= order.index(layer):
                report("docs/ARCHITECTURE.md", "src/%s may include src/%s, which is not below it" % (layer, other))
    for part, allowed in layers_built().items():
        layer = EMITTERS if part == "emit" else part
        same = set(drawn.get(layer, [])) | ({"formats"} if part in ("emit", "sink") else set())
        beside = {EMITTERS} if part in ("emit", "sink") else set()
        if layer not in drawn:
            report("src/meson.build", "the part %s is missing in the table of docs/ARCHITECTURE.md" % part)
        elif set(allowed) - {layer} != same - beside - {layer}:
            report("src/meson.build", "%s may include %s, the table of docs/ARCHITECTURE.md has %s" %
                   (part, ", ".join(sorted(allowed)), ", ".join(sorted(drawn[layer]))))
    for name in sources("src", suffixes=(".c", ".h", ".S")):
        parts = name.split("/")
        if len(parts) < 3:
            continue
        layer = EMITTERS if name in emitting else parts[1]
        if layer not in drawn:
            report(name, "src/%s is missing in the table of docs/ARCHITECTURE.md" % layer)
            continue
        text = read(name)
        for match in INCLUDE.finditer(text):
            where = "%s:%d" % (name, line_of(text, match.start()))
            target = "src/" + match.group(1)
            other = match.group(1).split("/")[0]
            if other == "kymo":
                continue
            if "/" not in match.group(1):
                if not os.path.exists(target):
                    report(where, '"%s" does not name its layer' % match.group(1))
            elif other == parts[1]:
                if layer == EMITTERS and target not in emitting and not target.endswith(".h"):
                    report(where, '"%s" is not part of the emitters' % match.group(1))
            elif other not in {allowed.split(" ")[0] for allowed in drawn[layer]}:
                report(where, 'src/%s may not include "%s"' % (layer, match.group(1)))


# ---- doubles ----

# What is written once, the pattern that gives a second one away, where it may be. The recorder (os, core, sink, the
# emitters) and the agent depend on libc alone and have their own.
RECORDER = ("src/os/", "src/core/", "src/sink/", "src/functrace/agent/")
DOUBLES = [
    ("an array that grows: use base/array.h", r"\brealloc(?:array)?\(", ("src/base/",)),
    # The agent reads the table of patch_instrumented.c inside the traced program: its layout and hash are an ABI.
    ("a hash table: use base/map.h", r"(?i)\b(?:hash|index|slot|at|bucket|i) = \(\w+ \+ 1\) (?:& (?:\w+->)?\w*mask|% [A-Z_]+)\b",
     ("src/base/", "src/functrace/patch_instrumented.c")),
    ("a clock: use base/clock.h", r"\bclock_gettime\(", ("src/base/",)),
    ("a parser of /proc/PID/stat: use process/proc.h", r"(?s)/proc/(?:%\w+|self|thread-self)/(?:task/%\w+/)?stat\b(?!us|m)",
     ("src/process/",)),
    ("write_all: use base/file.h", r"\bstatic \w+ (?:ky_)?write_(?:all|fully|whole)\(", ("src/base/",)),
]


def check_doubles():
    emitting = set(emitters())
    for name in sources("src"):
        if name.startswith(RECORDER) or name in emitting:
            continue
        text = read(name)
        plain = code(text)
        for what, pattern, places in DOUBLES:
            if name.startswith(places):
                continue
            for match in re.finditer(pattern, text if "/proc" in pattern else plain):
                report("%s:%d" % (name, line_of(text, match.start())), "a second place for %s" % what)


CHECKS = {"tags": check_tags, "layers": check_layers, "doubles": check_doubles}


def main():
    if len(sys.argv) < 2 or not set(sys.argv[1:]) <= set(CHECKS):
        sys.exit(__doc__)
    for name in sys.argv[1:]:
        CHECKS[name]()
    print("\n".join(found), file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
