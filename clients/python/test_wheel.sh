#!/bin/sh
# Builds the wheel, installs it into a separate environment with pandas, polars and pyarrow, and tests user programs
# with it: in this process, and against `fhaim up` on a free port. FHAIM_BIN is the path of the program, and WHEEL the
# path of an existing wheel. Without WHEEL, one is built with the development profile. Needs Rust and PyPI.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
FHAIM_BIN=${FHAIM_BIN:-$here/../../target/debug/fhaim}
export FHAIM_BIN
[ -x "$FHAIM_BIN" ] || { echo "$FHAIM_BIN is not a program: set FHAIM_BIN" >&2; exit 1; }
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/../../target}"
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

python3 -m venv "$folder/env"
python="$folder/env/bin/python"
pip() { "$python" -m pip install --quiet --disable-pip-version-check "$@"; }
pip 'maturin>=1.9,<2' 'mypy>=1.15,<3' pandas pandas-stubs polars pyarrow tqdm

if [ -z "${WHEEL:-}" ]; then
    WHEEL=$(PATH="$folder/env/bin:$PATH" "$here/wheel.sh" "$folder/wheels" --profile dev)
fi
echo "ok: $(basename "$WHEEL"), $(($(wc -c <"$WHEEL") / 1000000)) MB"
pip "$WHEEL"
cd "$folder"
"$python" -m mypy.stubtest fhaim._native --ignore-missing-stub --mypy-config-file "$here/stubtest.ini"
echo "ok: the stub matches the module"

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
key=$("$python" -c '
import sys, fhaim
client = fhaim.Client(sys.argv[1]).sign_in(*open(sys.argv[2]).read().split("\n")[:2])
print(client.make_api_key("wheel").text)' "$address" "$folder/data/first-account")
status=0
"$python" "$here/tests/wheel.py" "$address" "$key" || status=$?
[ "$status" = 0 ] || tail -n 20 "$folder/log" >&2
exit "$status"
