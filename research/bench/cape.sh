#!/bin/sh
# Stores the results of docs/research/cape.md: one for each way and number of records in a mix, except for those that are
# stored already.
#
#   FHAIM_DATA_DIR=DIR research/bench/cape.sh FHAIM-LAB
#
# DIR has the images of MNIST (research/bench/tables.sh). A second run continues; remove a file to repeat it. Then
# `python3 research/chapters.py write` writes tables and plots.
set -eu

[ $# -eq 1 ] || { echo "usage: research/bench/cape.sh FHAIM-LAB" >&2; exit 2; }
program=$1
root=$(dirname "$0")/..

# store NAME ARGUMENTS... : stores cape-NAME
store() {
    name=cape-$1
    shift
    [ -f "$root/results/$name.json" ] && return
    echo "$name"
    python3 "$root/chapters.py" store "$name" --program "$program" -- bench mix --quiet "$@" --seeds 3
}

for mix in 1 2 4 8 16 32; do
    for way in central conventional shared correlated groups; do
        store "$way-$mix" --mix $mix --way $way
    done
done
store mix-large --mix 64 --mix 128 --mix 256 --mix 512 --way central --way groups
for parties in 5 20 50; do
    store "parties-$parties" --mix 4 --parties $parties --way conventional --way correlated --way shared
done
