#!/bin/sh
# Builds the wheel, of the client and the native module, into a folder (here/dist unless named): what
# `pip install FOLDER/*.whl` installs. Needs Rust, and maturin (from PyPI, into an environment of its own, unless it is
# on the search path). More arguments are for `maturin build`: `--profile dev` for a quick one.
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
# A project of both: maturin takes nothing from outside its own folder.
mkdir "$work/project"
cp -R "$here/src" "$here/README.md" "$work/project/"
find "$work/project" -name __pycache__ -prune -exec rm -rf {} +
sed "s|^manifest-path = .*|manifest-path = \"$here/native/Cargo.toml\"|" "$here/native/wheel.toml" >"$work/project/pyproject.toml"
cd "$work/project"
maturin build --quiet --locked --out "$folder" "$@"
ls "$folder"/*.whl
