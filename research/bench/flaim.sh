#!/bin/sh
# Stores the results of docs/research/flaim.md: one for each setting and method, except for those that are stored already.
#
#   FHAIM_DATA_DIR=DIR research/bench/flaim.sh FHAIM-LAB [TABLE...]
#
# DIR has adult, adult-32, magic and census (research/bench/tables.sh) and credit (research/bench/flaim_tables.py). TABLE
# is one of them, or synthfs; the default is all. Adult's main tables have ten runs of each method, and all others three.
# A second run continues; remove a file to repeat it. Different tables may run at once.
# Then `python3 research/chapters.py write` writes tables and plots.
set -eu

[ $# -ge 1 ] || { echo "usage: research/bench/flaim.sh FHAIM-LAB [TABLE...]" >&2; exit 2; }
program=$1
shift
tables=${*:-adult magic census credit synthfs}
case $program in */*) program=$(realpath "$program") ;; esac
cd "$(dirname "$0")/../.."

all="aim dist-aim aug-private naive aug-oracle"
plotted="dist-aim aug-private naive"
ablation="naive aug-oracle aug-oracle-combined aug-proxy aug-private"
baselines="aim aug-private naive"
own="staged staged-h1 naive-bayes"

# store SETTING METHODS ARGUMENTS... : stores flaim-SETTING-METHOD for each method
store() {
    setting=$1 methods=$2
    shift 2
    for method in $methods; do
        name=flaim-$setting-$method
        [ -f "research/results/$name.json" ] && continue
        echo "$name"
        python3 research/chapters.py store "$name" --program "$program" -- --quiet bench federated "$@" --method "$method"
    done
}

# paper TABLE : the arguments of the paper's setting
paper() {
    echo "$1 --accounting printed --workload research/bench/workloads/$1.json"
}

# main TABLE SEEDS : table 2, and the same by the corrected accounting
main() {
    store "$1-printed" "$all" $(paper "$1") --seeds "$2"
    store "$1-ours" "$all $own" "$1" --seeds "$2"
    store "$1-ours" random "$1" --model-mb 2 --seeds "$2"
}

# baselines TABLE : table 1. FLAIM's program gives naive-bayes half of the budget for measurements.
baselines() {
    store "$1-5-printed" "$baselines" $(paper "$1") --epsilon 5 --seeds 3
    store "$1-5-printed" naive-bayes $(paper "$1") --epsilon 5 --measure-share 0.5 --seeds 3
    store "$1-5-printed" random $(paper "$1") --epsilon 5 --model-mb 2 --seeds 3
    store "$1-5-fit-5" "$baselines" $(paper "$1") --epsilon 5 --fit-steps 5 --seeds 3
    store "$1-5-fit-5" naive-bayes $(paper "$1") --epsilon 5 --measure-share 0.5 --fit-steps 5 --seeds 3
    store "$1-5-fit-5" random $(paper "$1") --epsilon 5 --model-mb 2 --fit-steps 5 --seeds 3
}

# fits TABLE : table 2 with few steps of each fit
fits() {
    for steps in 5 20 100; do
        store "$1-fit-$steps" "$all" $(paper "$1") --fit-steps $steps --seeds 3
    done
}

# ablation TABLE : figure 2
ablation() {
    for rounds in 10 4 32; do
        store "$1-ablation-$rounds" "$ablation" $(paper "$1") --epsilon 5 --rounds $rounds --seeds 3
    done
}

# figures TABLE : figures 3 and 6 to 11, tables 3 and 7
figures() {
    for rounds in 4 32 96; do
        store "$1-rounds-$rounds" "$plotted" $(paper "$1") --rounds $rounds --seeds 3
    done
    for epsilon in 0.5 2 5; do
        store "$1-epsilon-$epsilon" "aim $plotted" $(paper "$1") --epsilon $epsilon --seeds 3
    done
    for participation in 0.05 0.3 0.5; do
        store "$1-participation-$participation" "$plotted" $(paper "$1") --participation $participation --seeds 3
    done
    for beta in 0.05 0.1 0.3 0.8; do
        store "$1-skew-$beta" "$plotted" $(paper "$1") --rule "dli:$beta" --seeds 3
    done
    for rounds in 4 10 32; do
        store "$1-four-steps-$rounds" "aug-private naive" $(paper "$1") --local-steps 4 --rounds $rounds --seeds 3
    done
}

# annealing TABLE : table 6
annealing() {
    for epsilon in 1 2 3 5; do
        store "$1-anneal-$epsilon" "$all" "$1" --workload "research/bench/workloads/$1.json" --anneal --epsilon $epsilon --seeds 3
    done
}

# varied : changes to the corrected accounting that are not in the paper
varied() {
    store adult-ours-fit-20 "dist-aim aug-private naive naive-bayes" adult --fit-steps 20 --seeds 10
    store adult-ours-fit-20 random adult --fit-steps 20 --model-mb 2 --seeds 10
    store adult-all-rounds "aug-private naive aug-oracle" adult --most-rounds 10 --seeds 3
    for share in 0.7 0.5; do
        store "share-$share" aug-private adult --measure-share $share --seeds 3
    done
    store share-0.5 aim adult --measure-share 0.5 --seeds 3
    for rounds in 5 20; do
        store "ours-rounds-$rounds" aug-private adult --rounds $rounds --seeds 3
    done
    store adult-32-ours "aug-private aim" adult-32 --seeds 3
    name=flaim-heterogeneity
    [ -f "research/results/$name.json" ] || {
        echo "$name"
        python3 research/chapters.py store "$name" --program "$program" -- --quiet bench federated adult adult-32 magic --heterogeneity --seeds 2
    }
}

# synthfs : figure 1
synthfs() {
    for skew in 1 2 3 5; do
        store "synthfs-$skew" "aim $plotted" "synthfs:$skew" --accounting printed --seeds 3
    done
}

for table in $tables; do
    case $table in
    adult) main adult 10; fits adult; baselines adult; ablation adult; figures adult; varied; annealing adult ;;
    magic) main magic 3; fits magic; figures magic; annealing magic ;;
    census) main census 3; fits census; figures census; annealing census ;;
    credit) main credit 3; fits credit; baselines credit; ablation credit; figures credit; annealing credit ;;
    synthfs) synthfs ;;
    *) echo "no such table: $table" >&2; exit 2 ;;
    esac
done
