#!/usr/bin/env bash
# Sets up a virtual environment with nbxrt, editable, and some of its extras; does nothing when that has been done.
#
#     scripts/setup-venv.sh [EXTRAS]      EXTRAS as pip takes them: `test` (default), `test,dev`
#
# PYTHON names the interpreter, VENV the folder (.venv).
set -euo pipefail
cd "$(dirname "$0")/.."

extras=${1:-test}
venv=${VENV:-.venv}
stamp=$venv/installed-$extras

# An environment belongs to one place and one interpreter: its scripts hold absolute paths.
identity() {
    pwd
    echo "${PYTHON:-any Python}"
}

contents() {
    cksum <pyproject.toml
    grep '^__version__' nbxrt/__init__.py
}

is_ours() {
    [ "$(cat "$venv/identity" 2>/dev/null)" = "$(identity)" ] && "$venv/bin/python" -c "import pip" 2>/dev/null
}

is_suitable() {
    "$1" -c "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))" >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python3.10 python}; do
        if is_suitable "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    cat >&2 <<END
error: no Python 3.10 or later with the modules \`venv\` and \`ensurepip\` (looked at ${PYTHON:-python3, python3.x, python})

hint: on Debian and Ubuntu \`apt-get install python3-venv\`; or name an interpreter: \`make PYTHON=/path/to/python3.12 …\`
END
    return 1
}

if ! is_ours; then
    python=$(find_python)
    echo "setting up $venv with $python" >&2
    "$python" -m venv --clear "$venv"
    identity >"$venv/identity"
fi

if [ "$(cat "$stamp" 2>/dev/null)" != "$(contents)" ]; then
    echo "installing nbxrt[$extras] into $venv" >&2
    "$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --editable ".[$extras]"
    contents >"$stamp"
fi
