#!/bin/sh
# usage: write_sbom.sh VERSION COMPILED_IN
# Prints a CycloneDX bill of materials: Switchyard's VERSION, the components in the file COMPILED_IN (as
# describe_packages.sh writes them), and every package that is installed.
set -eu
version=$1
compiled_in=$2

cat <<END
{
  "bomFormat": "CycloneDX",
  "specVersion": "1.4",
  "version": 1,
  "metadata": {"component": {"type": "application", "name": "switchyard", "version": "$version"}},
  "components": [
END
cat "$compiled_in"
"$(dirname "$0")/describe_packages.sh" | sed '$ s/,$//'
printf '  ]\n}\n'
