#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check the numbers in src/formats/pftrace/pftrace_schema.h against Perfetto's own schema.

usage: tools/check_pftrace_schema.py PERFETTO_TRACE_PROTO

The argument is protos/perfetto/trace/perfetto_trace.proto of a checkout of Perfetto. Each comment in the header names
a message or an enumeration; the constants behind it are its fields or values, with a prefix.
"""
import re
import sys

SCHEMA = "src/formats/pftrace/pftrace_schema.h"


def proto_numbers(text):
    """Return {"Outer.Inner": {"field_name": number}} of all messages and enumerations."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    token = re.compile(r'(message|enum|oneof|extend)\s+([\w.]+)\s*\{|\}|'
                       r'(\w+)\s*=\s*(-?\d+|0x[0-9a-fA-F]+)\s*(?:\[[^\]]*\])?\s*;')
    scopes, found = [], {}
    for match in token.finditer(text):
        kind, name, field, number = match.groups()
        if kind:
            scopes.append((kind, name))
        elif field:
            owner = ".".join(name for kind, name in scopes if kind != "oneof")
            found.setdefault(owner, {})[field.upper()] = int(number, 0)
        elif scopes:
            scopes.pop()
    return found


def header_numbers(text):
    """Yield (line, owner, constant, number) for each constant of the header."""
    owner = None
    for number, line in enumerate(text.splitlines(), 1):
        for match in re.finditer(r"/\*\s*([\w. ]+?)\s*\*/|(KY_PF_\w+)\s*=\s*(0x[0-9a-fA-F]+|\d+)", line):
            if match.group(1):
                owner = match.group(1)
            elif match.group(2):
                yield number, owner, match.group(2), int(match.group(3), 0)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1])
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = proto_numbers(file.read())
    with open(SCHEMA, encoding="utf-8") as file:
        constants = list(header_numbers(file.read()))
    wrong = unknown = 0
    for line, owner, constant, number in constants:
        fields = schema.get(owner)
        if fields is None:
            matches = [name for name in schema if name.split(".")[-1] == owner]
            fields = schema[matches[0]] if len(matches) == 1 else {}
        name = constant.removeprefix("KY_PF_")
        # The longest field that the constant ends with is meant.
        fitting = sorted((field for field in fields if name == field or name.endswith("_" + field)), key=len)
        if not fitting:
            unknown += 1
            print(f"{SCHEMA}:{line}: {constant}: no such field or value of {owner}")
        elif fields[fitting[-1]] != number:
            wrong += 1
            print(f"{SCHEMA}:{line}: {constant} is {fields[fitting[-1]]} in {owner}, not {number}")
    print(f"{len(constants)} constants: {wrong} wrong, {unknown} unknown")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
