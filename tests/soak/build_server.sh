#!/usr/bin/env bash
# Configures and builds the server of a sanitizer's preset: build_server.sh asan|tsan
set -euo pipefail
cd "$(dirname "$0")/../.."
cmake --preset "$1" --log-level=WARNING
exec cmake --build --preset "$1" --target switchyard
