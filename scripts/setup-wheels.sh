#!/usr/bin/env bash
# Unpacks the vendors' runtime wheels that the tests open without a card, and those and the Debian packages whose headers
# and libraries backend files are compared with, each into a folder of its own below $VENV/wheels: two majors of one wheel
# share their paths and cannot stand in one environment. Nothing of them is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${VENV:-.venv}

# folder=requirement
wheels=(
    cuda-11=nvidia-cuda-runtime-cu11
    cuda-12=nvidia-cuda-runtime-cu12
    cuda-13=nvidia-cuda-runtime==13.*
    triton=triton==3.9.*
    nvml=nvidia-nvml-dev-cu12
    nccl=nvidia-nccl-cu12
    torch-npu=torch-npu==2.14.*
)
# of Debian: HIP 5, Level Zero, OpenCL
packages=(libamdhip64-5 libamdhip64-dev libze-dev libze1 opencl-c-headers ocl-icd-libopencl1)

[ "$(uname -s)" = Linux ] || exit 0

for wheel in "${wheels[@]}"; do
    folder=$venv/wheels/${wheel%%=*}
    if [ ! -f "$folder/installed" ]; then
        "$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --no-deps --upgrade \
            --only-binary :all: --target "$folder" "${wheel#*=}"
        touch "$folder/installed"
    fi
done

folder=$venv/wheels/debian
if [ ! -f "$folder/installed" ] && command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; then
    mkdir -p "$folder"
    (cd "$folder" && apt-get download -qq "${packages[@]}")
    for package in "$folder"/*.deb; do
        dpkg-deb --extract "$package" "$folder"
    done
    touch "$folder/installed"
fi

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
