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

# Wheels for macOS, whose metadata and headers say what Apple's selectors are; nothing in them runs here.
# pyobjc is asked for one Python, whatever runs here: wheels for later ones carry another platform.
for_macos() {
    local folder=$venv/wheels/$1 platform=$2 requirement=$3
    if [ ! -f "$folder/installed" ]; then
        "$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --no-deps --upgrade \
            --only-binary=:all: --implementation cp --python-version 3.11 --platform "$platform" \
            --target "$folder" "$requirement"
        find "$folder" -name '*.dylib' -o -name '*.metallib' | xargs --no-run-if-empty rm
        touch "$folder/installed"
    fi
}

for_macos pyobjc-metal macosx_10_9_universal2 pyobjc-framework-Metal
for_macos metal-cpp macosx_14_0_arm64 mlx-metal
