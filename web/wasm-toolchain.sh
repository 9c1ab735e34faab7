#!/bin/sh
# Gets a compiler for WebAssembly if rustup offers no target: Debian's rustc-web with the sources of
# its standard library. It is unpacked into WASM_TOOLCHAIN (by default ~/.cache/wasm-toolchain), and
# does not change the system's compiler. web/wasm.sh uses it if the target is missing. Does nothing
# if the target or the toolchain already exists.
set -eu
toolchain=${WASM_TOOLCHAIN:-$HOME/.cache/wasm-toolchain}

if [ -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown" ]; then
    echo "wasm toolchain: rustup's target is installed"
    exit 0
fi
if "$toolchain/rustc" --version 2>/dev/null; then
    exit 0
fi

packages='rustc-web libstd-rust-web-dev rust-web-src'
[ "$(id -u)" != 0 ] || apt-get update -q
apt-cache show rustc-web >/dev/null 2>&1 || {
    echo "wasm toolchain: Debian has no rustc-web here; use 'rustup target add wasm32-unknown-unknown'" >&2
    exit 1
}

# Shared libraries that these packages need in any version and that the system lacks. They are
# unpacked, not installed, because rustc-web conflicts with the distribution's rustc.
installed() {
    dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}
libraries=
for name in $(apt-cache depends --recurse --important --no-conflicts --no-breaks --no-replaces $packages |
    grep -E '^lib[a-z0-9.+-]+$' | grep -v -e '-dev$' | sort -u); do
    installed "$name" || libraries="$libraries $name"
done

fresh=$toolchain.$$
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$fresh/deb" "$fresh/prefix"
# The sandbox user of apt cannot write into a home folder.
(cd "$fresh/deb" && apt-get -q -o APT::Sandbox::User=root download $packages $libraries)
for package in "$fresh"/deb/*.deb; do
    dpkg -x "$package" "$fresh/prefix"
done
rm -r "$fresh/deb"

cat >"$fresh/rustc" <<'WRAPPER'
#!/bin/sh
prefix=$(dirname "$0")/prefix
for folder in "$prefix"/lib/*-linux-gnu "$prefix"/usr/lib/*-linux-gnu; do
    LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
done
export LD_LIBRARY_PATH
exec "$prefix/usr/bin/rustc" "$@"
WRAPPER
chmod +x "$fresh/rustc"
"$fresh/rustc" --version
[ -f "$("$fresh/rustc" --print sysroot)/lib/rustlib/src/rust/library/std/Cargo.toml" ] || {
    echo "wasm toolchain: the sources of the standard library are not where cargo looks" >&2
    exit 1
}
rm -rf "$toolchain"
mkdir -p "$(dirname "$toolchain")"
mv "$fresh" "$toolchain"
