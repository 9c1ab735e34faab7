#!/bin/sh
# Starts the three services and a second computation service as separate programs with the configurations of
# infra/config/ (but SQLite and folders instead of Postgres and S3), behind nginx with the proxy's configuration. Checks
# them from the view of a browser and a client. FHAIM_BIN is the path of `fhaim`. Needs nginx (Debian: nginx-light) and
# Python.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
FHAIM_BIN=${FHAIM_BIN:-$here/../target/debug/fhaim}
export FHAIM_BIN
[ -x "$FHAIM_BIN" ] || { echo "$FHAIM_BIN does not exist: build it, or set FHAIM_BIN" >&2; exit 1; }
command -v nginx >/dev/null || { echo "nginx is not installed: apt-get install nginx-light" >&2; exit 1; }

folder=$(mktemp -d)
started=
finish() {
    for process in $started; do kill "$process" 2>/dev/null || true; done
    for process in $started; do wait "$process" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap finish EXIT INT TERM
# The user's own history is neither read nor changed.
export FHAIM_MEMORY_DIR="$folder/memory"

# Choose five free ports.
ports=$(python3 -c '
import socket
sockets = [socket.socket() for _ in range(5)]
for one in sockets: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))')
# shellcheck disable=SC2086 # five words
set -- $ports
generation=127.0.0.1:$1 computation=127.0.0.1:$2 crypto=127.0.0.1:$3 witness=127.0.0.1:$4 front=127.0.0.1:$5

# start SERVICE ADDRESS VARIABLE...: starts a service with fields overridden by variables.
start() {
    service=$1 address=$2
    prefix="FHAIM_$(echo "$service" | tr '[:lower:]' '[:upper:]')__COMMON__"
    shift 2
    key=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
    mkdir "$folder/$service"
    env "${prefix}LISTEN=$address" "${prefix}DATABASE__URL=sqlite://$folder/$service/store.db" \
        "${prefix}BLOBS__URL=file://$folder/$service/blobs" "FHAIM_SEALING_KEYS=$key" "$@" \
        "$FHAIM_BIN" serve "$service" --config "$here/config/$service.toml" \
        >"$folder/$service.log" 2>&1 &
    started="$started $!"
}
start generation "$generation" FHAIM_GENERATION__COMMON__PEERS__COMPUTATION="http://$computation" \
    FHAIM_GENERATION__COMMON__PEERS__CRYPTO="http://$crypto" \
    FHAIM_GENERATION__COMMON__PEERS__WITNESS="http://$witness" FHAIM_GENERATION__LIMITS__SIGN_INS_PER_ADDRESS=12
start computation "$computation" FHAIM_COMPUTATION__COMMON__PEERS__GENERATION="http://$generation" \
    FHAIM_COMPUTATION__COMMON__PEERS__CRYPTO="http://$crypto" \
    FHAIM_COMPUTATION__COMMON__PEERS__WITNESS="http://$witness"
start crypto "$crypto" FHAIM_CRYPTO__COMMON__PEERS__GENERATION="http://$generation" \
    FHAIM_CRYPTO__COMMON__PEERS__COMPUTATION="http://$computation" \
    FHAIM_CRYPTO__COMMON__PEERS__WITNESS="http://$witness"
start witness "$witness" FHAIM_WITNESS__COMMON__PEERS__GENERATION="http://$generation" \
    FHAIM_WITNESS__COMMON__PEERS__COMPUTATION="http://$computation" \
    FHAIM_WITNESS__COMMON__PEERS__CRYPTO="http://$crypto"

# A placeholder for web/dist.
mkdir -p "$folder/page/assets" "$folder/tls"
echo '<!doctype html><title>fhaim</title>' >"$folder/page/index.html"
echo 'export {};' >"$folder/page/assets/page.js"
gzip -k "$folder/page/assets/page.js"
printf '\000asm' >"$folder/page/fhaim.wasm"

# configure LISTEN WITNESS: writes the proxy's configuration, and an nginx configuration that includes it.
configure() {
    sed -e "s|\${LISTEN}|$1|; s|\${PAGE}|$folder/page|; s|\${GENERATION}|$generation|" \
        -e "s|\${COMPUTATION}|$computation|; s|\${CRYPTO}|$crypto|; s|\${WITNESS}|$2|; s|/etc/nginx/tls|$folder/tls|" \
        "$here/proxy/fhaim.conf.template" >"$folder/fhaim.conf"
    cat >"$folder/nginx.conf" <<NGINX
$([ "$(id -u)" != 0 ] || echo 'user root;')
daemon off;
worker_processes 1;
pid $folder/nginx.pid;
error_log $folder/nginx.log;
events {}
http {
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    access_log off;
    client_body_temp_path $folder/body;
    proxy_temp_path $folder/proxy;
    fastcgi_temp_path $folder/fastcgi;
    uwsgi_temp_path $folder/uwsgi;
    scgi_temp_path $folder/scgi;
    include $folder/fhaim.conf;
}
NGINX
}

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost \
    -keyout "$folder/key.pem" -out "$folder/cert.pem" 2>/dev/null
printf 'ssl_certificate %s;\nssl_certificate_key %s;\n' "$folder/cert.pem" "$folder/key.pem" \
    >"$folder/tls/certificate.conf"
configure "$front ssl" 127.0.0.1:9
nginx -t -q -c "$folder/nginx.conf"
echo "ok: the proxy's configuration with a certificate is valid for nginx"
nginx -c "$folder/nginx.conf" 2>"$folder/nginx.out" &
secure=$!
started="$started $secure"
for path in / /generation/openapi.json; do
    header=
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        header=$(curl -ksSI "https://$front$path" 2>/dev/null | grep -i '^strict-transport-security') && break
        sleep 0.3
    done
    [ -n "$header" ] || { echo "$path has no Strict-Transport-Security header" >&2; exit 1; }
done
echo "ok: browsers must use TLS"
status=$(curl -ks -o "$folder/none" -w '%{http_code}' "https://$front/witness/openapi.json")
[ "$status" = 404 ] || { echo "/witness/ answers $status instead of 404 without a second service" >&2; exit 1; }
echo "ok: /witness/ is not found without a second computation service"
kill "$secure"
wait "$secure" 2>/dev/null || true
rm "$folder/tls/certificate.conf"

configure "$front" "$witness"
nginx -c "$folder/nginx.conf" 2>"$folder/nginx.out" &
started="$started $!"
status=0
PYTHONPATH="$here/../clients/python/src" PYTHONDONTWRITEBYTECODE=1 \
    python3 "$here/test.py" "http://$front" || status=$?
[ "$status" = 0 ] || tail -n 8 "$folder"/*.log "$folder/nginx.out" >&2
exit "$status"
