#!/usr/bin/env bash
# Runs the fast tests with every other Python that this machine has, then with the oldest dependencies that nbxrt allows.
set -uo pipefail
cd "$(dirname "$0")/.."

# One interpreter for each version, as `3.12 /path/to/python`: those on PATH first, then pyenv's.
pythons() {
    local candidate
    for candidate in python3.{10..20} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python; do
        "$candidate" -c "import sys, ensurepip
if sys.version_info >= (3, 10): print('%d.%d' % sys.version_info[:2], sys.executable)" 2>/dev/null
    done | sort --version-sort --key=1,1 --unique
}

failed=()

run_tests() { # NAME PYTHON
    echo "=== $1" >&2
    VENV=.venv-$1 PYTHON=$2 scripts/setup-venv.sh test &&
        ".venv-$1/bin/python" -m pytest --numprocesses=auto --dist=loadgroup || failed+=("$1")
}

found=$(pythons)
while read -r version python; do
    run_tests "$version" "$python" </dev/null
done <<<"$found"

# `attrs>=23.1` becomes `attrs==23.1`
oldest=$(head -n 1 <<<"$found")
version=oldest-dependencies
VENV=.venv-$version PYTHON=${oldest#* } scripts/setup-venv.sh test &&
    sed -n '/^dependencies = \[/,/^\]/s/.*"\(.*\)>=\(.*\)",/\1==\2/p' pyproject.toml |
    xargs ".venv-$version/bin/python" -m pip install --quiet --quiet --disable-pip-version-check || failed+=("$version")
run_tests "$version" "${oldest#* }"

if [ "${#failed[@]}" -gt 0 ]; then
    printf 'failed with: %s\n' "${failed[@]}" >&2
    exit 1
fi
