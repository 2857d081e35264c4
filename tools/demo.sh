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
kymo       build/tests/kymo_dump (built by make test)
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

# What is in them, counted in the text of the JSON file; the other formats hold the same.
count()
{
	printf '  %-28s %8d\n' "$2" "$(grep -c "\"ph\":\"[$1]\"" "$out/demo.json" || true)"
}
echo
echo "In each of them, from the server process:"
echo
count B 'spans'
count b 'asynchronous spans'
count stf 'ends and steps of arrows'
count C 'counter values'
count in 'instants and messages'
printf '  %-28s %8s\n' 'events lost' "$(grep -o '"name":"events lost"' "$out/demo.json" | wc -l | sed 's/^0$/none/')"

cat << END

To look: open https://ui.perfetto.dev, choose "Open trace file", take $out/demo.pftrace.
The page reads the file in your browser: it is not sent anywhere.

To record a run of your own: $program --trace-output my.pftrace ($program --help)
END
