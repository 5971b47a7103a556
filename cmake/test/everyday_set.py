#!/usr/bin/env python3
"""Chooses the runs of the tests for `make test`: all pairs instead of the whole product.

The product of a test program is every MPI flavour x every rank count x every variant. Faults show in one value or in
two that meet (a rank count under one MPI, a variant with few ranks), rarely only in three. So the everyday set contains,
for each directory of tests, every pair of values in the product, and for each source every value.

pairs_of() returns the pairs that a run covers; choose() takes runs until every pair of the product is covered: first the
pinned runs, then source by source the run that covers most open pairs. Ties go to the run of no rare variant, with fewer ranks,
then to the flavour with the fewest runs so far, then to the first name, so that equal input gives equal output.

Usage: everyday_set.py PRODUCT, a file of lines "name directory source flavour family ranks variant pin", where ranks and
variant are "-" for a script, and pin is "pinned" for a run that is always in the set and "-" for others.
Prints the names of the runs in the set.
"""

import collections
import sys
from typing import NamedTuple

# Directories whose sources keep running where they found a fault, which is often one of a single MPI: every flavour meets
# every variant of the source, every kind of MPI every rank count.
THOROUGH = ("regress",)
# Variants that only meet every kind of MPI: they cost more than they find in each source.
RARE = ("iod",)


class Run(NamedTuple):
    name: str
    directory: str
    source: str
    flavour: str
    family: str
    ranks: str
    variant: str
    pin: str = "-"


def read_product(path):
    with open(path, encoding="utf-8") as lines:
        return [Run(*line.split()) for line in lines if line.strip()]


def own_pairs_of(run):
    """The pairs of a run with its source."""
    source = (run.directory, run.source)
    if run.directory in THOROUGH:
        return {(source, run.flavour, "variant", run.variant), (source, run.family, "ranks", run.ranks)}
    own = {(source, "mpi", run.family), (source, "ranks", run.ranks)}
    return own if run.variant in RARE else own | {(source, "variant", run.variant)}


def pairs_of(run):
    """Every pair that this run covers: those with its source, and those of its values within its directory."""
    if run.variant in RARE:
        return own_pairs_of(run) | {(run.directory, "mpi", run.family, "variant", run.variant)}
    values = {"flavour": run.flavour, "ranks": run.ranks, "variant": run.variant}
    shared = {(run.directory, one, values[one], other, values[other]) for one in values for other in values if one < other}
    return own_pairs_of(run) | shared


def ranks_in(run):
    return 1 if run.ranks == "-" else int(run.ranks)


class Chooser:
    """Takes runs one by one and stores the open pairs."""

    def __init__(self, runs):
        self.open = set().union(*map(pairs_of, runs)) if runs else set()
        self.taken = []
        self.runs_of_flavour = collections.Counter()

    def take(self, run):
        self.taken.append(run)
        self.open -= pairs_of(run)
        self.runs_of_flavour[run.directory, run.flavour] += 1

    def take_best(self, runs):
        def worth(run):
            met = pairs_of(run) & self.open
            return (-len(own_pairs_of(run) & met), -len(met), run.variant in RARE, ranks_in(run),
                    self.runs_of_flavour[run.directory, run.flavour], run.name)

        self.take(min(runs, key=worth))

    def cover(self, runs, pairs_of_run):
        """Takes runs until none of them could cover another open pair."""
        while useful := [run for run in runs if pairs_of_run(run) & self.open]:
            self.take_best(useful)


def choose(runs):
    """The runs of the everyday set, in the order in which they were taken."""
    chooser = Chooser(runs)
    for run in runs:
        if run.pin == "pinned":
            chooser.take(run)
    by_source = collections.defaultdict(list)
    for run in runs:
        by_source[run.directory, run.source].append(run)
    for source in sorted(by_source):
        chooser.cover(by_source[source], own_pairs_of)
    chooser.cover(runs, pairs_of)
    return chooser.taken


def main():
    for run in choose(read_product(sys.argv[1])):
        print(run.name)


if __name__ == "__main__":
    main()
