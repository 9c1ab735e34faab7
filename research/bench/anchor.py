"""Runs a mechanism of dpsynth for `fhaim-lab bench mechanisms --program`.

    fhaim-lab bench mechanisms --family tree --mechanism staged --program "swift=python3 research/bench/anchor.py swift"

dpsynth (github.com/google/dpsynth, Apache-2.0) must be installed.

The program reads the input that research/lab/src/bench/external_baseline.rs writes to its standard input: the sizes
of the attributes, the training rows as codes, the requested pairs and the budget. It writes the shares of the cells
of these pairs in the mechanism's model, and as many synthetic records as there are training rows.

The mechanism gets the same zCDP budget as ours. With --calibrate, it gets the budget that its own accountant allows
at the same epsilon and delta. Its workload is all pairs, and a tenth of the budget goes to the 1-ways, which is its
default. The model cap is the mechanism's default or --clique-cells (swift), or the cap of the bench (aim).
"""

import argparse
import json
import sys


def config(mechanisms, flags, pairs, megabytes):
    """Returns the mechanism with its options."""
    options = {"workload": pairs}
    if flags.iterations:
        options["pgm_iters"] = flags.iterations
    if flags.mechanism == "swift":
        if flags.clique_cells:
            options["max_clique_size"] = flags.clique_cells
        return mechanisms.SWIFTConfig(**options)
    if flags.mechanism == "aim":
        return mechanisms.AIMConfig(max_model_size=megabytes, **options)
    del options["workload"]  # It measures a spanning tree of all attributes and has no workload.
    return mechanisms.MSTConfig(**options)


def run(flags, question):
    """Runs the mechanism on the training rows. Returns its result, the attributes' names and the pairs."""
    import mbi
    import numpy
    from dpsynth import discrete_mechanisms
    from dpsynth.discrete_mechanisms.discrete import DiscreteConfig

    names = [f"c{number}" for number in range(len(question["sizes"]))]
    codes = [numpy.asarray(column, dtype=numpy.int32) for column in question["columns"]]
    domain = mbi.Domain(tuple(names), tuple(question["sizes"]))
    data = mbi.Dataset(dict(zip(names, codes)), domain)
    pairs = [(names[a], names[b]) for a, b in question["pairs"]]
    inner = config(discrete_mechanisms, flags, pairs, question["model_bytes"] / 1e6)
    whole = DiscreteConfig(inner)
    if flags.calibrate:
        mechanism = whole.calibrate(epsilon=question["epsilon"], delta=question["delta"])
    else:
        mechanism = whole.configure(zcdp_rho=question["rho"])
    return mechanism(numpy.random.default_rng(question["seed"]), data), names, pairs


def answer(result, names, pairs, records):
    """Returns the output for the bench. The records are those that the mechanism has drawn."""
    import numpy

    def share(pair):
        cells = numpy.asarray(result.model.project(pair).datavector(), dtype=float)
        return (cells / cells.sum()).tolist()

    synthetic = result.synthetic_data.to_dict()
    columns = [numpy.asarray(synthetic[name])[:records].astype(int).tolist() for name in names]
    return {"marginals": [share(pair) for pair in pairs], "columns": columns}


def main():
    """Reads the input of the bench, and writes the output."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("mechanism", choices=["swift", "aim", "mst"])
    parser.add_argument("--calibrate", action="store_true", help="use the budget of the mechanism's own accountant")
    parser.add_argument("--clique-cells", type=float, help="maximum number of cells of a clique (swift)")
    parser.add_argument("--iterations", type=int, help="number of steps of a fit")
    flags = parser.parse_args()
    question = json.load(sys.stdin)
    # The mechanism's messages go to standard error, because standard output is for the result.
    out, sys.stdout = sys.stdout, sys.stderr
    result, names, pairs = run(flags, question)
    json.dump(answer(result, names, pairs, len(question["columns"][0])), out)


if __name__ == "__main__":
    main()
