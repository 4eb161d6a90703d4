#!/usr/bin/env bash
# Installs mpi4py and Ray, which the tests of nbxrt.distributed run under, each in an environment below $VENV/engines.
# nbxrt itself is taken from the checkout, and Triton, a gigabyte of it, from what scripts/setup-wheels.sh unpacked.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${VENV:-.venv}

# The folder that an environment's packages are in.
packages_of() {
    "$1/bin/python" -c "import sysconfig; print(sysconfig.get_path('purelib'))"
}

[ "$(uname -s)" = Linux ] || exit 0

for engine in mpi ray; do
    folder=$venv/engines/$engine
    stamp=$folder/installed
    if [ "$(cat "$stamp" 2>/dev/null)" != "$(cksum <pyproject.toml)" ]; then
        echo "installing nbxrt[$engine] into $folder" >&2
        "$venv/bin/python" -m venv "$folder"
        "$folder/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --editable ".[$engine]"
        realpath "$venv/wheels/triton" >"$(packages_of "$folder")/triton.pth"
        cksum <pyproject.toml >"$stamp"
    fi
done
