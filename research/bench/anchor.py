"""Runs a mechanism of dpsynth (github.com/google/dpsynth, Apache-2.0), which has to be installed, for
`fhaim-lab bench mechanisms --program`.

    fhaim-lab bench mechanisms --family tree --mechanism staged --program "swift=python3 research/bench/anchor.py swift"

reads from standard input what research/lab/src/bench/anchor.rs writes: the sizes of the attributes, the rows
seen as codes, the pairs asked for and the budget. It writes the shares of the cells of those pairs in the
program's model, and as many records of the program's as it saw. The mechanism gets the zCDP budget that ours
have, or, with --calibrate, what its own accountant allows at the same epsilon and delta. Its workload is all
pairs; a tenth of the budget goes to the 1-ways, as is its default. The model cap is the mechanism's own
unless --clique-cells is given (swift), or that of the bench (aim).
"""

import argparse
import json
import sys


def config(mechanisms, flags, pairs, megabytes):
    """The mechanism with its options."""
    options = {"workload": pairs}
    if flags.iterations:
        options["pgm_iters"] = flags.iterations
    if flags.mechanism == "swift":
        if flags.clique_cells:
            options["max_clique_size"] = flags.clique_cells
        return mechanisms.SWIFTConfig(**options)
    if flags.mechanism == "aim":
        return mechanisms.AIMConfig(max_model_size=megabytes, **options)
    del options["workload"]  # A spanning tree of all attributes, whatever the workload.
    return mechanisms.MSTConfig(**options)


def run(flags, question):
    """The mechanism's result on the rows seen, and the names that it knows the attributes by."""
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
    """What the bench reads: no record of its own is drawn here, the program's are taken as they are."""
    import numpy

    def share(pair):
        cells = numpy.asarray(result.model.project(pair).datavector(), dtype=float)
        return (cells / cells.sum()).tolist()

    synthetic = result.synthetic_data.to_dict()
    columns = [numpy.asarray(synthetic[name])[:records].astype(int).tolist() for name in names]
    return {"marginals": [share(pair) for pair in pairs], "columns": columns}


def main():
    """Reads the question, writes the answer."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("mechanism", choices=["swift", "aim", "mst"])
    parser.add_argument("--calibrate", action="store_true", help="by the program's own accountant")
    parser.add_argument("--clique-cells", type=float, help="most cells of a clique (swift)")
    parser.add_argument("--iterations", type=int, help="steps of a fit")
    flags = parser.parse_args()
    question = json.load(sys.stdin)
    # Whatever the program says goes to standard error: standard output has the answer alone.
    out, sys.stdout = sys.stdout, sys.stderr
    result, names, pairs = run(flags, question)
    json.dump(answer(result, names, pairs, len(question["columns"][0])), out)


if __name__ == "__main__":
    main()
