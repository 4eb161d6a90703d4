#!/usr/bin/env bash
# Unpacks the vendors' runtime wheels that the tests open without a card, each into a folder of its own below
# $VENV/wheels: two majors of one wheel share their paths and cannot stand in one environment.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${VENV:-.venv}

# folder=requirement
wheels=(
    cuda-11=nvidia-cuda-runtime-cu11
    cuda-12=nvidia-cuda-runtime-cu12
    cuda-13=nvidia-cuda-runtime==13.*
)

[ "$(uname -s)" = Linux ] || exit 0

for wheel in "${wheels[@]}"; do
    folder=$venv/wheels/${wheel%%=*}
    if [ ! -f "$folder/installed" ]; then
        "$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --no-deps --upgrade \
            --target "$folder" "${wheel#*=}"
        touch "$folder/installed"
    fi
done
