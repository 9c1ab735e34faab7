#!/bin/sh
# Builds crates/sdk-wasm for the browser: web/public/fhaim.wasm.
#
# With rustup, `rustup target add wasm32-unknown-unknown` is the only requirement. If no target can
# be downloaded, web/wasm-toolchain.sh gets a compiler from Debian, together with the sources of
# std, which are then built with the crate.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
crate=$here/../crates/sdk-wasm
target=wasm32-unknown-unknown
: "${CARGO_TARGET_DIR:=$here/../target}"
export CARGO_TARGET_DIR
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS='--cfg getrandom_backend="custom" -C target-feature=+simd128,+bulk-memory,+sign-ext,+nontrapping-fptoint'
cd "$crate"
if [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    cargo build --locked --release --lib --target $target
else
    toolchain=${WASM_TOOLCHAIN:-$HOME/.cache/wasm-toolchain}
    if [ ! -x "$toolchain/rustc" ]; then
        echo "no $target: run 'rustup target add $target', or web/wasm-toolchain.sh" >&2
        exit 1
    fi
    lld=$(find "$(rustc --print sysroot)" -name rust-lld -type f | head -n 1)
    RUSTC=$toolchain/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$lld \
        cargo build --locked --release --lib --target $target -Z build-std=std,panic_abort
fi
mkdir -p "$here/public"
cp "$CARGO_TARGET_DIR/$target/release/fhaim_sdk_wasm.wasm" "$here/public/fhaim.wasm"
if [ -x "$here/node_modules/.bin/wasm-opt" ]; then
    "$here/node_modules/.bin/wasm-opt" -O3 --enable-simd --enable-bulk-memory --enable-sign-ext \
        --enable-nontrapping-float-to-int "$here/public/fhaim.wasm" -o "$here/public/fhaim.wasm"
fi
ls -l "$here/public/fhaim.wasm"
