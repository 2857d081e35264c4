#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lint_words.py [FILE...]: report words that do not belong into plain technical English.

Read comments, messages, documentation, man pages and the page of `kymo view`: all files that git tracks, or those named.
A phrase is found across line ends too. Exit with 1 when there is one.
"""
import re
import subprocess
import sys

# What to avoid, and what to write instead. In a pattern a space is any gap between words, also a line end.
WORDS = [
    (r"(?:is|are|was|were|be|being) told|told of|tells? of", "report, show or return it"),
    (r"(?:is|are|was|were) said\b(?! to)", "say who reports it: kymo reports ..."),
    (r"the begin\b(?! (?:event|and|or|half|phase|record))|(?:its|their|each) begin\b(?! (?:event|and|or))", "beginning, start"),
    (r"(?:could not|cannot|may not) be had|(?:not|nothing|none) to be had|(?:is|are) to be had", "missing, unavailable"),
    (r"(?<!there\s)(?-i:is none)\b", "name what is missing: no X"),
    (r"nobody (?:\w+ ){0,3}but", "only"),
    (r"whoever|whomever|whosoever", "name the one who does it"),
    (r"anew", "again"),
    (r"(?:and|or|of) the like", "name the things"),
    (r"meanwhile", "in the meantime, or leave it out"),
    (r"\(as is\)|as is[,;)]", "default"),
    (r"(?:by|of|out of|from) itself alone|of itself", "alone, automatically"),
    (r"(?:made|makes?) whole", "repaired, complete"),
    (r"stands\b(?! for)|stood", "is"),
    (r"goes without saying|by and by|hitherto|thereof|wherein|whereof|hereby|thus far|forthwith|heretofore", "plain words"),
]

FOLDERS = ["src", "include", "tests", "bench", "examples", "tools", "docs", "viewer/src", "cmake", ".ci",
           "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "meson.build", "meson_options.txt"]
SUFFIXES = (".c", ".h", ".S", ".cc", ".cpp", ".py", ".sh", ".mjs", ".ts", ".css", ".html", ".md", ".1", ".3", ".7", ".build",
            ".txt", ".ld", ".in", ".bash")
NAMES = ("Makefile", "run")
LEFT_OUT = ("tools/lint_words.py", "/corpus/", "/fixtures/", "viewer/dist/")

# Between two words: white space, or a line end with what a comment or a string literal begins the next line with.
GAP = r'(?:[^\S\n]+|[^\S\n]*"?\n[^\S\n]*(?://|\*|#|\.\\"|")?[^\S\n]*)'


def pattern(words):
    return re.compile(r"\b(?:%s)\b" % words.replace(" ", GAP), re.IGNORECASE)


def tracked():
    names = subprocess.run(["git", "ls-files", "--", *FOLDERS], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [name for name in names.splitlines()
            if name.endswith(SUFFIXES) or name.rsplit("/", 1)[-1] in NAMES]


def main():
    checks = [(pattern(words), better) for words, better in WORDS]
    found = 0
    for name in sys.argv[1:] or tracked():
        if any(part in name for part in LEFT_OUT):
            continue
        try:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError):
            continue
        for check, better in checks:
            for match in check.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                print("%s:%d: \"%s\": %s" % (name, line, " ".join(re.findall(r"\w+", match.group())), better))
                found += 1
    if found:
        sys.exit("lint: %d phrases to replace" % found)


if __name__ == "__main__":
    main()
