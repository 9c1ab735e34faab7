#!/bin/sh
# All checks of the page that a change must pass: types against the services' documents, lints and
# tests of crates/sdk-wasm, builds of the module and the page, and the tests of the page in
# Chromium. FHAIM_BIN is the path of the program that serves the page. Missing tools are installed
# from Debian and npm.
set -eu
cd "$(dirname "$0")"
: "${FHAIM_BIN:?set it to the path of the fhaim program}"
: "${CARGO_TARGET_DIR:=$PWD/../target}"
export CARGO_TARGET_DIR

step() {
    printf '\n== web: %s (at %d s)\n' "$*" "$(($(date +%s) - began))"
    "$@"
}
began=$(date +%s)

browser() {
    [ -z "${CHROMIUM:-}" ] && [ ! -x /usr/bin/chromium ] || return 0
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
        chromium fonts-dejavu-core
}

packages() {
    [ ! node_modules/.package-lock.json -nt package-lock.json ] || return 0
    npm ci --no-audit --no-fund
}

# The file that the browser drops on the page.
export_of_a_hospital() {
    export FHAIM_HOSPITAL="${FHAIM_HOSPITAL:-$(dirname "$FHAIM_BIN")/examples/hospital}"
    [ -x "$FHAIM_HOSPITAL" ] || (cd .. && cargo build --locked -p fhaim-kit --example hospital)
}

crate() {
    (cd ../crates/sdk-wasm && cargo "$@")
}

step browser
step packages
step npm run --silent check
step crate fmt --check
step crate clippy --locked --all-targets -- -D warnings
step ./wasm-toolchain.sh
step ./wasm.sh
export FHAIM_WASM="$PWD/public/fhaim.wasm"
step crate test --locked -- --include-ignored
step npm run --silent build
step export_of_a_hospital
step ./test.sh "${FHAIM_SCREENSHOTS:-}"
step ../clients/typescript/test.sh
