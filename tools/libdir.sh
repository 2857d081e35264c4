#!/bin/sh
# SPDX-License-Identifier: MIT
# libdir.sh: print the folder, below a prefix, where this system looks for libraries: the one that holds its C
# library (lib/x86_64-linux-gnu on Debian, lib64 on Fedora, lib elsewhere).
set -eu
libc=$(${CC:-cc} -print-file-name=libc.so.6 2> /dev/null) && libc=$(realpath -q "$libc") || libc=
folder=$(dirname "$libc")
folder=${folder#/usr}
case $folder in
/lib | /lib64 | /lib/*) echo "${folder#/}" ;;
*) echo lib ;;
esac
