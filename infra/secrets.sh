#!/bin/sh
# Draws every secret that compose.yaml, compose.witness.yaml and compose.keyshare.yaml need into infra/secrets/, a
# file for each container, so that each gets its own and no other's. Files that are there are left alone.
set -eu
folder=${1:-$(dirname "$0")/secrets}
umask 077
mkdir -p "$folder"
random() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }

[ -e "$folder/postgres.env" ] || printf 'POSTGRES_PASSWORD=%s\n' "$(random 24)" >"$folder/postgres.env"
drawn=
for service in generation computation crypto witness keyshare1; do
    [ ! -e "$folder/$service.env" ] || continue
    drawn="$drawn $service"
    upper=$(echo "$service" | tr '[:lower:]' '[:upper:]')
    password=$(random 24)
    access=$service
    secret=$(random 24)
    printf '%s_PASSWORD=%s\n' "$upper" "$password" >>"$folder/postgres.env"
    printf 'ROOT_ACCESS_KEY=%s\nROOT_SECRET_KEY=%s\n' "$access" "$secret" \
        >"$folder/s3-$service.env"
    {
        printf 'FHAIM_%s__COMMON__DATABASE__URL=postgres://%s:%s@postgres/%s\n' \
            "$upper" "$service" "$password" "$service"
        printf 'AWS_ACCESS_KEY_ID=%s\nAWS_SECRET_ACCESS_KEY=%s\n' "$access" "$secret"
        printf 'FHAIM_SEALING_KEYS=%s\n' "$(random 32)"
    } >"$folder/$service.env"
done
[ -n "$drawn" ] || { echo "$folder has all secrets already: nothing was drawn" >&2; exit 1; }
echo "secrets of$drawn drawn into $folder: keep a copy of each FHAIM_SEALING_KEYS apart from the backups"
