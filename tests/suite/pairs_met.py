#!/usr/bin/env python3
# FLAVOURS: none
"""The tests that `make test` runs cover every pair that they must cover, as tests/README.md promises.

Reads the tests as ctest has them registered, by their names and labels, not the choice that produced them. Within
each directory every MPI flavour, every rank count and every variant has to be met with each other wherever the product
has the two together. Each source has to run under every kind of MPI, with every rank count and in every variant that
it has. The variant iod only has to be met with every kind of MPI. A regression test under every flavour in every variant, and under every kind of MPI with every rank count.
"""

import collections
import itertools
import json
import os
import re
import subprocess
import sys

BUILD = os.environ["SHIMA_BUILD_DIR"]
KEPT_OUT = {"full", "soak"}


def registered_tests():
    """Names of all tests, each with its labels, the directory's first."""
    listing = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    for test in json.loads(listing.stdout)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test["properties"]}
        yield test["name"], properties["LABELS"]


def kinds_of_mpi():
    """Flavours, each with its kind, as found by CMake."""
    with open(os.path.join(BUILD, "tests/product.txt"), encoding="utf-8") as lines:
        return {words[3]: words[4] for words in map(str.split, lines) if words}


def parsed(name, labels, kinds):
    """The values of a run, or None for a test without a flavour."""
    flavours = "|".join(map(re.escape, kinds))
    found = re.fullmatch(rf"{labels[0]}\.(.+?)\.({flavours})(?:\.np(\d+)(?:\.(\w+))?)?", name)
    if not found:
        return None
    source, flavour, ranks, variant = found.groups()
    return {"source": source, "flavour": flavour, "mpi": kinds[flavour], "ranks": ranks, "variant": variant or "plain"}


def pairs_of(directory, run):
    asked_for = [("source", "mpi"), ("source", "ranks")]
    if run["variant"] == "iod":
        asked_for.append(("mpi", "variant"))
    else:
        asked_for += [*itertools.combinations(("flavour", "ranks", "variant"), 2), ("source", "variant")]
    if directory == "regress":
        asked_for += [("source", "flavour", "variant"), ("source", "mpi", "ranks")]
    for names in asked_for:
        yield f"{directory}: " + " with ".join(f"{name} {run[name]}" for name in names)


def main():
    kinds = kinds_of_mpi()
    every, everyday, counts = set(), set(), collections.Counter()
    for name, labels in registered_tests():
        run = parsed(name, labels, kinds)
        counts["all"] += 1
        counts["everyday"] += not KEPT_OUT & set(labels)
        if run is None or "soak" in labels:
            continue
        pairs = set(pairs_of(labels[0], run))
        every |= pairs
        if "full" not in labels:
            everyday |= pairs
    print(f"{counts['everyday']} of {counts['all']} tests are in the everyday set, which meets {len(everyday)} pairs")
    missing = sorted(every - everyday)
    print("\n".join(f"not met: {pair}" for pair in missing), file=sys.stderr)
    return 1 if missing or not everyday else 0


if __name__ == "__main__":
    sys.exit(main())
