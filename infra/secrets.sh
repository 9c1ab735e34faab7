#!/bin/sh
# Draws all secrets for compose.yaml, compose.witness.yaml and compose.keyshare.yaml, and writes them to infra/secrets/.
# Each container has its own file, so that it gets only its own secrets. Existing files are not changed.
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
[ -n "$drawn" ] || { echo "$folder already has all secrets: nothing was drawn" >&2; exit 1; }
echo "drew secrets for$drawn into $folder: keep a copy of each FHAIM_SEALING_KEYS, separate from the backups"
