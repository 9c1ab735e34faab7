#!/usr/bin/env bash
# Simulates rolling upgrades under load. Runs two replicas of each service on one Postgres and one S3
# server, behind nginx with the proxy's configuration, and restarts all six in turn once a minute.
#
#   infra/rolling.sh [SECONDS [BETWEEN]]    3600 seconds, 60 seconds between rounds by default
#
# At the end it prints statistics of the users and the proxy, and checks that nothing was lost:
#
#   - Every accepted job is done and paid exactly once (`fhaim-lab bench load`).
#   - The services agree, and the ledgers' chains are valid (`fhaim admin compare`).
#   - No service failed or panicked.
#
# Otherwise it exits with 1. FHAIM_BIN is the path of `fhaim`, and FHAIM_LAB_BIN of `fhaim-lab`. USERS,
# JOBS and RECORDS set the load (20, 2, 2000). Needs nginx. Uses the servers of FHAIM_TEST_POSTGRES and
# FHAIM_TEST_S3, or starts them with .ci/servers (Debian, as root).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
seconds=${1:-3600} between=${2:-60}
program=${FHAIM_BIN:-$here/../target/release/fhaim}
lab=${FHAIM_LAB_BIN:-$here/../target/release/fhaim-lab}
[ -x "$program" ] || { echo "$program does not exist: build it, or set FHAIM_BIN" >&2; exit 1; }
[ -x "$lab" ] || { echo "$lab does not exist: build it, or set FHAIM_LAB_BIN" >&2; exit 1; }
command -v nginx >/dev/null || { echo "nginx is not installed: apt-get install nginx-light" >&2; exit 1; }
command -v psql >/dev/null || { echo "psql is not installed: apt-get install postgresql-client" >&2; exit 1; }
export NO_COLOR=1

folder=$(mktemp -d /tmp/fhaim-rolling.XXXXXX)
chmod 711 "$folder" # for the user that Postgres runs as
declare -A process address
front_process= load= own_servers=
finish() {
    for one in "${process[@]}" $front_process $load; do kill "$one" 2>/dev/null || true; done
    wait 2>/dev/null || true
    [ -z "$own_servers" ] || "$here/../.ci/servers" "$folder/servers" stop >/dev/null
    if [ -n "${KEEP:-}" ]; then echo "kept: $folder"; else rm -rf "$folder"; fi
}
trap finish EXIT

if [ -z "${FHAIM_TEST_POSTGRES:-}" ] || [ -z "${FHAIM_TEST_S3:-}" ]; then
    own_servers=yes
    "$here/../.ci/servers" "$folder/servers" >"$folder/servers.log" 2>&1
    # shellcheck disable=SC1091
    . "$folder/servers/variables"
fi

# Choose seven free ports.
mapfile -t ports < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(7)]
for one in sockets: one.bind(("127.0.0.1", 0))
for one in sockets: print(one.getsockname()[1])')
front=127.0.0.1:${ports[6]}
names=(crypto computation generation) # in the order in which an upgrade replaces them
replicas=(a b)
for index in 0 1 2; do
    name=${names[$index]} database=fhaim_$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
    psql -q "$FHAIM_TEST_POSTGRES" -c "CREATE DATABASE $database"
    address[$name-a]=127.0.0.1:${ports[$((2 * index))]}
    address[$name-b]=127.0.0.1:${ports[$((2 * index + 1))]}
    prefix=FHAIM_${name^^}__COMMON__
    export "${prefix}DATABASE__URL=${FHAIM_TEST_POSTGRES%/*}/$database" \
        "${prefix}BLOBS__URL=s3://fhaim/$database" "${prefix}BLOBS__ENDPOINT=$FHAIM_TEST_S3" \
        "${prefix}LOG__FILTER=warn,fhaim=info" "${prefix}WORKERS=1" "${prefix}LEASE_SECONDS=5"
    for peer in "${names[@]}"; do
        [ "$peer" = "$name" ] || export "${prefix}PEERS__${peer^^}=http://$front/$peer"
    done
done
# All services have the same operator here, so they can share one key.
FHAIM_SEALING_KEYS=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export FHAIM_SEALING_KEYS FHAIM_GENERATION__LIMITS__SIGN_INS_PER_ADDRESS=1000000

# start REPLICA: starts a replica, such as generation-a.
start() {
    local name=${1%-*}
    env "FHAIM_${name^^}__COMMON__LISTEN=${address[$1]}" \
        "$program" serve "$name" --config "$here/config/$name.toml" >>"$folder/$1.log" 2>&1 &
    process[$1]=$!
}

