#!/usr/bin/env bash
# Includes point down only: program -> clients, server -> engine -> engine/model -> kernels -> base, text -> base,
# clients -> proto. Prints every include that points up. With --self-test it first proves that it would find one.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
bad=0

# forbid FOLDER 'A|B': no file in FOLDER includes from A or B.
forbid() {
  [ -d "$1" ] || return 0
  if grep -rnE "#include [\"<]($2)/" "$1" --include='*.h' --include='*.cc' --include='*.cu' --include='*.cuh'; then
    bad=1
  fi
}

check() {
  cd "$1" || exit 2
  forbid base 'text|kernels|engine|proto|switchyard|server|clients|program|tests'
  forbid text 'kernels|engine|proto|switchyard|server|clients|program|tests'
  forbid kernels 'text|engine|proto|switchyard|server|clients|program|tests'
  forbid engine 'text|proto|switchyard|server|clients|program|tests'
  forbid server 'clients|program|tests'
  forbid clients 'text|kernels|engine|server|program|tests'
  forbid program 'tests'
  # The model knows nothing of the scheduler, and no family knows another layer's business.
  if [ -d engine/model ] && grep -rnE '#include "engine/[a-z_0-9]+\.h"' engine/model; then
    bad=1
  fi
  # Only base/ names absl::Status.
  if grep -rnE 'absl::(Status|StatusOr|InvalidArgumentError|OkStatus)\b' text kernels engine server clients program \
    --include='*.h' --include='*.cc' 2>/dev/null; then
    bad=1
  fi
}

if [ "${1:-}" = --self-test ]; then
  seeded=$(mktemp -d)
  trap 'rm -rf "$seeded"' EXIT
  mkdir -p "$seeded"/kernels "$seeded"/engine/model
  echo '#include "engine/engine.h"' >"$seeded"/kernels/a.h
  echo '#include "engine/scheduler.h"' >"$seeded"/engine/model/b.h
  found=$(check "$seeded")
  if [ "$(grep -c include <<<"$found")" -ne 2 ]; then
    echo "self-test: expected 2 violations to be found, got: $found"
    exit 1
  fi
  bad=0
fi
check "$root"
exit $bad
