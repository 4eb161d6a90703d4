#!/usr/bin/env bash
# Makes an environment for each version of Triton that the tests run beside, below $VENV/triton: a process can hold one
# Triton only. None of them has torch.
#
#     scripts/setup-triton.sh VERSION…      such as 3.6 3.9
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${VENV:-.venv}

[ "$(uname -s)" = Linux ] || exit 0

for version in "$@"; do
    folder=$venv/triton/$version
    if [ ! -f "$folder/installed" ]; then
        echo "installing Triton $version into $folder" >&2
        "$venv/bin/python" -m venv --clear "$folder"
        # the interpreter of Triton 3.6 does not take NumPy 2.4
        "$folder/bin/python" -m pip install --quiet --quiet --disable-pip-version-check "triton==$version.*" \
            "numpy<2.4" PyYAML jsonschema attrs click rich pytest hypothesis pyelftools
        touch "$folder/installed"
    fi
done
