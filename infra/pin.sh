#!/usr/bin/env bash
# Pins every image of another publisher by the digest that its tag has now, and prints the changes:
#
#   infra/pin.sh              writes tag and digest into Dockerfile and compose*.yaml
#   infra/pin.sh --check      fails if one has no digest, and needs no registry
#
# Run it for an update too. It needs docker with buildx, and a registry. Review the change like an update of a
# dependency: a tag can be moved, and a digest cannot.
set -euo pipefail
cd "$(dirname "$0")"

files=(Dockerfile compose*.yaml)

# The images after `FROM` and `image:` that have a tag. Stages and images of this repository have none.
images() {
    grep -hoE '^(FROM|[[:space:]]+image:)[[:space:]]+[^[:space:]]+:[^[:space:]]+' "${files[@]}" |
        awk '{ print $2 }' | sort -u
}

if [ "${1:-}" = --check ]; then
    loose=$(images | grep -v '@sha256:[0-9a-f]\{64\}$' || true)
    [ -z "$loose" ] && exit 0
    printf 'pin: no digest: %s\n' $loose >&2
    echo 'pin: run infra/pin.sh where a registry can be reached' >&2
    exit 1
fi

images | while read -r image; do
    tagged=${image%@*}
    digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$tagged")
    [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || {
        echo "pin: $tagged: not a digest: $digest" >&2
        exit 1
    }
    [ "$image" = "$tagged@$digest" ] || echo "$image -> $tagged@$digest"
    # An image's name has no character that is special to sed with this delimiter, except the dot.
    sed -i -E "s|([[:space:]])${image//./\\.}([[:space:]]\|\$)|\1$tagged@$digest\2|" "${files[@]}"
done
