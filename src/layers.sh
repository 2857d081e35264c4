#!/bin/sh
# SPDX-License-Identifier: MIT
# layers.sh FOLDER LAYER...: make the folder hold a link to each of these layers of the source, and nothing else.
set -eu
source=$(cd "$(dirname "$0")" && pwd)
folder=$1
shift
rm -rf "$folder"
mkdir -p "$folder"
for layer; do
	[ ! -d "$source/$layer" ] || ln -s "$source/$layer" "$folder/$layer"
done