# ready REPLICA: waits until a replica is ready.
ready() {
    local end=$((SECONDS + 60))
    until curl -fsS -o /dev/null -m 3 "http://${address[$1]}/readyz" 2>/dev/null; do
        [ "$SECONDS" -lt "$end" ] || { tail -n 20 "$folder/$1.log" >&2; exit 1; }
        sleep 0.1
    done
}

both() { printf '%s max_fails=1 fail_timeout=1s; server %s' "${address[$1-a]}" "${address[$1-b]}"; }
mkdir -p "$folder/page" "$folder/tls"
sed -e "s|\${LISTEN}|$front|; s|\${PAGE}|$folder/page|; s|/etc/nginx/tls|$folder/tls|" \
    -e "s|\${GENERATION}|$(both generation)|; s|\${COMPUTATION}|$(both computation)|" \
    -e "s|\${WITNESS}|127.0.0.1:9|" \
    -e "s|\${CRYPTO}|$(both crypto)|" "$here/proxy/fhaim.conf.template" >"$folder/fhaim.conf"
cat >"$folder/nginx.conf" <<NGINX
$([ "$(id -u)" != 0 ] || echo 'user root;')
daemon off;
worker_processes 1;
pid $folder/nginx.pid;
error_log $folder/nginx.log;
events {}
http {
    include /etc/nginx/mime.types;
    log_format seen '\$status \$request_time \$upstream_status';
    access_log $folder/access.log seen;
    client_body_temp_path $folder/body;
    proxy_temp_path $folder/proxy;
    fastcgi_temp_path $folder/fastcgi;
    uwsgi_temp_path $folder/uwsgi;
    scgi_temp_path $folder/scgi;
    include $folder/fhaim.conf;
}
NGINX
nginx -c "$folder/nginx.conf" 2>"$folder/nginx.out" &
front_process=$!
# Start all replicas at once, on empty databases.
for name in "${names[@]}"; do for replica in "${replicas[@]}"; do start "$name-$replica"; done; done
for name in "${names[@]}"; do for replica in "${replicas[@]}"; do ready "$name-$replica"; done; done

"$lab" bench load --server "http://$front" --seconds "$seconds" --users "${USERS:-20}" \
    --jobs "${JOBS:-2}" --records "${RECORDS:-2000}" >"$folder/load.out" 2>"$folder/load.log" &
load=$!
# Do not restart services before the accounts and their first datasets exist.
until grep -q '^datasets for the jobs' "$folder/load.log" || ! kill -0 "$load" 2>/dev/null; do
    sleep 0.5
done
restarts=0 longest=0
while kill -0 "$load" 2>/dev/null; do
    round=$SECONDS
    for name in "${names[@]}"; do
        for replica in "${replicas[@]}"; do
            kill -0 "$load" 2>/dev/null || break 2
            one=$name-$replica
            began=$SECONDS
            kill "${process[$one]}"
            wait "${process[$one]}" || { echo "$one ended with $?" >>"$folder/wrong"; }
            took=$((SECONDS - began))
            [ "$took" -le "$longest" ] || longest=$took
            start "$one"
            ready "$one"
            sleep 2 # until the proxy uses it again
            restarts=$((restarts + 1))
        done
    done
    while [ $((SECONDS - round)) -lt "$between" ] && kill -0 "$load" 2>/dev/null; do sleep 1; done
done
status=0
wait "$load" || status=$?
load=
cat "$folder/load.out"
[ "$status" = 0 ] || tail -n 3 "$folder/load.log"
echo "$restarts restarts; the slowest stop took $longest s"
awk '$3 != "-" { n++; time[n] = $2; status[$1]++; if ($3 ~ /,/) again++ }
    END { printf "proxy: %d requests, %d of them sent to a second replica;", n, again
          for (s in status) if (s >= 500) printf " %d with status %s", status[s], s; print "" }
    ' "$folder/access.log"
awk '$3 != "-" { print $2 }' "$folder/access.log" | sort -n |
    awk '{ t[NR] = $1 } END { printf "proxy: p50 %.0f ms, p99 %.0f ms, maximum %.0f ms\n",
        1000 * t[int((NR + 1) / 2)], 1000 * t[int(NR * 0.99)], 1000 * t[NR] }'
configs=()
for name in "${names[@]}"; do configs+=("--$name" "$here/config/$name.toml"); done
"$program" admin compare "${configs[@]}" || status=1
if grep -hE '"level":"ERROR"|panicked' "$folder"/*-[ab].log >"$folder/errors"; then
    echo "$(wc -l <"$folder/errors") errors in the logs; the first are:"
    head -n 5 "$folder/errors"
    status=1
fi
if [ -f "$folder/wrong" ]; then
    cat "$folder/wrong"
    status=1
fi
exit "$status"
