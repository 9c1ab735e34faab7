#!/bin/sh
# Installs the package into a separate environment, checks that the generated files match the
# OpenAPI documents, and tests the package against `fhaim up` on a free port. FHAIM_BIN is the path
# of the program.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
FHAIM_BIN=${FHAIM_BIN:-$here/../../target/debug/fhaim}
export FHAIM_BIN
[ -x "$FHAIM_BIN" ] || { echo "$FHAIM_BIN is not a program: set FHAIM_BIN" >&2; exit 1; }
folder=$(mktemp -d)
# Memory of records and ledgers.
export FHAIM_MEMORY_DIR="$folder/memory"
server=
finish() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap finish EXIT INT TERM

python3 "$here/generate.py" --check
echo "ok: the generated files are up to date"

python3 -m venv "$folder/env"
python="$folder/env/bin/python"
# Install from a copy, so that the build leaves nothing in the checkout.
cp -R "$here" "$folder/package"
"$python" -m pip install --quiet --disable-pip-version-check "$folder/package"
cd "$folder"
"$python" "$here/tests/test_offline.py"

# The loop below reads the file, perhaps before the program has opened it.
: >"$folder/out"
"$FHAIM_BIN" up --data-dir "$folder/data" --listen 127.0.0.1:0 --witness >"$folder/out" 2>"$folder/log" &
server=$!
address=
for _ in $(seq 100); do
    address=$(sed -n 's/^fhaim is up at \(http:[^,]*\),.*/\1/p' "$folder/out")
    [ -n "$address" ] && break
    kill -0 "$server" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
    sleep 0.1
done
[ -n "$address" ] || { echo "fhaim up printed no address" >&2; exit 1; }
email=$(head -n 1 "$folder/data/first-account")
password=$(tail -n 1 "$folder/data/first-account")
status=0
"$python" "$here/tests/flow.py" "$address" "$email" "$password" || status=$?
[ "$status" = 0 ] || tail -n 20 "$folder/log" >&2
exit "$status"
