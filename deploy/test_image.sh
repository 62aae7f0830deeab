#!/usr/bin/env bash
# Builds the image with buildah, without a registry or a daemon, and runs the demo in it as a cluster would: another user, a
# root that cannot be written, no capabilities. Prints the size. Exit status 77: this environment cannot build images.
#   deploy/test_image.sh [WORK_FOLDER]
#     BASE, BUILD_BASE  images to stand on and to compile in; a Debian 12 made by debootstrap when absent
#     SWITCHYARD_CUDA   ON builds the CUDA image; CUDA_TOOLKIT: a toolkit that is mounted into the build
#     CCACHE_DIR        what was compiled before; by default that of the ccache here, if there is one
#     SWITCHYARD_IMAGE_TAG  name of the image, which stays in the storage of buildah under WORK_FOLDER
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=${1:-$root/build/image}
tag=${SWITCHYARD_IMAGE_TAG:-localhost/switchyard:test}
suite=bookworm
mkdir -p "$work"
work=$(cd "$work" && pwd)

skip() { echo "SKIPPED: $1"; exit 77; }
fail() { echo "FAILED: $1" >&2; exit 1; }
say() { echo "[image] $1"; }

[ "$(id -u)" -eq 0 ] || skip "building an image in a chroot needs root"
for command in buildah debootstrap; do
  command -v $command > /dev/null || skip "no $command here; tools/install_dependencies.sh test installs it"
done
unshare --mount --pid --fork true 2>/dev/null || skip "this environment forbids mount and process namespaces"

# Everything of buildah lies under $work; overlayfs where the kernel lets us stack it, else plain copies.
probe_overlay() {
  rm -rf "$work/probe" && mkdir -p "$work/probe"/{low,up,work,all}
  unshare --mount mount -t overlay -o "lowerdir=$work/probe/low,upperdir=$work/probe/up,workdir=$work/probe/work" \
    overlay "$work/probe/all" 2>/dev/null
}
driver=vfs
if probe_overlay; then driver=overlay; fi
rm -rf "$work/probe"
build_with() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver "$driver" "$@"; }

