#!/bin/sh
# usage: describe_packages.sh [PACKAGE...]
# Prints CycloneDX components, each followed by a comma, for the given Debian packages, or for all that are installed.
set -eu

# In the version of a package URL, Debian's "+", ":" and "~" have to be escaped, but not in the version itself: so each
# line carries it twice.
dpkg-query -W -f '${db:Status-Status}|${Package}|${Version}|${Architecture}\n' "$@" | sort -u | awk -F '|' '
  $1 == "installed" {
    escaped = $3
    gsub(/\+/, "%2B", escaped)
    gsub(/:/, "%3A", escaped)
    gsub(/~/, "%7E", escaped)
    printf "    {\"type\": \"library\", \"name\": \"%s\", \"version\": \"%s\", ", $2, $3
    printf "\"purl\": \"pkg:deb/debian/%s@%s?arch=%s\"},\n", $2, escaped, $4
  }'
