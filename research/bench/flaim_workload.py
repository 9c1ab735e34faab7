"""Writes the workload of the FLAIM paper for a table: its 64 triples of columns.

    python3 research/bench/flaim_workload.py DIR/NAME.schema.json > research/bench/workloads/NAME.json

FLAIM's program draws them with numpy and seed 123 from all triples of columns, in the order of the file. The files are
those of numpy 2.4.6. `fhaim-lab bench federated --workload FILE` reads them."""

import itertools
import json
import sys

import numpy

SEED = 123
TRIPLES = 64


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with open(sys.argv[1]) as file:
        names = [column["name"] for column in json.load(file)["columns"]]
    triples = list(itertools.combinations(names, 3))
    drawn = numpy.random.default_rng(SEED).choice(len(triples), min(len(triples), TRIPLES), replace=False)
    print("[\n" + ",\n".join(json.dumps(triples[place]) for place in drawn) + "\n]")


if __name__ == "__main__":
    main()
