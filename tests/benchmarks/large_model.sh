#!/usr/bin/env bash
# Whether a model of the largest published size (JetMoE-8B, 17 GB of BF16, random weights) is inspected, loaded and run
# within limits. Prints each number with its limit; exits with 1 when one is missed.
#   tests/benchmarks/large_model.sh [FOLDER] [PROGRAM] [SHAPE]
#     FOLDER   where the model is, or is made and afterwards removed again (default: /tmp/switchyard-jetmoe-8b)
#     PROGRAM  default: build/release/switchyard
#     SHAPE    of tools/make_random_model (default: jetmoe-8b)
# Needs 18 GB of disk for the model and of memory for the server. Run as root it also measures with a cold page cache.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-/tmp/switchyard-jetmoe-8b}
program=${2:-$root/build/release/switchyard}
shape=${3:-jetmoe-8b}
python=${SWITCHYARD_PYTHON:-/usr/bin/python3}
kv_cache_bytes=$((256 << 20))
generated_tokens=8
log=$(mktemp)
server=""
made=""
missed=0

# shellcheck disable=SC2317  # the trap calls it
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  [ -z "$made" ] || rm -rf "$folder"
  rm -f "$log"
}
trap finish EXIT

now() { date +%s.%N; }
since() { awk -v begin="$1" -v end="$(now)" 'BEGIN { printf "%.2f", end - begin }'; }
product() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a * b }'; }

# expect_below WHAT VALUE LIMIT UNIT
expect_below() {
  if awk -v value="$2" -v limit="$3" 'BEGIN { exit !(value < limit) }'; then
    echo "$1: $2 $4 (limit $3)"
  else
    echo "$1: $2 $4 MISSES the limit $3"
    missed=1
  fi
}

can_drop_caches() { [ -w /proc/sys/vm/drop_caches ]; }
make_cold() {
  sync
  echo 3 >/proc/sys/vm/drop_caches
}

read_once() {
  local begin
  begin=$(now)
  for file in "$folder"/*.safetensors; do
    dd if="$file" of=/dev/null bs=16M status=none
  done
  since "$begin"
}

inspect_once() {
  local begin
  begin=$(now)
  "$program" inspect "$folder" >/dev/null
  since "$begin"
}

kilobytes_of() { awk -v field="$1:" '$1 == field { print $2 }' "/proc/$server/status"; }

# Starts the server, waits until it is ready, generates, and reads its memory. $1: cold or warm. $2: seconds of one read.
serve_once() {
  local begin port ready_s limit_bytes
  begin=$(now)
  "$program" serve --model "$folder" --listen 127.0.0.1:0 --kv-cache-memory "$kv_cache_bytes" 2>"$log" &
  server=$!
  until grep -q 'event=ready' "$log"; do
    kill -0 "$server" 2>/dev/null || { cat "$log" >&2; exit 1; }
    sleep 0.02
  done
  ready_s=$(since "$begin")
  expect_below "ready, $1" "$ready_s" "$(product "$2" 1.2)" "s; one sequential read: $2 s; limit of it + 20 %"
  port=$(sed -n 's/.*event=ready .*port=\([0-9]*\).*/\1/p' "$log")

  begin=$(now)
  "$program" generate --server "127.0.0.1:$port" --prompt-tokens 1,17,900,31999 --max-tokens "$generated_tokens" \
    --ignore-eos --temperature 0 --format ids | tr '\n' ' '
  echo
  echo "generated $generated_tokens tokens, $1: $(since "$begin") s"

  # The resident part of the mapped files counts, as it does for whoever looks at the process.
  limit_bytes=$((weights_bytes + kv_cache_bytes + 1000000000))
  expect_below "peak resident memory, $1" $(($(kilobytes_of VmHWM) * 1024)) "$limit_bytes" "bytes"
  kill "$server"
  wait "$server" || true
  server=""
}

if [ ! -e "$folder/config.json" ]; then
  made=yes
  "$python" "$root/tools/make_random_model" --shape "$shape" --output "$folder"
fi
weights_bytes=$(stat -c %s "$folder"/*.safetensors | awk "{ sum += \$1 } END { printf \"%.0f\", sum }")
echo "weights: $weights_bytes bytes; KV cache: $kv_cache_bytes bytes"

if can_drop_caches; then
  make_cold
  expect_below "inspect, cold" "$(inspect_once)" 2 "s"
  make_cold
  read_cold_s=$(read_once)
  make_cold
  serve_once cold "$read_cold_s"
else
  echo "not root: the page cache cannot be emptied, so nothing is measured cold"
fi
read_once >/dev/null
expect_below "inspect, warm" "$(inspect_once)" 2 "s"
serve_once warm "$(read_once)"
exit $missed
