#!/bin/sh
# Stores the results of docs/research/gan.md that are not in research/results yet:
#
#   FHAIM_DATA_DIR=DIR research/bench/gan.sh [PROGRAM]
#
# DIR has the images of research/bench/tables.sh and the tables of `fhaim-lab bench`; PROGRAM is fhaim-lab. Each result
# has the seconds that it took. `python3 research/chapters.py write` then writes tables and plots.
set -eu

program=${1:-fhaim-lab}
root=$(cd "$(dirname "$0")/../.." && pwd)

stored() {
    name=$1
    shift
    [ -e "$root/research/results/$name.json" ] ||
        python3 "$root/research/chapters.py" store "$name" --program "$program" -- "$@"
}

bench() {
    name=$1
    shift
    stored "$name" gan bench --quiet "$@"
}

# The paper's rate and its other settings, as far as it states them.
bench gan-published-central --method central --seeds 3 --steps 500
bench gan-published-federated --method federated --seeds 3 --steps 15 --hidden 32,64
bench gan-published-local --method local --seeds 3 --steps 20 --hidden 32,64
bench gan-longer-central --method central --seeds 2 --steps 1000 --hidden 64,128 --rate 1e-3

# Networks without training.
untrained="--rule ns --rule qli --seeds 3 --steps 1 --rate 1e-9 --no-attacks"
bench gan-untrained-local --method local $untrained --hidden 32,64
bench gan-untrained-federated --method federated $untrained --hidden 32,64
bench gan-untrained-small --method federated $untrained --hidden 32,32

# FedAvg next to FedProx.
federated="--participation 0.2 --local-steps 20 --hidden 32,32 --rate 0.1 --discriminator-rate 0.05"
many="--steps 50 --seeds 3 --no-attacks"
bench gan-fedavg --method federated $federated $many
bench gan-fedprox --method federated --mu 0.5 $federated $many
bench gan-fedprox-5 --method federated --mu 5 $federated $many
bench gan-dp-fedavg --method dp-fedavg $federated $many
bench gan-dp-fedprox --method dp-fedprox $federated $many

# Privacy parameters (Figs. 3, 4, 7 and 8).
both="--rule ns --rule qli"
two="$both --seeds 2"
dpgan() {
    bench gan-dpgan-$1 --method dpgan --record-epsilon $1 $both --seeds $2 --steps 15 --hidden 32,16 \
        --rate 1e-3 --discriminator-rate 0.1 --clip 1
}
dpgan 1 3
dpgan 4.01 3
dpgan 100 2
privgan() {
    bench gan-privgan-$1 --method privgan --lambda $1 $both --seeds $2 --steps 50 --hidden 32,64 --batch 64 --rate 1e-3
}
privgan 0.1 2
privgan 1 3
privgan 10 2
for epsilon in 16 64.11 1000; do
    bench gan-dp-fedprox-$epsilon --method dp-fedprox --party-epsilon $epsilon $two --steps 25 $federated
done

# Number of parties (Fig. 5) and concentration (Fig. 6).
for parties in 5 20 40; do
    split="--split-among 40 --parties $parties $two --no-attacks"
    bench gan-parties-federated-$parties --method federated --mu 0.5 $split --steps 12 $federated
    bench gan-parties-privgan-$parties --method privgan $split --steps 15 --hidden 32,32 --batch 64 --rate 1e-3
done
skews="--rule dli:0.1 --rule dli:0.5 --rule dli:5 --rule qs:0.1 --rule qs:0.5 --rule qs:5 --seeds 2 --no-attacks"
bench gan-alpha-federated --method federated --mu 0.5 $skews --steps 25 $federated
bench gan-alpha-privgan --method privgan $skews --steps 30 --hidden 32,32 --batch 64 --rate 1e-3

# Attacks on graphical models.
stored gan-staged-breast-cancer bench attack breast-cancer --seeds 5 --drawn 5000
stored gan-staged-compas bench attack compas --seeds 3 --drawn 2000
