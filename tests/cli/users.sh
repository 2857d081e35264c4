#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# users.sh: root writes traces in a directory like /tmp in which another user has planted links and files.
#
#	users.sh KYMO CAPTURE_TARGET
#
# A check is a line "name: ok" or "name: FAILED" with what was seen. Exit 1 when any failed, 77 when not root.
set -u
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
	echo "skipped: it takes root and setpriv to be two users"
	exit 77
fi
kymo=$(realpath "$1")
target=$(realpath "$2")
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
chmod 755 .
export KYMO_QUIET=1
umask 000
mallory() { setpriv --reuid 54321 --regid 54321 --clear-groups "$@"; }

run() { # program, arguments
	timeout 600 "$@" >out 2>err </dev/null
	code=$?
}

mkdir -m 700 private
mkdir open
chmod 1777 open
echo '[{"ph":"X","pid":1,"tid":1,"ts":0,"dur":5,"name":"a"},{"ph":"X","pid":1,"tid":1,"ts":10,"dur":5,"name":"b"}]' >a.json
run "$kymo" convert a.json a.kymo
chmod 644 a.kymo
report "a trace to work with" "$code"

# The file behind mallory's link must stay as it is, and the command say why.
spared() { # name, suffix, program and arguments, with LINK for the link
	local name=$1 suffix=$2
	shift 2
	echo secret >private/file
	chmod 644 private/file
	local kind
	for kind in link "link to a new file" file; do
		local planted=$work/open/out$suffix
		rm -rf open/*
		rm -f private/new
		case $kind in
		link) mallory ln -s "$work/private/file" "$planted" ;;
		"link to a new file") mallory ln -s "$work/private/new" "$planted" ;;
		file) mallory sh -c ": >'$planted'" ;;
		esac
		run "${@//LINK/$planted}"
		[ "$code" -ne 0 ] && [ "$(cat private/file)" = secret ] && [ ! -e private/new ] &&
			{ [ "$kind" != file ] || [ ! -s "$planted" ]; } &&
			[ "$(stat -c %u "$planted")" = 54321 ] && [ "$(find open | wc -l)" -eq 2 ]
		report "$name: another's $kind in a sticky directory" $?
	done
}

spared convert .json "$kymo" convert a.kymo LINK
spared "convert event by event" .pftrace "$kymo" convert a.kymo LINK
spared split .json "$kymo" split --to 1us a.json -o LINK
spared merge .json "$kymo" merge --offset a.kymo=0 -o LINK a.json a.kymo
spared repair .kymo "$kymo" repair a.kymo -o LINK
spared run .kymo "$kymo" run -o LINK "$target" children 1
spared "run, converted" .json "$kymo" run -o LINK "$target" children 1
if "$kymo" view --export page.html a.json >out 2>err; then
	spared "view --export" .html "$kymo" view --export LINK a.json
fi

# A flight recorder's file gets its name when a trigger fires: what another user put there by then is not the recording.
for suffix in .kymo .json; do
	for kind in trace FIFO; do
		rm -rf open/* go ready
		mkfifo -m 666 go ready
		planted=open/out$suffix
		[ "$suffix" = .kymo ] || planted=$planted.capture.kymo
		# shellcheck disable=SC2016
		run "$kymo" run --trigger exit -o "open/out$suffix" sh -c 'echo >ready; read -r line <go; exec "$0" children 0' "$target" &
		read -r _ <ready
		if [ "$kind" = trace ]; then
			mallory sh -c "cat a.kymo >$planted"
		else
			mallory mkfifo "$planted"
		fi
		echo >go
		wait $!
		code=$?
		[ "$(find open -mindepth 1 -user 54321)" = "$planted" ] && [ "$(find open | wc -l)" -eq 2 ] &&
			! grep -q "  next" err && grep -q "cannot write $planted: Permission denied" err
		report "a snapshot ($suffix): another's $kind that came first is neither the result nor waited for" $?
	done
done

# A name that kymo chooses itself, in the directory where one is.
cd open || exit 1
rm -f ./*
mallory ln -s "$work/private/file" snapshot.kymo
mallory ln -s "$work/private/file" kymo.kymo
mallory ln -s "$work/private/file" trace.kymo
cp ../a.json a.json
mallory ln -s "$work/private/file" a.part.json
run "$kymo" split --to 1us a.json
mv out err ..
cd ..
[ "$code" -ne 0 ] && [ "$(cat private/file)" = secret ] && [ ! -e open/a.part.json.old ] && [ -L open/a.part.json ]
report "split: a default name that is another's link" $?

# Sessions inside of a program of root: the program runs, the file stays.
for mode in stream ring; do
	for kind in link "link to a new file" file; do
		rm -rf open/*
		case $kind in
		link) mallory ln -s "$work/private/file" open/out.json ;;
		"link to a new file") mallory ln -s "$work/private/new" open/out.json ;;
		file) mallory sh -c ': >open/out.json' ;;
		esac
		run env KYMO_MODE=$mode KYMO_TRACE="$work/open/out.json" "$target" children 0
		[ "$code" -eq 0 ] && [ "$(cat private/file)" = secret ] && [ ! -e private/new ] &&
			{ [ "$kind" != file ] || [ ! -s open/out.json ]; }
		report "a $mode session: another's $kind in a sticky directory" $?
	done
done

# Modes: umask allows everything here.
rm -rf open/* fresh
mkdir fresh
run "$kymo" convert a.kymo fresh/convert.json
run "$kymo" split --to 1us a.json -o fresh/split.json
run "$kymo" merge --offset a.kymo=0 -o fresh/merge.json a.json a.kymo
run "$kymo" repair a.kymo -o fresh/repair.kymo
run "$kymo" run -o fresh/run.kymo "$target" children 1
run "$kymo" run -o fresh/run.json "$target" children 1
run "$kymo" run -o 'fresh/run.${rotation}.kymo' --max-size 1M "$target" children 1
run env KYMO_TRACE=fresh/stream.json "$target" children 1
run env KYMO_MODE=ring KYMO_TRACE=fresh/ring.json "$target" children 0
find fresh -type f ! -perm 600 >out
[ ! -s out ] && [ "$(find fresh -type f | wc -l)" -ge 9 ]
report "new files are their owner's alone" $?

for name in convert.json run.kymo run.json ring.json; do
	chown 54321:54322 fresh/$name
	chmod 664 fresh/$name
done
run "$kymo" convert a.kymo fresh/convert.json
run "$kymo" run -o fresh/run.kymo "$target" children 1
run "$kymo" run -o fresh/run.json "$target" children 1
run env KYMO_MODE=ring KYMO_TRACE=fresh/ring.json "$target" children 0
for name in convert.json run.kymo run.json ring.json; do
	[ "$(stat -c '%u:%g %a' fresh/$name)" = "54321:54322 664" ]
	report "a replaced file keeps its owner and mode: $name" $?
done

# KYMO_DRUM_DIR in such a directory: another's file with the name that the program would take.
alice() { setpriv --reuid 54322 --regid 54322 --clear-groups "$@"; }
for kind in file folder; do
	rm -rf open/* go
	mkfifo go
	chmod 666 go
	# shellcheck disable=SC2016
	alice env KYMO_DRUM_DIR="$work/open" KYMO_CATEGORIES='*' sh -c 'echo $$ >open/pid; read -r line <go; exec "$0" children 0' \
		"$target" >out 2>err &
	until [ -s open/pid ]; do sleep 0.1; done
	pid=$(cat open/pid)
	if [ "$kind" = file ]; then
		mallory sh -c ": >open/kymo-$pid.drum; : >open/kymo-$pid.drum.old"
	else
		mallory mkdir "open/kymo-$pid.drum"
	fi
	echo >go
	wait $!
	code=$?
	made=$(find open -name 'kymo-*.drum' -type f -user 54322 -perm 600)
	[ "$code" -eq 0 ] && [ -n "$made" ] && "$kymo" validate "$made" >out 2>err
	report "KYMO_DRUM_DIR: another's $kind does not switch the recorder off" $?
done

finish_checks
