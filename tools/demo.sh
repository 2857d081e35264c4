#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh BUILD [--no-browser]: run the demo once, record it in every format at the same time, list the files,
# and open the viewer. On a terminal the viewer serves until Ctrl-C; with --no-browser, with CI in the
# environment, or without a terminal the script prints the address, checks that it answers, and ends.
set -eu
build=${1:-build}
browser=${2:-}
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

To ask it more: $tool query $out/demo.kymo        (a prompt; $tool --help lists all verbs)
To record a run of your own: $program --trace-output my.pftrace ($program --help)
Or from outside, with its child: $tool run -o my.pftrace -- $program
In Perfetto's page: open https://ui.perfetto.dev, choose "Open trace file", take $out/demo.pftrace.
END

[ -x "$tool" ] || exit 0
set -- "$out/demo.kymo"
[ ! -e "$out/demo-loadgen.kymo" ] || set -- "$@" "$out/demo-loadgen.kymo"
echo
echo "To see it: $tool view $*"
if [ "$browser" != --no-browser ] && [ -z "${CI:-}" ] && [ -t 0 ] && [ -t 1 ]; then
	echo "It serves until Ctrl-C."
	echo
	exec "$tool" view "$@"
fi

# Python is there where meson is.
exec python3 - "$tool" "$@" << 'END'
import json
import subprocess
import sys
import urllib.request

# No proxy between this machine and itself.
ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
view = [sys.argv[1], "view", "--no-browser", *sys.argv[2:]]
with subprocess.Popen(view, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
    address = server.stdout.readline().strip()
    if not address:
        sys.exit("demo: %s: %s" % (" ".join(view), server.stderr.read().strip()))
    try:
        page = ask(address, timeout=60).read()
        # It answers when the trace is loaded, or after some time.
        while not json.load(ask(address + "api/status?g=0", timeout=60))["generation"]:
            pass
        trace = json.load(ask(address + "api/trace", timeout=60))
        print("%s answers: a page of %d KB, %d tracks, %d slices" %
              (address, len(page) // 1000, len(trace["tracks"]), trace["counts"]["slices"]))
    finally:
        server.terminate()
sys.exit(server.returncode)
END
