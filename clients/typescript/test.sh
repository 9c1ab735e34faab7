#!/bin/sh
# Builds the package, installs it into a folder of its own as a user would, and takes it through `fhaim up` on a
# free port. FHAIM_BIN names the program.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
FHAIM_BIN=${FHAIM_BIN:-$here/../../target/debug/fhaim}
export FHAIM_BIN
[ -x "$FHAIM_BIN" ] || { echo "there is no program $FHAIM_BIN: set FHAIM_BIN" >&2; exit 1; }
cd "$here"
[ ! node_modules/.package-lock.json -nt package-lock.json ] || fresh=yes
[ -n "${fresh:-}" ] || npm ci --no-audit --no-fund
npm run --silent build
npm test
