#!/bin/sh
# Builds the package, installs it into a separate folder as a user would, and tests it against `fhaim up` on a free
# port. FHAIM_BIN is the path of the program.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
FHAIM_BIN=${FHAIM_BIN:-$here/../../target/debug/fhaim}
export FHAIM_BIN
[ -x "$FHAIM_BIN" ] || { echo "$FHAIM_BIN is not a program: set FHAIM_BIN" >&2; exit 1; }
cd "$here"
[ ! node_modules/.package-lock.json -nt package-lock.json ] || fresh=yes
[ -n "${fresh:-}" ] || npm ci --no-audit --no-fund
npm run --silent build
npm test
