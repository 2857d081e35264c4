#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh musl|arm64 ROOT SOURCE.c...: builds the library's sources and the tests of core and sink with musl-gcc, or for arm64,
# and runs them, arm64 in qemu. Exits with 77 when a compiler or qemu is not installed.
set -euo pipefail
target=$1
root=$2
shift 2

case $target in
musl)
	cc=musl-gcc
	ar=ar
	runner=
	# The kernel's headers are the system's; musl's own come first.
	flags="-idirafter /usr/include -idirafter /usr/include/$(uname -m)-linux-gnu"
	;;
arm64)
	cc=aarch64-linux-gnu-gcc
	ar=aarch64-linux-gnu-ar
	runner="qemu-aarch64 -L /usr/aarch64-linux-gnu"
	flags=-DEMULATED=1
	;;
esac
for program in $cc $runner; do
	case $program in -* | /*) continue ;; esac
	command -v "$program" > /dev/null || { echo "$program is not installed"; exit 77; }
done

scratch=$(mktemp -d)
trap '${KEEP:+:} rm -rf "$scratch"' EXIT
unset KYMO_TRACE KYMO_CATEGORIES KYMO_BUFFER KYMO_DRUM_DIR KYMO_DRUM_FD KYMO_DRUM_MAIL
tests=$root/tests

# Each of the tests, and the files that it is made of.
readback="core/readback.c"
session="formats/walk_json.c sink/child.c sink/json_trace.c"
programs="
glob core/test_glob.c
print core/test_print.c
clock core/test_clock.c $readback
fork core/test_fork.c $readback
heap core/test_heap.c $readback
ring core/test_ring.c $readback
signals core/test_signals.c $readback
threads core/test_threads.c $readback
trace_event_c core/test_trace_event_c.c
scope_exits core/test_scope_exits.c
values macros/test_values.c
config sink/test_config.c
path sink/test_path.c
spans sink/test_spans.c
session sink/test_session.c $session
session_process sink/test_session_process.c $session
session_ring sink/test_session_ring.c $session
subscribe sink/test_subscribe.c $session
"
# In qemu-user a child of vfork() has memory of its own, MADV_WIPEONFORK does nothing, there are no seccomp filters, and it
# is too slow for what a session does after some time. It takes the folder of its libraries for the root folder (path).
[ "$target" = musl ] || programs=$(echo "$programs" | grep -v -e '^fork ' -e '^path ' -e '^session_process ' -e '^session ')

object_of()
{
	echo "$scratch/$(echo "${1#"$root"/}" | tr / _).o"
}
compile()
{
	$cc -D_GNU_SOURCE -std=c17 -O1 -fPIC -pthread -Wall -Wextra -Werror $flags -I"$tests/cross/include" -I"$root/include" \
		-I"$root/src" -c "$1" -o "$(object_of "$1")"
}
# run NAME SOURCE...: link and run a test.
run()
{
	local name=$1 objects=()
	shift
	for source in "$@"; do
		objects+=("$(object_of "$tests/$source")")
	done
	$cc -o "$scratch/$name" "${objects[@]}" "$scratch/libkymo.a" -pthread
	if (cd "$scratch" && timeout 170 $runner "./$name" > "$name.log" 2>&1); then
		echo "ok: $name"
	else
		tail -n 20 "$scratch/$name.log"
		echo "FAILED: $target: $name"
		return 1
	fi
}
export -f object_of compile run
export cc flags tests root scratch runner target

sources=()
for source in "$@"; do
	sources+=("$root/$(realpath --relative-to="$root" "$source")")
done
test_sources=$(echo "$programs" | tr ' ' '\n' | grep '\.c$' | sort -u | sed "s,^,$tests/,")
printf '%s\n' "${sources[@]}" $test_sources | xargs -P "$(nproc)" -I{} bash -c 'compile "$1"' compile {}
for source in "${sources[@]}"; do
	object_of "$source"
done | xargs "$ar" rc "$scratch/libkymo.a"
echo "$programs" | grep . | xargs -P "$(nproc)" -I{} bash -c 'run $1' run {}
