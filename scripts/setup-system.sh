#!/usr/bin/env bash
# Installs the system packages that the full test tier needs, where this user may: as root on Debian and Ubuntu.
# Elsewhere it changes nothing, and the tests name what is missing.
set -euo pipefail

packages=(
    gcc gobjc libc6-dev make python3-venv
    ocl-icd-libopencl1 pocl-opencl-icd opencl-c-headers
    libze1 libze-dev
    libopenmpi-dev openmpi-bin
    binutils-mingw-w64-x86-64
)

is_installed() {
    [ "$(dpkg-query --show --showformat='${Status}' "$1" 2>/dev/null)" = "install ok installed" ]
}

[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0

missing=()
for package in "${packages[@]}"; do
    is_installed "$package" || missing+=("$package")
done
[ "${#missing[@]}" -gt 0 ] || exit 0

echo "installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install --yes -qq --no-install-recommends "${missing[@]}" >/dev/null
