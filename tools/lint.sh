#!/bin/sh
# SPDX-License-Identifier: MIT
# lint.sh format           format the C and C++ sources in the house style
# lint.sh style            report what is not formatted in the house style
# lint.sh source           check tags and layers (lint_source.py)
# lint.sh doubles          check that arrays, maps, clocks and files have one place (lint_source.py)
# lint.sh words            check the English (lint_words.py)
# lint.sh headers BUILD    compile every private header alone; generated ones come from that build folder
# lint.sh tidy BUILD       run clang-tidy over src/ with the compile commands of that build folder
# lint.sh check BUILD      style, source, doubles, words, headers and tidy
set -eu
cd "$(dirname "$0")/.."

sources()
{
	find include src tests bench examples -name '*.[ch]' -o -name '*.cpp' -o -name '*.cc' |
		grep -v -e /fixtures/ -e /corpus/ | sort
}

style()
{
	sources | xargs clang-format --dry-run --Werror
}

headers()
{
	find src -name '*.h' | sort |
		xargs -P 2 -n 1 cc -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -Iinclude -Isrc -I"$1/src" \
			-fsyntax-only -x c
}

# The slowest check, so two files at a time. The analyzer follows a fifth of its usual number of paths: it finds the same here,
# in a sixth of the time.
tidy()
{
	paths="--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=40000"
	[ -e "$1/compile_commands.json" ] || meson setup "$1"
	if ! find src -name '*.c' | sort |
		xargs -P 2 -n 4 clang-tidy --quiet -p "$1" $paths --extra-arg=-Wno-unknown-warning-option \
			--extra-arg=-Wno-ignored-optimization-argument > "$1/tidy.log" 2>&1; then
		grep -v -e ' warnings\? generated' -e '^Suppressed ' "$1/tidy.log"
		return 1
	fi
}

case ${1:-} in
format) sources | xargs clang-format -i ;;
style) style ;;
source) tools/lint_source.py tags layers ;;
doubles) tools/lint_source.py doubles ;;
words) tools/lint_words.py ;;
headers) headers "${2:-build}" ;;
tidy) tidy "${2:-build}" ;;
check)
	style
	tools/lint_source.py tags layers doubles
	tools/lint_words.py
	headers "${2:-build}"
	tidy "${2:-build}"
	;;
*)
	sed -n '3,10s/^# //p' "$0" >&2
	exit 2
	;;
esac
