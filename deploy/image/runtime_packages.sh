#!/bin/sh
# usage: runtime_packages.sh PROGRAM
# Prints the Debian packages whose shared libraries PROGRAM loads, one a line. So the image's list is never out of date.
set -eu
program=$1

libraries=$(ldd "$program")
if echo "$libraries" | grep 'not found' >&2; then
  echo "$0: $program lacks these libraries" >&2
  exit 1
fi
echo "$libraries" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | while read -r library; do
  file=$(readlink -f "$library")
  # Where /lib is a link to /usr/lib, dpkg knows a file under the one name that its package has.
  dpkg-query -S "$file" 2>/dev/null || dpkg-query -S "${file#/usr}" || exit 1
done | sed 's/: .*//' | sort -u
