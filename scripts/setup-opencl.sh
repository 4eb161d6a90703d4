#!/usr/bin/env bash
# Sets up Intel's OpenCL runtime for processors, which the full tests use: it runs on any x86-64 processor and has unified
# shared memory. It is in an environment of its own, $VENV/intel-opencl: its libraries are to be seen by these tests alone.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${VENV:-.venv}
folder=$venv/intel-opencl

[ "$(uname -sm)" = "Linux x86_64" ] || exit 0

if [ ! -f "$folder/installed" ]; then
    echo "installing intel-opencl-rt into $folder" >&2
    "$venv/bin/python" -m venv --clear "$folder"
    # The runtime needs the compiler's libraries, which its wheel does not ask for.
    "$folder/bin/python" -m pip install --quiet --quiet --disable-pip-version-check intel-opencl-rt intel-cmplr-lib-rt
    touch "$folder/installed"
fi
