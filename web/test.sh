#!/bin/sh
# Starts `fhaim up` on a free port with a folder of its own and drives the page with Chromium.
# FHAIM_BIN names the program; web/dist must be built (`sh web/wasm.sh && npm run build`).
# Usage: web/test.sh [SCREENSHOT_DIR]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=${FHAIM_BIN:-$here/../target/debug/fhaim}
folder=$(mktemp -d)
"$program" up --data "$folder/data" --listen 127.0.0.1:0 --web "$here/dist" >"$folder/out" 2>"$folder/log" &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT INT TERM
address=
for _ in $(seq 100); do
    address=$(sed -n 's/^fhaim is up at \(http:[^,]*\),.*/\1/p' "$folder/out")
    [ -n "$address" ] && break
    kill -0 "$server" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
    sleep 0.1
done
[ -n "$address" ] || { echo "fhaim up said no address" >&2; exit 1; }
status=0
node "$here/test/page.mjs" "$address" "$@" || status=$?
[ "$status" = 0 ] || tail -n 20 "$folder/log" >&2
exit "$status"
