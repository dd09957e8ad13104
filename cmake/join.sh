#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: join.sh LIBRARY ARCHIVE COMMAND... -o OBJECT ...
# Runs COMMAND, which makes OBJECT (kiln.o), leaves in it only the names that LIBRARY exports, and puts it into ARCHIVE.
# All code comes to lie in one section, kiln_text, by which a program that is linked with it knows our frames from its own.
set -eu
library=$1 archive=$2
shift 2
nm -D --defined-only "$library" | awk '{print $3}' > kiln.names
sed 's/^/-Wl,-u,/' kiln.names > kiln.roots
"$@" -Wl,--gc-sections @kiln.roots
objdump -h kiln.o | awk '$2 ~ /^\.text/ { print "--rename-section", $2 "=kiln_text" }' | sort -u > kiln.sections
objcopy --keep-global-symbols=kiln.names @kiln.sections kiln.o
rm -f "$archive"
ar rcsD "$archive" kiln.o
rm -f kiln.o kiln.names kiln.roots kiln.sections
