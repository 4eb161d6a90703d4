#!/usr/bin/env bash
# Unpacks the vendors' runtime wheels that the tests open without a card, and those and the Debian packages whose headers
# and libraries backend files are compared with, each into a folder of its own below $VENV/wheels: two majors of one wheel
# share their paths and cannot stand in one environment. Nothing of them is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${VENV:-.venv}

# folder=requirement; one version each, since backends/signatures names the headers by their hashes
wheels=(
    cuda-11=nvidia-cuda-runtime-cu11==11.8.89
    cuda-12=nvidia-cuda-runtime-cu12==12.9.79
    cuda-13=nvidia-cuda-runtime==13.5.37
    cccl-12=nvidia-cuda-cccl-cu12==12.9.27      # what nccl.h includes by way of cuda_fp16.h
    cccl-13=nvidia-cuda-cccl==13.3.5.0.6
    triton=triton==3.9.0
    nvml-11=nvidia-nvml-dev-cu11==11.8.86
    nvml=nvidia-nvml-dev-cu12==12.9.79
    nvml-13=nvidia-nvml-dev==13.4.92
    nccl=nvidia-nccl-cu12==2.32.3
    torch-npu=torch-npu==2.14.0
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

# Wheels for other systems, for what their metadata, headers and libraries say; nothing in them runs here.
# They are asked for by one Python, whatever runs here: wheels for later ones carry another platform.
for_other() {
    local folder=$venv/wheels/$1 platform=$2 requirement=$3
    if [ ! -f "$folder/installed" ]; then
        "$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --no-deps --upgrade \
            --only-binary=:all: --implementation cp --python-version 3.11 --platform "$platform" \
            --target "$folder" "$requirement"
        find "$folder" -name '*.dylib' -o -name '*.metallib' | xargs --no-run-if-empty rm
        touch "$folder/installed"
    fi
}

for_other pyobjc-metal macosx_10_9_universal2 pyobjc-framework-Metal
for_other metal-cpp macosx_14_0_arm64 mlx-metal
for_other cuda-12-windows win_amd64 nvidia-cuda-runtime-cu12==12.9.79

# AMD SMI and RCCL: their headers are in no registry, and AMD's own bindings of them are.
for_other amd-smi any amdsmi==7.0.2
for_other rccl manylinux_2_28_x86_64 rocm-bindings-systems==10.0.0.0.1.2
"$venv/bin/python" scripts/amd_declarations.py "$venv/wheels/amd-smi/amdsmi/amdsmi_wrapper.py" \
    "$venv/wheels/rccl/rocm/bindings/cyrccl.pxd" "$venv/wheels/amd"
