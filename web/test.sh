#!/bin/sh
# Drives the page in Chromium against `fhaim up`. FHAIM_BIN is the path of the program. web/dist
# must be built (`sh web/wasm.sh && npm run build`). With FHAIM_QUICK, runs only the tests without
# failures, and without screenshots. Usage: web/test.sh [SCREENSHOT_DIR]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
node "$here/test/pace.mjs"
node "$here/test/page.mjs" "$@"
node "$here/test/tables.mjs" "$@"
node "$here/test/lists.mjs" "$@"
node "$here/test/rules.mjs" "$@"
node "$here/test/account.mjs" "$@"
node "$here/test/links.mjs" "$@"
node "$here/test/jobs.mjs" "$@"
node "$here/test/witness.mjs" "$@"
[ -z "${FHAIM_QUICK:-}" ] || exit 0
node "$here/test/recovery.mjs" "$@"
node "$here/test/journal.mjs"
node "$here/test/limits.mjs" "$@"
