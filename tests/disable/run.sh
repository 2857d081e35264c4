#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh SOURCE: compiled out means gone.
#   1. subject.c with KYMO_DISABLE, and the same with the macros' lines blanked out, have the same
#      sections with the same bytes.
#   2. effects.c with KYMO_DISABLE evaluates none of its arguments.
#   3. categories.c with KYMO_STATIC_CATEGORIES keeps the named category's trace points alone.
# All with gcc and clang, as C and as C++; the first also without optimization.
set -euo pipefail
root=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
failures=0

# Both variants have one file name, so that the names inside the objects are the same.
mkdir with without
cp "$root/tests/disable/subject.c" with/subject.c
sed -e 's/^[[:space:]]*KYMO_[A-Z_]*(.*);$//' -e 's/KYMO_ENABLED("[a-z]*")/0/' \
	-e 's/^#include <kymo.*//' with/subject.c > without/subject.c
grep -q '[^*].*KYMO_[A-Z]*(' without/subject.c && { echo "subject.c: a macro is left"; exit 1; }
macros=$(grep -c 'KYMO_[A-Z_]*(' with/subject.c)
[ "$(wc -l < with/subject.c)" = "$(wc -l < without/subject.c)" ] || { echo "line counts differ"; exit 1; }

fail()
{
	echo "FAILED: $*"
	failures=$((failures + 1))
}

# Names and sizes of all sections, then the bytes of those that have any.
same_objects()
{
	local section
	diff <(size -A -d with/subject.o | tail -n +2) <(size -A -d without/subject.o | tail -n +2) ||
		return 1
	for section in $(size -A -d with/subject.o | awk '/^\./ && $2 > 0 { print $1 }'); do
		for variant in with without; do
			objcopy -O binary --only-section="$section" --set-section-flags "$section=alloc,contents" \
				"$variant/subject.o" "$variant/section" 2> /dev/null
		done
		cmp with/section without/section || { echo "section $section differs"; return 1; }
	done
}

check_subject()
{
	local variant
	for variant in with without; do
		(cd $variant && "$@" -w -DKYMO_DISABLE -I"$root/include" -c subject.c -o subject.o)
	done
	if ! same_objects; then
		fail "$*: the macros left something"
	elif nm with/subject.o | grep -i kymo; then
		fail "$*: the macros left symbols"
	else
		echo "ok: $macros macros, nothing left: $*"
	fi
}

check_effects()
{
	"$@" -Wall -Wextra -Werror -DKYMO_DISABLE -I"$root/include" "$root/tests/disable/effects.c" -o effects
	if ./effects; then
		echo "ok: nothing evaluated: $*"
	else
		fail "$*: arguments were evaluated"
	fi
}

# the categories to keep, compiler...
check_categories()
{
	local keep=$1 count
	shift
	"$@" -O2 -DKYMO_STATIC_CATEGORIES="$keep" -I"$root/include" -c "$root/tests/disable/categories.c" \
		-o categories.o
	for count in scope begin instant counter async flow print end; do
		grep -qa "kept_$count" categories.o || fail "$*: kept_$count is not in the object"
	done
	if grep -ao 'gone_[a-z]*' categories.o; then
		fail "$*: categories that are not in $keep left something"
	else
		echo "ok: only $keep: $*"
	fi
}

if ! command -v clang > /dev/null; then
	echo "clang is not installed: gcc alone"
fi
for cc in gcc clang; do
	command -v $cc > /dev/null || continue
	for language in "c -std=c11" "c++ -std=c++11"; do
		for level in -O0 -O2; do
			check_subject $cc $level -x $language
		done
		check_effects $cc -O0 -x $language
		check_categories '"kept"' $cc -x $language
		check_categories '"some","kept","others"' $cc -x $language
	done
done
[ $failures = 0 ]
