#!/bin/sh
# Makes a certificate authority for the engine (docs/ENGINE.md) and certificates for its programs with openssl. Writes
# them to infra/secrets/engine: a folder for each program, with authority.pem, certificate.pem and key.pem.
#
#     sh infra/engine-certificates.sh computation scheduler executor=executor-1,executor-2,executor-3
#
# Each argument is a folder, optionally followed by = and the names or addresses of the program (the default is the
# folder's name). Keep the authority's key, infra/secrets/engine/authority.key, separate from all programs. The owner
# of a certificate can have any batch computed, and read what executors have computed. Existing folders are not
# changed. DAYS sets the validity of certificates:
set -eu
days=${DAYS:-825}
folder=${FOLDER:-$(dirname "$0")/secrets/engine}
umask 077
mkdir -p "$folder"
[ $# -gt 0 ] || { echo "name at least one program, such as: $0 computation scheduler executor" >&2; exit 2; }
if [ ! -e "$folder/authority.key" ]; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
        -subj "/CN=fhaim engine" -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign" \
        -keyout "$folder/authority.key" -out "$folder/authority.pem" 2>/dev/null
fi
for argument in "$@"; do
    program=${argument%%=*} names=${argument#*=}
    own=$folder/$program
    [ ! -e "$own" ] || { echo "$own exists already and is not changed" >&2; continue; }
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
    # The user of a container that mounts the folder must be able to read the files. On this machine, the parent folder
    # is closed to other users.
    chmod 755 "$own"
    chmod 644 "$own"/*.pem
    echo "$own: $alternatives"
done
