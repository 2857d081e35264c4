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
kymo       kymo (below)
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

tool=$build/src/kymo
if [ -x "$tool" ]; then
	echo
	echo "What is in it: $tool info $out/demo.kymo"
	echo
	"$tool" info "$out/demo.kymo"
	echo
	echo "Where the time goes: $tool report --limit 12 $out/demo.kymo"
	echo
	"$tool" report --limit 12 "$out/demo.kymo"
	echo
	echo "In SQL: $tool query $out/demo.kymo 'select ...'"
	echo
	"$tool" query "$out/demo.kymo" \
		"select thread.name as thread, count(*) as spans, sum(dur) / 1000 as total_us
		 from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)
		 where dur > 0 group by utid order by total_us desc limit 8"
fi

cat << END

To see it: open https://ui.perfetto.dev, choose "Open trace file", take $out/demo.pftrace.
The page reads the file in your browser: it is not sent anywhere.

To ask it more: $tool query $out/demo.kymo        (a prompt; $tool --help lists all verbs)
To record a run of your own: $program --trace-output my.pftrace ($program --help)
Or from outside, with its child: $tool run -o my.pftrace -- $program
END
