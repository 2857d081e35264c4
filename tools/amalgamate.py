#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes one pair of files of the recorder: kymo.h and kymo.c.

    amalgamate.py --out DIR --include DIR SOURCE.c...

kymo.h holds all public headers. The Chromium macros of trace_event.h have names that other code may
use for itself, so they are there only with KYMO_TRACE_EVENT_MACROS defined before the include.

kymo.c holds the sources, which are independent translation units and stay so in effect:

  - Private headers with an include guard come first, each once, those they include before them.
    Headers without one are meant to be included several times: they are put where they are included.
  - The system's headers come before all that, and what is not public is hidden, so that two copies
    in one process do not take each other's functions for their own.
  - What a source defines for itself (static functions and data, tags, typedefs, enumerators, macros)
    gets the file's name in front when another file uses the same name, for whatever, or when it is
    one plain word, which the system's headers may use too.
  - A struct that a header only declares and that several files define, each its own ("struct
    ky_writer"), gets the name of the file that defines it in front. Where such a file fills in a
    struct of function pointers whose type speaks of the declared one, the pointers are cast.

The renaming looks at tokens, not at a syntax tree. It knows that names after '.', '->', in offsetof
and in declarations of members are not the file's own. The test of the amalgamation compiles the
result with warnings on: a construct that the renaming does not know shows there.
"""
import argparse
import collections
import os
import re
import sys

PUBLIC_HEADERS = [
    "kymo.h",
    "kymo_args.h",
    "kymo_impl.h",
    "session.h",
    "embed.h",
    "version.h",
    "trace_event.h",
    "trace_event_impl.h",
]
TRACE_EVENT_CONDITION = "KYMO_TRACE_EVENT_MACROS"

TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)
      | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
      | (?P<space>(?:[ \t\r\f\v]|\\\n)+)
      | (?P<newline>\n)
      | (?P<sign>->|\.\.\.|\#\#|.)""",
    re.VERBOSE | re.DOTALL,
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">].*\n', re.MULTILINE)
KEYWORDS = set(
    """auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while _Alignas _Alignof _Atomic _Bool _Generic _Noreturn _Static_assert
    _Thread_local __thread __attribute__ __extension__ __asm__ __typeof__ bool defined""".split()
)

PUSH = "#pragma GCC visibility push(%s)\n"
POP = "#pragma GCC visibility pop\n"

Token = collections.namedtuple("Token", "kind text directive")


def fail(message):
    sys.exit("amalgamate: " + message)


def tokenize(text):
    """All tokens, with the number of the preprocessor directive that each is in, or 0."""
    tokens, directive, count, line_is_empty = [], 0, 0, True
    for match in TOKEN.finditer(text):
        kind, value = match.lastgroup, match.group()
        if kind == "newline":
            directive, line_is_empty = 0, True
        elif kind not in ("space", "comment"):
            if value == "#" and line_is_empty:
                count += 1
                directive = count
            line_is_empty = False
        tokens.append(Token(kind, value, directive))
    return tokens


def significant(tokens):
    """The indices of the tokens that are code outside of preprocessor directives."""
    return [
        i
        for i, t in enumerate(tokens)
        if t.kind not in ("space", "newline", "comment") and not t.directive
    ]


def directives(tokens):
    """Each preprocessor directive as a list of its tokens without space."""
    found = collections.defaultdict(list)
    for token in tokens:
        if token.directive and token.kind not in ("space", "comment"):
            found[token.directive].append(token.text)
    return list(found.values())


def own_macros(tokens):
    """Macros that the file defines and leaves: not those that fill a gap in a system header."""
    defined, tested = set(), set()
    for words in directives(tokens):
        if words[1] == "define":
            defined.add(words[2])
        elif words[1] in ("if", "ifdef", "ifndef", "elif", "undef"):
            tested.update(words[2:])
    return defined - tested


def file_scope(tokens):
    """The declarations at file scope: (what comes before ';' or '{', what the braces hold or None).

    One that goes on after its braces is listed again as a whole, with "{}" for the braces.
    """
    code = [tokens[i].text for i in significant(tokens)]
    declarations, head, i = [], [], 0
    while i < len(code):
        if code[i] == "{":
            start, depth = i + 1, 1
            while depth and i + 1 < len(code):
                i += 1
                depth += (code[i] == "{") - (code[i] == "}")
            declarations.append((head, code[start:i]))
            head = [] if is_function(head) else head + ["{}"]
        elif code[i] == ";":
            declarations.append((head, None))
            head = []
        else:
            head.append(code[i])
        i += 1
    return declarations


def is_function(head):
    """Whether a declaration's head is that of a function's definition."""
    return "(" in head and "=" not in head and head[0] != "typedef"


def strip_attributes(head):
    """Return the head without __attribute__((...)) and _Alignas(...), whose names are not declared."""
    result, i = [], 0
    while i < len(head):
        if head[i] in ("__attribute__", "_Alignas", "__typeof__", "_Static_assert"):
            i, depth = i + 1, 0
            while i < len(head):
                depth += (head[i] == "(") - (head[i] == ")")
                i += 1
                if not depth:
                    break
            continue
        result.append(head[i])
        i += 1
    return result


def declared_names(head):
    """The ordinary identifiers that a file-scope declaration declares."""
    names, depth, in_value, i = [], 0, False, 0
    head = strip_attributes(head)
    while i < len(head):
        word = head[i]
        following = head[i + 1] if i + 1 < len(head) else ";"
        if word in ("struct", "union", "enum"):
            i += 2
            continue
        if word == "=":
            in_value = True
        elif word == "," and depth == 0:
            in_value = False
        elif word in "([":
            if word == "(" and depth == 0 and following == "*" and not in_value:
                names.append(head[i + 2])  # a pointer to a function
            depth += 1
        elif word in ")]":
            depth -= 1
        elif re.match(r"[A-Za-z_]\w*$", word) and word not in KEYWORDS and depth == 0:
            if not in_value and following in ("(", "[", "=", ",", ";", "{}"):
                names.append(word)
                if following == "(" and is_function(head):
                    break
        i += 1
    return names


def own_names(tokens):
    """What a source defines for itself: (ordinary identifiers, tags)."""
    names, tags = own_macros(tokens), set()
    for head, body in file_scope(tokens):
        if body is not None and len(head) >= 2 and head[-2] in ("struct", "union", "enum"):
            tags.add(head[-1])
        if body is not None and "enum" in head[-2:]:
            previous = ","
            for word in body:
                if previous == "," and re.match(r"[A-Za-z_]", word):
                    names.add(word)
                previous = word
        elif head and head[0] == "typedef" and body is None:
            names.update(declared_names(head[1:]))
        elif "static" in head:
            names.update(declared_names(head))
    return names - KEYWORDS, tags


def member_names(code, tokens):
    """Indices of the names of members where a struct or union declares them."""
    members, stack = set(), []
    for k, i in enumerate(code):
        text = tokens[i].text
        following = tokens[code[k + 1]].text if k + 1 < len(code) else ""
        if text == "{":
            before = [tokens[j].text for j in code[max(0, k - 2) : k]]
            stack.append("struct" in before or "union" in before)
        elif text == "}":
            if stack:
                stack.pop()
        elif stack and stack[-1] and tokens[i].kind == "name" and k:
            previous = tokens[code[k - 1]].text
            pointer = previous == "*" and following == ")"
            if following in (";", ",", "[", ":") and previous != "[" or pointer:
                members.add(i)
    return members


def offsetof_members(code, tokens):
    """Indices of the names of members inside offsetof(type, member)."""
    members = set()
    for k, i in enumerate(code):
        if tokens[i].text not in ("offsetof", "__builtin_offsetof"):
            continue
        depth, after_comma = 0, False
        for j in code[k + 1 :]:
            text = tokens[j].text
            depth += (text == "(") - (text == ")")
            if after_comma and tokens[j].kind == "name":
                members.add(j)
            if text == "," and depth == 1:
                after_comma = True
            if not depth:
                break
    return members


def is_function_name(text):
    """Whether it looks like one: constants are in capitals."""
    return re.match(r"[a-z]\w*$", text) and text not in ("sizeof", "true", "false")


def vtable_entries(tokens, vtables):
    """Where a struct of one of these types is filled in: index of a value's token to its cast."""
    code, casts, k = significant(tokens), {}, 0
    text = [tokens[i].text for i in code]
    while k + 4 < len(code):
        if text[k] == "struct" and text[k + 1] in vtables and text[k + 3 : k + 5] == ["=", "{"]:
            cast = "(__typeof__(((struct %s *)0)->%%s))" % text[k + 1]
            while text[k] != ";":
                if text[k] == "." and text[k + 2] == "=" and is_function_name(text[k + 3]):
                    casts[code[k + 3]] = cast % text[k + 1]
                k += 1
        k += 1
    return casts


def rename(tokens, names, tags, vtables=()):
    """The text with its own names replaced; names and tags are dictionaries from old to new."""
    casts = vtable_entries(tokens, vtables)
    every = [i for i, t in enumerate(tokens) if t.kind not in ("space", "newline", "comment")]
    skipped = member_names(significant(tokens), tokens) | offsetof_members(every, tokens)
    result, previous = [], ""
    for i, token in enumerate(tokens):
        text = token.text
        if token.kind == "name" and i not in skipped and previous not in (".", "->"):
            if previous in ("struct", "union", "enum"):
                text = tags.get(text, text)
            else:
                text = names.get(text, text)
        if token.kind not in ("space", "newline", "comment"):
            previous = token.text
        result.append(casts.get(i, "") + text)
    return "".join(result)


class Source:
    """One private file: its text, and what it includes."""

    def __init__(self, path):
        self.path = path
        self.stem = os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.tokens = tokenize(self.text)
        self.used = {t.text for t in self.tokens if t.kind == "name"}
        self.names, self.tags = own_names(self.tokens)

    def is_guarded(self):
        found = directives(self.tokens)
        return (
            len(found) >= 2
            and found[0][1] == "ifndef"
            and found[1][1] == "define"
            and found[0][2] == found[1][2]
        )


class Tree:
    """The private headers: includes name their layer, a folder below root."""

    def __init__(self, root):
        self.root = root
        self.headers = {}
        self.system = set()  # includes of the system's headers, for the top
        self.order = []  # guarded headers, each after those that it includes

    def find(self, including, name):
        path = os.path.join(self.root, name)
        if not os.path.exists(path):
            fail('%s includes "%s", which is not below %s' % (including.path, name, self.root))
        return path

    def header(self, path):
        if path not in self.headers:
            self.headers[path] = Source(path)
        return self.headers[path]

    def collect(self, source):
        """Puts the guarded headers that source includes, directly or not, into order."""
        for kind, name in INCLUDE.findall(source.text):
            if kind != '"':
                continue
            header = self.header(self.find(source, name))
            if header not in self.order:
                self.collect(header)
                if header.is_guarded():
                    self.order.append(header)

    def includes(self, source):
        """The private headers that source includes, directly or not."""
        found = []
        for kind, name in INCLUDE.findall(source.text):
            if kind == '"':
                header = self.header(self.find(source, name))
                found += [header] + self.includes(header)
        return found

    def inline(self, source, text):
        """The text without includes of what is there already."""

        def replace(match):
            kind, name = match.groups()
            if kind == "<":
                return "" if name.startswith("kymo/") else self.system_include(source, text, match)
            header = self.header(self.find(source, name))
            return "" if header.is_guarded() else self.inline(header, header.text)

        return INCLUDE.sub(replace, text)

    def system_include(self, source, text, match):
        """Moves it to the top, or keeps it where it hangs on a condition; never hidden."""
        before = text[: match.start()]
        depth = len(re.findall(r"^[ \t]*#[ \t]*if", before, re.MULTILINE))
        depth -= len(re.findall(r"^[ \t]*#[ \t]*endif", before, re.MULTILINE))
        if depth == source.is_guarded():
            self.system.add("#include <%s>\n" % match.group(2))
            return ""
        return "%s%s%s" % (PUSH % "default", match.group(), POP)


def banner(path):
    return "\n/* " + (" %s " % path).center(94, "-") + " */\n"


def without_license(text):
    return re.sub(r"\A/\* SPDX-License-Identifier: MIT \*/\n", "", text)


def new_names(own, others, prefix, taken):
    """Chooses which of a source's own names change, and to what."""
    chosen = {}
    for name in sorted(own):
        plain_word = "_" not in name and name.islower()
        if not plain_word and not any(name in other.used for other in others):
            continue
        new = prefix + "_" + name
        while new in taken:
            new += "_"
        taken.add(new)
        chosen[name] = new
    return chosen


class Opaque:
    """The structs that headers declare and several files define."""

    def __init__(self, tree, sources):
        self.tree = tree
        headers = list(tree.headers.values())
        self.declared = set().union(*(h.used for h in headers)) if headers else set()
        definers = collections.Counter()
        for file in headers + sources:
            definers.update(file.tags)
        self.several = {t for t, n in definers.items() if n > 1 and t in self.declared}

    def tags(self, file):
        """What the opaque tags are called in this file."""
        found = {}
        for definer in [file] + self.tree.includes(file):
            for tag in definer.tags & self.several:
                found.setdefault(tag, definer.stem + "_" + tag)
        return found

    def vtables(self, file):
        """The structs with function pointers that speak of a tag that the file knows by another name."""
        known, found = self.tags(file), set()
        for header in self.tree.includes(file) if known else []:
            for head, body in file_scope(header.tokens):
                if body and len(head) == 2 and head[0] == "struct" and known.keys() & set(body):
                    if head[1] not in known:
                        found.add(head[1])
        return found


def make_source(paths, root, strip):
    sources = [Source(p) for p in paths]
    tree = Tree(root)
    for source in sources:
        tree.collect(source)
    everything = sources + list(tree.headers.values())
    taken = set().union(*(s.used for s in everything))
    stems = collections.Counter(s.stem for s in sources)
    opaque = Opaque(tree, sources)

    head = [
        "/* SPDX-License-Identifier: MIT */\n",
        "/*\n * kymo.c: the recorder in one file; kymo.h belongs to it. Made by tools/amalgamate.py from\n"
        " * the sources of kymo: change those instead. Compile it as C and link with -pthread (and with\n"
        " * -ldl where libc does not have dlopen).\n */\n",
        "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n",
        "#ifndef KYMO_TRACE_EVENT_MACROS\n#define KYMO_TRACE_EVENT_MACROS\n#endif\n",
        '#include "kymo.h"\n\n',
    ]
    parts = ["\n/* Only what kymo.h declares is seen from outside. */\n", PUSH % "hidden"]
    # Headers may have inline functions that the recorder does not use.
    parts.append('#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored "-Wunused-function"\n')
    for header in tree.order:
        text = rename(header.tokens, {}, opaque.tags(header))
        parts.append(banner(strip(header.path)))
        parts.append(without_license(tree.inline(header, text)))
    parts.append("#pragma GCC diagnostic pop\n")
    for source in sources:
        prefix = source.stem
        if stems[source.stem] > 1:
            prefix = os.path.basename(os.path.dirname(source.path)) + "_" + source.stem
        others = [s for s in everything if s is not source]
        names = new_names(source.names, others, prefix, taken)
        tags = new_names(source.tags - opaque.declared, others, prefix, taken)
        tags.update(opaque.tags(source))
        text = rename(source.tokens, names, tags, opaque.vtables(source))
        text = re.sub(r"^#define _GNU_SOURCE.*\n", "", text, flags=re.MULTILINE)
        parts.append(banner(strip(source.path)))
        parts.append(without_license(tree.inline(source, text)))
    return "".join(head + sorted(tree.system) + parts + ["\n", POP])


def make_header(include_dir):
    parts = [
        "/* SPDX-License-Identifier: MIT */\n",
        "/*\n * kymo.h: all public headers of kymo in one. Made by tools/amalgamate.py; kymo.c belongs to\n"
        " * it. Define KYMO_TRACE_EVENT_MACROS before including it to have the TRACE_EVENT macros too.\n"
        " */\n",
    ]
    for name in PUBLIC_HEADERS:
        path = os.path.join(include_dir, "kymo", name)
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            text = without_license(file.read())
        text = re.sub(r'^#include (<kymo/\w+\.h>|"\w+\.h")\n', "", text, flags=re.MULTILINE)
        parts.append(banner("include/kymo/" + name))
        if name.startswith("trace_event"):
            text = "#ifdef {0}\n{1}#endif /* {0} */\n".format(TRACE_EVENT_CONDITION, text)
        parts.append(text)
    return "".join(parts)


def write(path, text):
    text = re.sub(r"\n{3,}", "\n\n", text)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description="Makes kymo.h and kymo.c of all of the recorder.")
    parser.add_argument("--out", required=True, help="folder for the two files")
    parser.add_argument("--include", required=True, help="folder that has the public headers in kymo/")
    parser.add_argument("sources", nargs="+", help="the recorder's sources")
    args = parser.parse_args()
    root = os.path.dirname(os.path.abspath(args.include))

    def strip(path):
        return os.path.relpath(os.path.abspath(path), root)

    os.makedirs(args.out, exist_ok=True)
    write(os.path.join(args.out, "kymo.h"), make_header(args.include))
    write(os.path.join(args.out, "kymo.c"), make_source(args.sources, os.path.join(root, "src"), strip))


if __name__ == "__main__":
    main()
