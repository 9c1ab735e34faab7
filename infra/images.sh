#!/usr/bin/env bash
# Builds images of the three services with buildah. They have only the statically linked programs and
# the certificate roots. Then runs them once with podman, configured like compose.yaml (each with its
# own configuration and secrets, without privileges and writable files, two replicas under one name),
# and runs a job. Needs root, but no Docker engine and no registry: buildah, podman, runc, netavark,
# aardvark-dns and iptables are Debian packages.
#
#   infra/images.sh                 builds programs and images, and runs them
#   PROGRAMS=DIR infra/images.sh    uses existing programs: fhaim-crypto and so on, and fhaim;
#                                   copies their libraries if they are not static
#
# Postgres and S3 run outside, on this machine, because their images are in registries. Containers
# reach them by the names in compose.yaml.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
names=(crypto computation generation)
if [ -z "${PROGRAMS:-}" ]; then
    # With a named target, the flags apply only to the programs and not to compiler plug-ins.
    RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --locked \
        --manifest-path "$here/../Cargo.toml" --target x86_64-unknown-linux-gnu \
        -p fhaim-cli -p fhaim-generation -p fhaim-computation -p fhaim-crypto
    PROGRAMS=${CARGO_TARGET_DIR:-$here/../target}/x86_64-unknown-linux-gnu/release
fi
version=$("$PROGRAMS/fhaim" --version | cut -d ' ' -f 2)

folder=$(mktemp -d /tmp/fhaim-images.XXXXXX)
chmod 711 "$folder"
forward=
finish() {
    [ -z "${CONTAINERS_CONF:-}" ] || podman rm -af -t 1 >/dev/null 2>&1 || true
    [ -z "${CONTAINERS_CONF:-}" ] || podman network rm -f fhaim >/dev/null 2>&1 || true
    [ -z "$forward" ] || kill "$forward" 2>/dev/null || true
    "$here/../.ci/servers" "$folder/servers" stop >/dev/null 2>&1 || true
    [ -z "${KEEP:-}" ] || return 0
    # The cleanup of removed containers may take a moment.
    for try in $(seq 10); do
        rm -rf "$folder" 2>/dev/null && return 0
        sleep 1
    done
    echo "could not remove $folder" >&2
}
trap finish EXIT

