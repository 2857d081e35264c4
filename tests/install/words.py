#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""words.py HEADER...: print a #define to garbage for every ordinary word that the headers use.

A program may have a macro of any name. The headers' own names begin with kymo, KYMO, ky_, KY_ or
TRACE_; what is left are macro parameters, and the members of struct kymo_host and its companions.
"""
import re
import sys

KEYWORDS = """auto bool break case char class const constexpr continue decltype default delete do double
    else enum extern false float for goto if inline int long nullptr operator reinterpret_cast return
    short signed sizeof static static_assert struct switch template true typedef typename union unsigned
    void volatile while"""
PREPROCESSOR = "define defined elif else endif error if ifdef ifndef include pragma pop_macro push_macro undef"
LIBC = "NULL UINT64_MAX UINTPTR_MAX int64_t size_t uint16_t uint32_t uint64_t uint8_t uintptr_t"
# Members of classes of the program, which trace_event.h looks for.
PROGRAM = "AppendAsTraceFormat InMicroseconds ToInternalValue c_str data raw since_origin size value"


def words(text):
    text = re.sub(r"#include[^\n]*", " ", text)
    text = re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', " ", text, flags=re.DOTALL)
    return set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text))


def main():
    found = set()
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            found |= words(file.read())
    found -= set(" ".join([KEYWORDS, PREPROCESSOR, LIBC, PROGRAM]).split())
    for word in sorted(found):
        if not re.match(r"kymo|KYMO|ky_|KY_|TRACE_|__|_[A-Z]", word):
            print("#define %s @ garbage @" % word)


if __name__ == "__main__":
    main()
