#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh ROOT AMALGAMATE.py ARGS...: makes kymo.h and kymo.c and uses them alone, with gcc and clang,
# from C and from C++: no flag but the warnings, and the programs must leave a trace.
set -euo pipefail
source_dir=$(cd "$1" && pwd)/tests/install
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset KYMO_TRACE KYMO_CATEGORIES KYMO_BUFFER KYMO_DRUM_DIR KYMO_DRUM_FD KYMO_DRUM_MAIL

python3 "$@" --out "$scratch"
cd "$scratch"
# The programs of the test of the installed package, with the one header there is.
for file in consumer.c consumer.cpp; do
	sed 's,#include <kymo/.*>,#include "kymo.h",' "$source_dir/$file" > "$file"
done
printf '#define KYMO_TRACE_EVENT_MACROS\n#include "kymo.h"\n' > macros.c

compilers="gcc:g++"
if command -v clang++ > /dev/null; then
	compilers="$compilers clang:clang++"
else
	echo "clang is not installed: gcc alone"
fi

check_run()
{
	rm -f own.json
	./program own.json
	grep -q consumer_work own.json || { echo "$1: the trace does not hold the program's span"; exit 1; }
	echo "ok: $1"
}

for pair in $compilers; do
	cc=${pair%:*}
	cxx=${pair#*:}
	$cc -c kymo.c
	for flags in "" "-O2" "-std=c11 -O2 -fPIC" "-std=c17"; do
		$cc $flags -Wall -Wextra -Werror -c kymo.c
	done
	echo "ok: kymo.c, $cc"
	# Two libraries with a copy each must not take each other's functions for their own.
	$cc -shared -fPIC -o kymo.so kymo.c -pthread -ldl
	if nm -D --defined-only kymo.so | grep -v ' kymo_'; then
		echo "$cc: private names are exported"
		exit 1
	fi
	# A plugin's own copy exports nothing at all.
	printf '#include "kymo.h"\nint plugin(void);\nint plugin(void) { KYMO_SCOPE("a", "b"); return 0; }\n' > plugin.c
	$cc -DKYMO_PRIVATE -shared -fPIC -o plugin.so plugin.c kymo.c -pthread -ldl
	if nm -D --defined-only plugin.so | grep -v ' plugin$'; then
		echo "$cc: a private copy exports names"
		exit 1
	fi
	$cc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only macros.c
	$cxx -std=c++11 -Wall -Wextra -Wpedantic -Werror -x c++ -fsyntax-only macros.c
	$cc -std=c11 -Wall -Wextra -Werror -o program consumer.c kymo.o -pthread -ldl
	check_run "$cc, C11"
	# An optimizer of the whole program does not see what asm refers to. The linker may lack its plugin.
	printf 'int main(void) { return 0; }\n' > nothing.c
	if $cc -O1 -flto -o nothing nothing.c 2> /dev/null; then
		$cc -O1 -flto -o program consumer.c kymo.c -pthread -ldl
		check_run "$cc, -flto"
	else
		echo "$cc cannot link with -flto here"
	fi
	$cxx -std=c++11 -Wall -Wextra -Werror -o program consumer.cpp kymo.o -pthread -ldl
	check_run "$cxx, C++11"
done
