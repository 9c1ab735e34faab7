#!/bin/sh
# Makes an authority for the engine (docs/ENGINE.md) and the certificates of its programs, by openssl, into
# infra/secrets/engine: a folder for each program, with authority.pem, certificate.pem and key.pem.
#
#     sh infra/engine-certificates.sh computation scheduler executor=executor-1,executor-2,executor-3
#
# Each argument is a folder, and after = the names (or addresses) that others reach the program by, if those are
# others. The authority's key stays in infra/secrets/engine/authority.key: keep it apart from all of them. Who is
# given a certificate can have any batch computed, and read what executors have computed. Folders that are there
# are left alone; certificates hold for so many days:
set -eu
days=${DAYS:-825}
folder=${FOLDER:-$(dirname "$0")/secrets/engine}
umask 077
mkdir -p "$folder"
[ $# -gt 0 ] || { echo "no program was named" >&2; exit 2; }
if [ ! -e "$folder/authority.key" ]; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
        -subj "/CN=fhaim engine" -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign" \
        -keyout "$folder/authority.key" -out "$folder/authority.pem" 2>/dev/null
fi
for argument in "$@"; do
    program=${argument%%=*} names=${argument#*=}
    own=$folder/$program
    [ ! -e "$own" ] || { echo "$own is there already: left alone" >&2; continue; }
    mkdir "$own"
    alternatives=
    for name in $(echo "$names" | tr , ' '); do
        case $name in
            *[!0-9.]*) kind=DNS ;;
            *) kind=IP ;;
        esac
        alternatives="$alternatives${alternatives:+,}$kind:$name"
    done
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$program" \
        -keyout "$own/key.pem" -out "$own/request.pem" 2>/dev/null
    printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$alternatives" >"$own/extensions"
    openssl x509 -req -in "$own/request.pem" -CA "$folder/authority.pem" -CAkey "$folder/authority.key" \
        -CAcreateserial -days "$days" -extfile "$own/extensions" -out "$own/certificate.pem" 2>/dev/null
    cp "$folder/authority.pem" "$own/authority.pem"
    rm "$own/request.pem" "$own/extensions"
    # A container's user reads them where the folder is mounted; on this machine the folder above is closed to others.
    chmod 755 "$own"
    chmod 644 "$own"/*.pem
    echo "$own: $alternatives"
done
