#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh SOURCE BUILD: installs the build into a scratch folder and uses it from there as others would:
# every header alone, programs in C11 and C++11 with gcc and clang, through pkg-config and CMake, with
# the shared and the static library; each program must leave a trace.
set -euo pipefail
source_dir=$(cd "$1" && pwd)/tests/install
build=$(cd "$2" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
warnings="-Wall -Wextra -Wpedantic -Werror"

DESTDIR=$scratch/root meson install -C "$build" --no-rebuild --quiet > install.log 2>&1 ||
	{ cat install.log; exit 1; }
pc=$(find root -name kymo.pc)
[ -n "$pc" ] || { echo "kymo.pc was not installed"; exit 1; }
libdir=$scratch/$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$scratch/root
# Sanitized and coverage builds are no packages.
unset KYMO_TRACE KYMO_CATEGORIES KYMO_BUFFER KYMO_DRUM_DIR KYMO_DRUM_FD KYMO_DRUM_MAIL

# The library stays small: 200 KiB without debug information.
strip -o small.so "$libdir/libkymo.so.0"
[ "$(stat -c %s small.so)" -lt 204800 ] ||
	{ echo "libkymo.so is too large: $(stat -c %s small.so) bytes of 204800"; exit 1; }

# Each page that kymo(1) refers to is there, unless pages cannot be made here.
pages=$(dirname "$(find root -name kymo.1)")
if [ -e "$pages/kymo-run.1" ]; then
	for page in $(grep -o 'kymo\\*-[a-z]* (1)' "$pages/kymo.1" | tr -d '\\' | sed 's/ .*//' | sort -u); do
		[ -e "$pages/$page.1" ] || { echo "the page $page.1 was not installed"; exit 1; }
	done
fi

compilers="gcc:g++"
if command -v clang++ > /dev/null; then
	compilers="$compilers clang:clang++"
else
	echo "clang is not installed: gcc alone"
fi

# Every header compiles alone, whatever else the program defines.
check_headers()
{
	local header name
	for header in $(find root -path '*/include/kymo/*.h'); do
		name=kymo/$(basename "$header")
		echo "#include <$name>" > header.c
		for define in UNUSED KYMO_DISABLE; do
			for std in c11 c17; do
				$1 -std=$std $warnings -D$define $(pkg-config --cflags kymo) -fsyntax-only header.c
			done
			for std in c++11 c++17 c++20; do
				$2 -std=$std $warnings -D$define $(pkg-config --cflags kymo) -x c++ \
					-fsyntax-only header.c
			done
		done
	done
	# What a library that embeds kymo ships.
	echo '#include <kymo/kymo.h>' > header.c
	$1 -std=c11 $warnings -DKYMO_EMBEDDED $(pkg-config --cflags kymo) -fsyntax-only header.c
	$2 -std=c++11 $warnings -DKYMO_EMBEDDED $(pkg-config --cflags kymo) -x c++ -fsyntax-only header.c
}

# No macro of the program changes what the headers mean: each of their ordinary words is one here.
check_words()
{
	local define
	for define in UNUSED KYMO_DISABLE KYMO_EMBEDDED 'KYMO_STATIC_CATEGORIES="net"'; do
		$1 -std=c11 $warnings "-D$define" $(pkg-config --cflags kymo) -I. -fsyntax-only "$source_dir/clash.c"
		$2 -std=c++11 $warnings "-D$define" $(pkg-config --cflags kymo) -I. -x c++ \
			-fsyntax-only "$source_dir/clash.c"
	done
}
headers=$(dirname "$(find root -path '*/include/kymo/kymo.h')")
python3 "$source_dir/words.py" "$headers"/{kymo{,_args,_impl},trace_event{,_impl}}.h > words.h

# The program leaves a trace where it says itself, and where the environment says.
check_run()
{
	local file
	rm -f own.json environment.json
	LD_LIBRARY_PATH=$libdir ./"$1" own.json
	LD_LIBRARY_PATH=$libdir KYMO_TRACE=environment.json ./"$1"
	for file in own.json environment.json; do
		grep -q consumer_work "$file" ||
			{ echo "$2: $file does not hold the program's span"; exit 1; }
	done
	echo "ok: $2"
}

# name, compiler and standard, source
check_pkg_config()
{
	local flags libs
	flags="$(pkg-config --cflags kymo) $warnings -O2"
	libs=$(pkg-config --static --libs kymo)
	$2 $flags -o shared "$3" $(pkg-config --libs kymo)
	check_run shared "pkg-config, shared, $1"
	$2 $flags -o static "$3" ${libs/-lkymo/-l:libkymo.a}
	readelf -d static | grep -q libkymo && { echo "static: needs libkymo.so"; exit 1; }
	check_run static "pkg-config, static, $1"
}

check_cmake()
{
	local program
	rm -rf project cmake.log
	cmake -S "$source_dir" -B project -DCMAKE_C_COMPILER="$1" -DCMAKE_CXX_COMPILER="$2" \
		-DCMAKE_PREFIX_PATH="${libdir%/lib*}" -DCMAKE_BUILD_TYPE=Release > cmake.log 2>&1 &&
		cmake --build project >> cmake.log 2>&1 || { cat cmake.log; exit 1; }
	for program in c_kymo c_static cpp_kymo cpp_static; do
		cp "project/consumer_$program" .
		check_run "consumer_$program" "CMake, $program, $1"
	done
}

for pair in $compilers; do
	cc=${pair%:*}
	cxx=${pair#*:}
	check_headers "$cc" "$cxx"
	check_words "$cc" "$cxx"
	echo "ok: headers, $cc"
	check_pkg_config "$cc C11" "$cc -std=c11" "$source_dir/consumer.c"
	check_pkg_config "$cxx C++11" "$cxx -std=c++11" "$source_dir/consumer.cpp"
	if command -v cmake > /dev/null; then
		check_cmake "$cc" "$cxx"
	else
		echo "cmake is not installed: pkg-config alone"
	fi
done
