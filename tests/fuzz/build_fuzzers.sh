#!/usr/bin/env bash
# Configures and builds the fuzz preset into build/fuzz.
set -euo pipefail
cd "$(dirname "$0")/../.."
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
cmake --preset fuzz --log-level=WARNING
exec cmake --build --preset fuzz
