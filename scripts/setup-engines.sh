#!/usr/bin/env bash
# Installs mpi4py and Ray, which the tests of nbxrt.distributed run under, each beside Triton in an environment below
# $VENV/engines. nbxrt itself is taken from the checkout.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${VENV:-.venv}

[ "$(uname -s)" = Linux ] || exit 0

for engine in mpi ray; do
    folder=$venv/engines/$engine
    stamp=$folder/installed
    if [ "$(cat "$stamp" 2>/dev/null)" != "$(cksum <pyproject.toml)" ]; then
        echo "installing nbxrt[$engine,triton] into $folder" >&2
        "$venv/bin/python" -m venv "$folder"
        "$folder/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --editable ".[$engine,triton]"
        cksum <pyproject.toml >"$stamp"
    fi
done
