#!/usr/bin/env bash
# For each bundled model: serves it, streams one completion, shows speed and which attention expert did how much.
# usage: tools/demo.sh [PROGRAM]    (default: build/release/switchyard)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
switchyard=${1:-$root/build/release/switchyard}
work=$(mktemp -d)
log=$work/server.log
: > "$log"
server=

# Whatever happens, no server stays behind. A failure shows what the server said last.
clean_up() {
  local status=$?
  trap - EXIT INT TERM
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  if [ "$status" -ne 0 ]; then
    echo "demo failed (exit status $status). The server's last words:" >&2
    tail -n 20 "$log" >&2
  fi
  rm -rf "$work"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Sets `port` once the server listens; fails when it ends before that, or takes over a minute.
wait_for_port() {
  port=
  for _ in $(seq 1200); do
    port=$(sed -n 's/.*event=listening .*port=\([0-9]*\).*/\1/p' "$log")
    [ -z "$port" ] || return 0
    kill -0 "$server" 2>/dev/null || return 1
    sleep 0.05
  done
  return 1
}

demonstrate() {
  local model=$1 title=$2 kind=$3 prompt=$4
  local folder=$root/models/$model

  echo
  echo "=== $title (models/$model)"
  "$switchyard" inspect "$folder" | sed -n '/^parameters/p; /^attention/p; /^  experts/p'
  echo
  echo "[demo] starting the server"
  : > "$log"
  "$switchyard" serve --model "$folder" --listen 127.0.0.1:0 2> "$log" &
  server=$!
  wait_for_port
  address=127.0.0.1:$port
  echo "[demo] waiting until $address says SERVING (grpc.health.v1)"
  "$switchyard" health --server "$address" --wait 60 > /dev/null
  echo "[demo] the prompt, and the completion as it is produced:"
  echo
  printf '%s' "$prompt"
  "$switchyard" generate --server "$address" --prompt "$prompt" --max-tokens 120 --temperature 0.7 --seed 1 \
    --stats 2> "$work/stats" || { cat "$work/stats" >&2; return 1; }
  echo
  echo "[demo] $(cat "$work/stats")"
  echo "[demo] how many tokens each attention expert handled:"
  echo
  "$switchyard" experts --server "$address" --kind "$kind"
  echo
  echo "[demo] stopping the server"
  kill -TERM "$server"
  wait "$server"
  server=
}

demonstrate bible-moa "Mixture of attention heads (MoA), in the JetMoE layout" attn \
  "And it came to pass in those days, that"
demonstrate bible-switchhead "SwitchHead: experts inside each attention head" attn_v \
  "Then the king said unto the people,"
echo
echo "Done. To see the experts of a running model as a heat map, open http://127.0.0.1:8080/ after"
echo "  $switchyard serve --model $root/models/bible-moa --http 127.0.0.1:8080 &"
echo "  $switchyard health --server localhost:50051 --wait 60"
echo "  $switchyard bench --server localhost:50051 --concurrency 4 --duration 60"
