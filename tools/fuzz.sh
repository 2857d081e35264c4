#!/bin/sh
# SPDX-License-Identifier: MIT
# fuzz.sh [NAME]...: search for inputs that break the parsers, with libFuzzer and the address and undefined
# behaviour sanitizers: every target of tests/fuzz, or those named, each for FUZZ_SECONDS (60). FUZZ_SANITIZERS=none builds
# them faster, and FUZZ_SECONDS=seeds tries no other inputs, to see that they link and stand their seeds. More memory
# or time than an input of its size may take is a finding, too: see tests/fuzz/budget.c.
#
#   build-fuzz/NAME/corpus     new inputs; the next run continues from there
#   build-fuzz/NAME/seeds      small real files of the format, from ../shared/fixtures if present
#   build-fuzz/NAME/crash-*    findings (also oom-*, timeout-*, leak-*); run the target with one to reproduce it
#
# Exit codes: 0 no findings, 1 findings, 77 clang is missing.
set -eu
cd "$(dirname "$0")/.."
out=build-fuzz
seconds=${FUZZ_SECONDS:-60}
limit=-max_total_time=$seconds
[ "$seconds" != seeds ] || limit=-runs=0
fixtures=../shared/fixtures
seed_kbytes_max=64

if ! command -v clang >/dev/null; then
	echo "fuzz: clang is needed: apt install clang" >&2
	exit 77
fi
if [ ! -f $out/build.ninja ]; then
	CC="${CC:-clang}" CXX="${CXX:-clang++}" meson setup $out -Dfuzz=true -Dtests=enabled -Dtool=enabled -Dexamples=false \
		-Dbench=false -Db_sanitize="${FUZZ_SANITIZERS:-address,undefined}" -Db_lundef=false -Db_ndebug=false \
		-Doptimization=1 -Dc_args=-fsanitize=fuzzer-no-link >/dev/null
fi
if [ $# -eq 0 ]; then
	set -- $(ls tests/fuzz | sed -n 's/^fuzz_\(.*\)\.c$/\1/p')
fi

# The fixtures' folder for a target.
fixtures_of() {
	case $1 in
	json | json_*) echo chrome-json ;;
	jitdump | perf_map) echo jit ;;
	ftrace_pages) echo ftrace-raw ;;
	kymo_model) echo kymo ;;
	input) echo . ;;
	*) echo "$1" | tr _ - ;;
	esac
}

make_seeds() {
	from=$fixtures/$(fixtures_of "$1")
	[ -d "$from" ] && [ ! -d "$out/$1/seeds" ] || return 0
	mkdir -p "$out/$1/seeds"
	find "$from" -type f -size -${seed_kbytes_max}k ! -name '*.csv' ! -name '*.oracle.txt' |
		if [ "$1" = input ]; then grep -E '\.(gz|zst|zip)$' || true; else cat; fi |
		while read -r file; do
			cp "$file" "$out/$1/seeds/$(echo "$file" | md5sum | cut -c1-16)"
			chmod u+w "$out/$1/seeds/"*
		done
}

corpora_of() {
	echo "$out/$1/corpus"
	from=$(sed -n "s/^$1 //p" tests/fuzz/corpora)
	for corpus in ${from:-$1}; do
		echo "tests/fuzz/corpus/$corpus"
	done
	[ ! -d "$out/$1/seeds" ] || echo "$out/$1/seeds"
}

export FUZZ_CPU=1
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}"
# Not every target is built on every machine.
targets=$(ninja -C $out -t targets all | sed -n 's/^\(tests\/fuzz_[a-z_]*\): .*/\1/p')
names=
for name in "$@"; do
	case " $(echo $targets) " in
	*" tests/fuzz_$name "*) names="$names $name" ;;
	*) echo "fuzz: $name is not built here" ;;
	esac
done
# shellcheck disable=SC2086
ninja -C $out $(printf 'tests/fuzz_%s ' $names) >"$out/build.log" 2>&1 || {
	tail -n 100 "$out/build.log" >&2
	exit 1
}
failed=
for name in $names; do
	mkdir -p "$out/$name/corpus"
	make_seeds "$name"
	echo "fuzz: $name, $limit"
	# Weighing the corpus by entropy would take most of the time.
	# shellcheck disable=SC2046
	if "$out/tests/fuzz_$name" -entropic=0 $limit -max_len=65536 -timeout=10 -rss_limit_mb=2048 \
		-malloc_limit_mb=1024 -print_final_stats=1 -verbosity=0 -artifact_prefix="$out/$name/" \
		$(corpora_of "$name") >"$out/$name/log" 2>&1; then
		grep -E 'number_of_executed_units|peak_rss_mb' "$out/$name/log" | sed 's/^stat::/  /'
	else
		failed="$failed $name"
		tail -40 "$out/$name/log" >&2
	fi
done
if [ -n "$failed" ]; then
	echo "fuzz: findings in:$failed (see $out/NAME)" >&2
	exit 1
fi