# Keep this script's images and containers separate from others.
cat >"$folder/containers.conf" <<CONF
[containers]
default_ulimits = ["nofile=16384:16384", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
CONF
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/root"\nrunroot = "%s/run"\n' "$folder" "$folder" \
    >"$folder/storage.conf"
export CONTAINERS_CONF=$folder/containers.conf CONTAINERS_STORAGE_CONF=$folder/storage.conf

ports=([0]=8083 [1]=8082 [2]=8081)
for index in 0 1 2; do
    name=${names[$index]} program=$PROGRAMS/fhaim-${names[$index]}
    image=$(buildah from scratch)
    # A program that is not static needs its libraries.
    libraries=$(ldd "$program" 2>/dev/null | grep -o '/[^ ]*' || true)
    for library in $libraries; do
        buildah copy -q "$image" "$library" "$library" >/dev/null
    done
    buildah copy -q "$image" "$program" "/usr/bin/fhaim-$name" >/dev/null
    buildah copy -q "$image" /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ >/dev/null
    buildah copy -q "$image" "$here/config/$name.toml" /etc/fhaim/config.toml >/dev/null
    buildah config --user 65532:65532 --workingdir / --port "${ports[$index]}" \
        --entrypoint "[\"/usr/bin/fhaim-$name\"]" --cmd '--config /etc/fhaim/config.toml' "$image"
    buildah commit -q --rm "$image" "localhost/fhaim-$name:$version" >/dev/null
    size=$(podman image inspect --format '{{.Size}}' "localhost/fhaim-$name:$version")
    linked=$([ -z "$libraries" ] && echo static || echo 'with the C library'"'"'s files')
    echo "ok: fhaim-$name:$version, $((size / 1000000)) MB, from scratch, $linked"
done

"$here/../.ci/servers" "$folder/servers" >"$folder/servers.log" 2>&1
# shellcheck disable=SC1091
. "$folder/servers/variables"
podman network create --subnet 10.97.53.0/24 fhaim >/dev/null
gateway=10.97.53.1
# Waits until the network's first container creates the gateway, then forwards its ports.
python3 - "$gateway" 5432="${FHAIM_TEST_POSTGRES#*@}" 7070="${FHAIM_TEST_S3#*//}" <<'PYTHON' &
import asyncio
import sys


async def pass_on(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def main():
    gateway, *routes = sys.argv[1:]
    for route in routes:
        port, place = route.split("=")
        host, to = place.split("/")[0].split(":")

        async def serve(reader, writer, host=host, to=to):
            there = await asyncio.open_connection(host, int(to))
            await asyncio.gather(pass_on(reader, there[1]), pass_on(there[0], writer))

        while True:
            try:
                await asyncio.start_server(serve, gateway, int(port))
                break
            except OSError:
                await asyncio.sleep(0.2)
    await asyncio.Event().wait()


asyncio.run(main())
PYTHON
forward=$!

for name in "${names[@]}"; do
    psql -q "$FHAIM_TEST_POSTGRES" -c "CREATE DATABASE $name"
    cat >"$folder/$name.env" <<ENV
FHAIM_${name^^}__COMMON__DATABASE__URL=postgres://postgres@postgres/$name
FHAIM_SEALING_KEYS=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
AWS_ACCESS_KEY_ID=$AWS_ACCESS_KEY_ID
AWS_SECRET_ACCESS_KEY=$AWS_SECRET_ACCESS_KEY
ENV
    for replica in 1 2; do
        podman run -d --name "$name-$replica" --network fhaim --network-alias "$name" \
            --read-only --cap-drop ALL --security-opt no-new-privileges \
            --env-file "$folder/$name.env" --add-host "postgres:$gateway" \
            --add-host "s3-$name:$gateway" \
            --volume "$here/config/$name.toml:/etc/fhaim/config.toml:ro" \
            "localhost/fhaim-$name:$version" >/dev/null
    done
done
for name in "${names[@]}"; do
    for replica in 1 2; do
        for try in $(seq 60); do
            podman exec "$name-$replica" "/usr/bin/fhaim-$name" --config /etc/fhaim/config.toml \
                --ask-healthy 2>/dev/null && break
            [ "$try" -lt 60 ] || { podman logs "$name-$replica" >&2; exit 1; }
            sleep 1
        done
    done
done
echo "ok: two containers of each service are healthy"
# at NAME PORT: prints the address of the first replica of a service.
at() {
    local format='{{(index .NetworkSettings.Networks "fhaim").IPAddress}}'
    printf 'http://%s:%s' "$(podman inspect --format "$format" "$1-1")" "$2"
}
for path in readyz readyz/peers; do
    for place in "$(at generation 8081)" "$(at computation 8082)" "$(at crypto 8083)"; do
        curl -fsS -m 10 "$place/$path" >/dev/null
    done
done
echo "ok: the services write to their databases and buckets, and reach each other by name"

cd "$folder"
export FHAIM_CONFIG_DIR=$folder/user FHAIM_MEMORY_DIR=$folder/memory
export FHAIM_PASSWORD='correct horse battery'
fhaim() { "$PROGRAMS/fhaim" -q "$@"; }
python3 -c 'print("a,b"); [print(f"{i % 2},{i % 3}") for i in range(200)]' >table.csv
fhaim schema infer --data table.csv --out table.schema.json
fhaim account login --sign-up --email ana@hospital.example --generation "$(at generation 8081)" \
    --computation "$(at computation 8082)" --crypto "$(at crypto 8083)"
dataset=$(fhaim dataset create --schema table.schema.json --data table.csv --epsilon 1)
fhaim dataset upload "$dataset" --data table.csv --yes
job=$(fhaim job run "$dataset" --yes)
fhaim job watch "$job" >/dev/null
fhaim download "$job" --out synthetic.csv
echo "ok: a job from upload to download, $(($(wc -l <synthetic.csv) - 1)) records"
for name in "${names[@]}"; do
    podman stop -t 30 "$name-1" >/dev/null
    code=$(podman inspect --format '{{.State.ExitCode}}' "$name-1")
    [ "$code" = 0 ] || { echo "$name-1 ended with $code" >&2; exit 1; }
done
echo "ok: the services end on request"
