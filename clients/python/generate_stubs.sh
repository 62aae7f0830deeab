#!/bin/sh
# Generates switchyard/v1/*_pb2.py and *_pb2_grpc.py from proto/ into a folder.
# usage: generate_stubs.sh OUTPUT_FOLDER
# Uses protoc and its Python gRPC plugin (Debian: protobuf-compiler, protobuf-compiler-grpc), else the
# grpcio-tools of the python3 that is found first (or of $PYTHON).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
proto=$here/../../proto
output=${1:?usage: generate_stubs.sh OUTPUT_FOLDER}
python=${PYTHON:-python3}

if [ ! -d "$proto" ]; then
  # A source distribution has no proto/ beside it but holds what was generated when it was made.
  if [ -f "$output/switchyard/v1/inference_pb2.py" ]; then
    exit 0
  fi
  echo "error: $proto does not exist; generate the stubs in a complete source tree" >&2
  exit 1
fi

mkdir -p "$output/switchyard/v1"
files="switchyard/v1/inference.proto switchyard/v1/experts.proto switchyard/v1/error_details.proto"
plugin=$(command -v grpc_python_plugin || true)
# No quotes around $files: it is three arguments.
if command -v protoc >/dev/null && [ -n "$plugin" ]; then
  protoc -I "$proto" --python_out="$output" --grpc_out="$output" \
    --plugin=protoc-gen-grpc="$plugin" $files
elif "$python" -c 'import grpc_tools.protoc' 2>/dev/null; then
  "$python" -m grpc_tools.protoc -I "$proto" --python_out="$output" --grpc_python_out="$output" $files
else
  echo "error: neither protoc with grpc_python_plugin nor grpcio-tools was found;" \
    "install protobuf-compiler and protobuf-compiler-grpc, or pip install grpcio-tools" >&2
  exit 1
fi
: > "$output/switchyard/v1/__init__.py"