server=
container=
clean_up() {
  local status=$?
  trap - EXIT
  [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
  [ -z "$container" ] || build_with rm "$container" > /dev/null 2>&1 || true
  # 77 is for what is said with `skip`, whatever the commands in between return.
  exit "$status"
}
trap clean_up EXIT

# The package sources of this machine, for the base and for apt in the build; Debian's own only.
make_apt_folder() {
  local wanted='deb $(REPO_URI) $(RELEASE) $(COMPONENT)'
  rm -rf "$work/apt" && mkdir -p "$work/apt"/{apt.conf.d,preferences.d,sources.list.d,trusted.gpg.d}
  apt-get indextargets --format "$wanted" 'Created-By: Packages' 'Origin: Debian' > "$work/apt/sources.list"
  if [ ! -s "$work/apt/sources.list" ]; then
    apt-get update -qq
    apt-get indextargets --format "$wanted" 'Created-By: Packages' 'Origin: Debian' > "$work/apt/sources.list"
  fi
  [ -s "$work/apt/sources.list" ] || skip "apt knows no source of Debian packages"
  cp /etc/apt/trusted.gpg.d/debian-* "$work/apt/trusted.gpg.d/" 2>/dev/null || true
  # Proxies and the like. The base's own settings keep .deb files, and would be missed.
  apt-config dump | grep -E '^(Acquire::(http|https|Retries)|APT::Install-)' > "$work/apt/apt.conf.d/90host" || true
}

make_base() {
  BASE=localhost/switchyard-base:$suite
  BUILD_BASE=${BUILD_BASE:-$BASE}
  if build_with inspect --type image "$BASE" > /dev/null 2>&1; then
    return
  fi
  local mirror
  mirror=$(awk -v suite=$suite '$3 == suite {print $2; exit}' "$work/apt/sources.list")
  [ -n "$mirror" ] || skip "apt knows no source of Debian $suite"
  say "debootstrap $suite"
  rm -rf "$work/base"
  debootstrap --variant=minbase "$suite" "$work/base" "$mirror" > "$work/debootstrap.log" 2>&1 \
    || { tail -n 5 "$work/debootstrap.log"; fail "debootstrap failed"; }
  rm -rf "$work/base"/var/{cache/apt/*,lib/apt/lists/*,log/*}
  local scratch
  scratch=$(build_with from scratch)
  build_with copy -q "$scratch" "$work/base/" / > /dev/null
  build_with config --cmd bash "$scratch"
  build_with commit -q "$scratch" "$BASE" > /dev/null
  build_with rm "$scratch" > /dev/null
  rm -rf "$work/base"
}

build_image() {
  local mounts=(-v "$work/apt:/etc/apt:ro")
  local cache=${CCACHE_DIR:-$(ccache -k cache_dir 2>/dev/null || true)}
  if [ -n "$cache" ] && [ -d "$cache" ]; then mounts+=(-v "$cache:/ccache"); fi
  if [ -n "${CUDA_TOOLKIT:-}" ]; then mounts+=(-v "$(readlink -f "$CUDA_TOOLKIT"):/usr/local/cuda:ro"); fi
  say "building $tag on $BASE ($driver)"
  # The docker format, because OCI's has no health check.
  build_with build --isolation chroot --format docker --layers=false --pull-never -q "${mounts[@]}" \
    --build-arg BASE="$BASE" --build-arg BUILD_BASE="$BUILD_BASE" --build-arg VERSION="$version" \
    --build-arg REVISION="$revision" --build-arg SWITCHYARD_CUDA="${SWITCHYARD_CUDA:-OFF}" \
    -t "$tag" "$root" > "$work/build.log" 2>&1 || { tail -n 30 "$work/build.log"; fail "the build failed"; }
}

setting() { build_with inspect --type image --format "{{$1}}" "$tag"; }

expect() { [ "$2" = "$3" ] || fail "$1 is \"$2\", not \"$3\""; }

check_settings() {
  expect "the user" "$(setting .Docker.Config.User)" 65532:65532
  expect "the version label" "$(setting 'index .Docker.Config.Labels "org.opencontainers.image.version"')" "$version"
  expect "the revision label" "$(setting 'index .Docker.Config.Labels "org.opencontainers.image.revision"')" "$revision"
  [ -n "$(setting 'index .Docker.Config.Labels "org.opencontainers.image.title"')" ] || fail "there is no title label"
  health=$(setting 'join .Docker.Config.Healthcheck.Test " "' 2>/dev/null || setting .Docker.Config.Healthcheck.Test)
  [[ $health == *"switchyard health --server 127.0.0.1:50051"* ]] || fail "the health check is \"$health\""
}

check_files() {
  local found
  found=$(find "$files" -xdev \( -name 'cc1*' -o -name 'x86_64-linux-gnu-g*' -o -name cmake -o -name ninja -o -name nvcc \
    -o \( -name ccache -type f \) -o -name protoc -o -name '*.proto' -o -name engine_core.cc \) -print -quit)
  [ -z "$found" ] || fail "the image has $found"
  for folder in source build-image build-scripts ccache; do
    [ -z "$(ls -A "$files/$folder" 2>/dev/null)" ] || fail "/$folder is not empty"
  done
  found=$(chroot "$files" dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed \(.*-dev\|g++.*\|gcc-12\|make\)$/\1/p')
  [ -z "$found" ] || fail "the image has the packages $found"
  found=$(find "$files" -xdev \( -type f -o -type d \) -perm -o+w ! -perm -1000 -print -quit)
  [ -z "$found" ] || fail "everybody may write $found"
  python3 - "$files/usr/share/switchyard/sbom.cdx.json" "$version" "$(chroot "$files" dpkg-query -W -f '${db:Status-Status} ${Package}=${Version}\n')" <<'END'
import json, sys
bill = json.load(open(sys.argv[1], encoding="utf-8"))
assert bill["bomFormat"] == "CycloneDX" and bill["specVersion"] == "1.4", bill
assert bill["metadata"]["component"] == {"type": "application", "name": "switchyard", "version": sys.argv[2]}
listed = {f"{part['name']}={part['version']}" for part in bill["components"]}
installed = {line.split()[1] for line in sys.argv[3].splitlines() if line.startswith("installed ")}
assert installed <= listed, f"not in the bill of materials: {sorted(installed - listed)}"
names = {part["name"] for part in bill["components"]}
assert {"libgrpc++1.51", "nlohmann-json3-dev", "libsentencepiece-dev"} <= names, names
assert all(part["purl"].startswith("pkg:deb/debian/") for part in bill["components"])
print(f"[image] bill of materials: {len(bill['components'])} components")
END
}

# Runs a command with the image's files as a read-only root, and with nothing but the demo models beside them.
in_image() {
  unshare --mount --pid --fork --kill-child bash -c '
    files=$1 models=$2; shift 2
    mount --bind "$files" "$files" && mount -o remount,bind,ro "$files"
    mount -t proc proc "$files/proc" && mount --rbind /dev "$files/dev"
    mount --bind "$models" "$files/model" && mount -o remount,bind,ro "$files/model"
    exec chroot "$files" setpriv --reuid 65532 --regid 65532 --clear-groups --bounding-set=-all --inh-caps=-all \
      --no-new-privs -- "$@"' -- "$files" "$root/models" "$@"
}

# The server itself, below the shell and `unshare`, which keeps signals from its child.
process_in_image() {
  local process=$server children
  while children=$(cat "/proc/$process/task/$process/children") && [ -n "$children" ]; do
    process=${children%% *}
  done
  echo "$process"
}

wait_for_log() {
  for _ in $(seq 1200); do
    if grep -q "$1" "$work/server.log"; then return; fi
    kill -0 "$server" 2>/dev/null || break
    sleep 0.05
  done
  tail -n 5 "$work/server.log" >&2
  fail "the server did not log $1"
}

check_demo() {
  in_image sh -c '! touch /tmp/x 2>/dev/null && ! touch /usr/bin/x 2>/dev/null && [ "$(id -u):$(id -g)" = 65532:65532 ]' \
    || fail "the root is not read-only, or the user is another"
  expect "--version" "$(in_image switchyard --version)" "switchyard $version"

  in_image switchyard serve --model /model/bible-moa --listen 127.0.0.1:0 --http 127.0.0.1:0 2> "$work/server.log" &
  server=$!
  wait_for_log event=ready
  local port http
  port=$(sed -n 's/.*event=listening .*port=\([0-9]*\).*/\1/p' "$work/server.log")
  http=$(sed -n 's/.*event=http_listening .*port=\([0-9]*\).*/\1/p' "$work/server.log")
  expect "health" "$(in_image switchyard health --server "127.0.0.1:$port")" SERVING
  local said
  said=$(in_image switchyard generate --server "127.0.0.1:$port" --prompt "And the king said" --max-tokens 8 --temperature 0)
  say "completion: $said"
  [ -n "$said" ] || fail "the completion is empty"
  curl -fsS "http://127.0.0.1:$http/metrics" | grep -q '^switchyard_requests_total{.*outcome="length"} 1$' || fail "/metrics does not count the completion"

  # A request is running when the signal comes; it must be finished, and the exit status must say so. As in a container, the
  # server is process 1 of its namespace, for which a signal without a handler does nothing.
  in_image switchyard generate --server "127.0.0.1:$port" --prompt "And the king said" --max-tokens 500 --ignore-eos \
    > "$work/drained.txt" 2> "$work/drained.err" &
  local client=$!
  for _ in $(seq 400); do
    if curl -fsS "http://127.0.0.1:$http/v1/load" | grep -q '"running_requests": 1'; then break; fi
    sleep 0.01
  done
  kill -TERM "$(process_in_image)"
  wait "$client" || fail "the running request was not finished: $(cat "$work/drained.err")"
  wait "$server" || fail "the server ended with status $?"
  server=
  grep -q 'event=drained streams_left=0' "$work/server.log" || fail "the server did not drain"
}

version=$(sed -n 's/^project(switchyard VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
revision=$(git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown)
make_apt_folder
if [ -z "${BASE:-}" ]; then make_base; else BUILD_BASE=${BUILD_BASE:-$BASE}; fi
build_image
container=$(build_with from --pull-never "$tag")
files=$(build_with mount "$container")
check_settings
check_files
check_demo
say "$tag: $(du -smx "$files" | cut -f1) MB unpacked, of that $(du -sm "$files/usr/bin/switchyard" | cut -f1) MB the program"
say "all checks passed"
