#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# sysctls.sh: tests on a system that is as strict as the distributions' own.
#
#	sysctls.sh USERS.SH KYMO CAPTURE_TARGET [TEST...]
#
# Sets the kernel's settings, runs users.sh and the tests, and puts back what was set before. Exit 1 when one failed, 77 when
# the settings cannot be changed.
set -u
# A setting that the kernel does not have is left out (yama is a module of its own).
settings="fs/protected_symlinks=1 fs/protected_hardlinks=1 fs/protected_fifos=2 fs/protected_regular=2
	kernel/perf_event_paranoid=3 kernel/kptr_restrict=1 kernel/dmesg_restrict=1 kernel/yama/ptrace_scope=1"

# Nobody else who does the same takes our values for the old ones.
if ! exec 9</proc/sys/fs/protected_symlinks || ! flock 9; then
	echo "skipped: there are no settings in /proc/sys"
	exit 77
fi
before=()
restore() {
	local setting
	for setting in "${before[@]}"; do
		echo "${setting#*=}" 2>/dev/null >"/proc/sys/${setting%%=*}"
	done
}
trap restore EXIT
trap 'exit 1' HUP INT TERM
for setting in $settings; do
	file=/proc/sys/${setting%%=*}
	[ -e "$file" ] || continue
	old=$(cat "$file")
	if ! echo "${setting#*=}" 2>/dev/null >"$file"; then
		echo "skipped: $file cannot be set; it takes root, and a /proc/sys that may be written"
		exit 77
	fi
	before+=("${setting%%=*}=$old")
done

failures=0
run() {
	echo "== $*"
	"$@" 9<&-
	case $? in
	0 | 77) ;;
	*)
		echo "$1: FAILED"
		failures=$((failures + 1))
		;;
	esac
}
run bash "$1" "$2" "$3"
shift 3
for program in "$@"; do
	run "$program"
done
[ "$failures" -eq 0 ]
