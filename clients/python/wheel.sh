#!/bin/sh
# Builds the wheel with the client and the native module into a folder (by default dist, next to this script). To
# install it, run `pip install FOLDER/*.whl`. Needs Rust, and maturin (installed from PyPI into a temporary environment
# unless it is on the search path). Further arguments are passed to `maturin build`, such as `--profile dev` for a quick
# build.
# Usage: clients/python/wheel.sh [FOLDER [ARGUMENT...]]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/dist}
[ $# = 0 ] || shift
[ $# != 0 ] || set -- --release
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
if ! command -v maturin >/dev/null; then
    python3 -m venv "$work/env"
    "$work/env/bin/python" -m pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
    PATH="$work/env/bin:$PATH"
fi
# One project with both, because maturin includes only files inside its own folder.
mkdir "$work/project"
cp -R "$here/src" "$here/README.md" "$work/project/"
find "$work/project" -name __pycache__ -prune -exec rm -rf {} +
sed "s|^manifest-path = .*|manifest-path = \"$here/native/Cargo.toml\"|" "$here/native/wheel.toml" >"$work/project/pyproject.toml"
cd "$work/project"
maturin build --quiet --locked --out "$folder" "$@"
ls "$folder"/*.whl
