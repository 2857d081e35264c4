#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh BUILD: runs the demo once, recording it in every format at the same time, and says what is
# where and how to look at it. Asks nothing and waits for nobody.
set -eu
build=${1:-build}
program=$build/examples/demo
out=$build/demo

if [ ! -x "$program" ]; then
	echo "demo: $program is not built: run make first" >&2
	exit 1
fi
rm -rf "$out"
mkdir -p "$out"

# One line a format: suffix, what opens it.
formats='
pftrace    ui.perfetto.dev
json       ui.perfetto.dev, chrome://tracing, any editor
json.gz    ui.perfetto.dev, chrome://tracing
fxt        ui.perfetto.dev, magic-trace.org
fxt.gz     ui.perfetto.dev, magic-trace.org
kymo       the kymo command line
'

set --
for suffix in $(echo "$formats" | sed 's/ .*//'); do
	set -- "$@" --trace-output "$out/demo.$suffix"
done
echo "Running $program, recorded in every format at once."
echo
"$program" "$@" < /dev/null

echo
echo "Recorded into $out/ (with -loadgen: the second process of the demo):"
echo
echo "$formats" | while read -r suffix viewers; do
	[ -n "$suffix" ] || continue
	for file in "$out/demo.$suffix" "$out/demo-loadgen.$suffix"; do
		[ -e "$file" ] || continue
		printf '  %-32s %9d bytes   %s\n' "$file" "$(wc -c < "$file")" "$viewers"
	done
done

cat << END

In each of them: the worker and client threads with their spans, requests as asynchronous spans with
arrows from thread to thread, counters, messages, and how many events were lost, if any.

To look: open https://ui.perfetto.dev, choose "Open trace file", take $out/demo.pftrace.
The page reads the file in your browser: it is not sent anywhere.

To record a run of your own: $program --trace-output my.pftrace ($program --help)
END
