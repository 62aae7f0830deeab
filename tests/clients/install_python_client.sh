#!/bin/sh
# usage: install_python_client.sh PYTHON SOURCE_FOLDER WORK_FOLDER
# Installs clients/python with pip into WORK_FOLDER/installed. Needs no network: nothing is downloaded.
set -eu
python=$1
source=$2
work=$3

rm -rf "$work"
mkdir -p "$work/source/clients"
cp -R "$source/clients/python" "$work/source/clients/"
cp -R "$source/proto" "$work/source/"
"$python" -m pip install --quiet --no-index --no-build-isolation --no-deps --no-warn-script-location \
  --root-user-action ignore --target "$work/installed" "$work/source/clients/python"
"$python" -c 'import sys; sys.path.insert(0, sys.argv[1]); import switchyard; print(switchyard.__file__)' \
  "$work/installed"
