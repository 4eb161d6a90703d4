#!/usr/bin/env bash
# Every check that runs no test: format, lint, types, generated files, backend files. All of them run; one failure fails.
set -uo pipefail
cd "$(dirname "$0")/.."

export PATH="$PWD/${VENV:-.venv}/bin:$PATH"
failed=()

check() {
    echo "$*" >&2
    "$@" || failed+=("$*")
}

check ruff format --check
check ruff check
for platform in linux win32 darwin; do
    check mypy --platform "$platform" --cache-dir ".mypy_cache/$platform"
done
check codespell
check python -m nbxrt.catalogue.compiling --check
check python -m nbxrt.catalogue.schema --check
check nbxrt validate backends/*.yaml
check check-jsonschema --check-metaschema schema/backend.schema.json
check check-jsonschema --schemafile schema/backend.schema.json backends/*.yaml
check check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

if [ "${#failed[@]}" -gt 0 ]; then
    printf 'failed: %s\n' "${failed[@]}" >&2
    exit 1
fi
