#!/bin/sh
# Stores the results of docs/research/flaim.md: one for each setting and method, except for those that are stored already.
#
#   FHAIM_DATA_DIR=DIR research/bench/flaim.sh FHAIM-LAB [SEEDS]
#
# DIR has adult, adult-32, magic and census (research/bench/tables.sh) and credit (research/bench/flaim_tables.py). SEEDS
# is the number of runs of Adult's tables (default 10); other tables and plots have three. A second run continues; remove
# a file to repeat it.
# Then `python3 research/chapters.py write` writes tables and plots.
set -eu

[ $# -ge 1 ] || { echo "usage: research/bench/flaim.sh FHAIM-LAB [SEEDS]" >&2; exit 2; }
program=$1
seeds=${2:-10}
case $program in */*) program=$(realpath "$program") ;; esac
cd "$(dirname "$0")/../.."

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

all="aim dist-aim aug-private naive aug-oracle"
plotted="dist-aim aug-private naive"
ablation="naive aug-oracle aug-oracle-combined aug-proxy aug-private"
baselines="aim aug-private naive naive-bayes"
printed="--accounting printed"
own="staged staged-h1 naive-bayes"

store adult-printed "$all" adult $printed --seeds "$seeds"
store adult-ours "$all $own" adult --seeds "$seeds"
store adult-ours random adult --model-mb 2 --seeds "$seeds"
store adult-all-rounds "aug-private naive aug-oracle" adult --most-rounds 10 --seeds "$seeds"
store magic-printed "$all" magic $printed --seeds 3
store magic-ours "$all $own" magic --seeds 3
store magic-ours random magic --model-mb 2 --seeds 3
store adult-5-printed "$baselines" adult $printed --epsilon 5 --seeds 3
store adult-5-printed random adult $printed --epsilon 5 --model-mb 2 --seeds 3
for rounds in 10 4 32; do
    store "ablation-$rounds" "$ablation" adult $printed --epsilon 5 --rounds $rounds --seeds 3
done
for share in 0.7 0.5; do
    store "share-$share" aug-private adult --measure-share $share --seeds 3
done
store share-0.5 aim adult --measure-share 0.5 --seeds 3
for rounds in 5 20; do
    store "ours-rounds-$rounds" aug-private adult --rounds $rounds --seeds 3
done
store adult-32-ours "aug-private aim" adult-32 --seeds 3
for epsilon in 0.5 2 5; do
    store "epsilon-$epsilon" "aim $plotted" adult $printed --epsilon $epsilon --seeds 3
done
for participation in 0.05 0.3 0.5; do
    store "participation-$participation" "$plotted" adult $printed --participation $participation --seeds 3
done
for beta in 0.05 0.1 0.3 0.8; do
    store "skew-$beta" "$plotted" adult $printed --rule "dli:$beta" --seeds 3
done
for skew in 1 2 3 5; do
    store "synthfs-$skew" "aim $plotted" "synthfs:$skew" $printed --seeds 3
done
for rounds in 4 32 96; do
    store "rounds-$rounds" "$plotted" adult $printed --rounds $rounds --seeds 3
done
store anneal "$all" adult --anneal --seeds 3
for table in census credit; do
    store "$table-printed" "$all" $table $printed --seeds 3
    store "$table-ours" "$all $own" $table --seeds 3
done
store credit-ours random credit --model-mb 2 --seeds 3
store credit-5-printed "$baselines" credit $printed --epsilon 5 --seeds 3
store credit-5-printed random credit $printed --epsilon 5 --model-mb 2 --seeds 3
name=flaim-heterogeneity
[ -f "research/results/$name.json" ] ||
    python3 research/chapters.py store "$name" --program "$program" -- --quiet bench federated adult adult-32 magic --heterogeneity --seeds 2
