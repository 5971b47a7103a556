"""Small independent operations over two I/O nodes on loopback.

A cached read of 4 KiB beside a raw TCP round trip of as much, in alternating rounds of one process;
100 000 random requests in one list beside one call each, and beside as many bytes over raw TCP; and
1 000 striped files created, written, closed and removed, on the nodes beside targets of this machine.
"""

import contextlib
import os
import pathlib
import shutil
import statistics

from lib.io_nodes import IoNodes
from lib.programs import binary
from lib.results import LOWER, Sample, Verdict
from lib.section import OPS, Job, Section

NODES, LOCAL = "I/O nodes", "local targets"


@contextlib.contextmanager
def two_nodes(context):
    """Two daemons, each with a target in a directory: the directory, and an environment that names the targets in each way."""
    directory = pathlib.Path(context.directory) / "iod"
    shutil.rmtree(directory, ignore_errors=True)
    targets = {name: directory / name for name in "ab"}
    for target in targets.values():
        target.mkdir(parents=True)
    local = ":".join(f"{name}={target}" for name, target in targets.items())
    with IoNodes(directory) as nodes:
        for name, target in targets.items():
            nodes.add("127.0.0.1", {name: target})
        yield directory, {NODES: os.environ | nodes.environment(), LOCAL: os.environ | {"SHIMA_TARGETS": local}}
    shutil.rmtree(directory, ignore_errors=True)


class IodSmall(Section):
    name = "iod_small"
    title = "Small operations on files striped over two I/O nodes on loopback"
    lead = "microseconds a read, request or file; medians of rounds that alternate in one process"
    limit = False
    is_warmed = False
    methods = ("raw TCP", "Shima", "list", "one call each", NODES, LOCAL)

    def columns(self, context):
        return list(self.methods)

    def row_names(self, context):
        return ["read of 4 KiB", *(f"random requests, {op}" for op in OPS), "files: create, write, close",
                "files: remove", "files: all"]

    def jobs(self, context):
        yield Job("reads", "Shima", lambda: self.reads(context))
        yield Job("lists", "list", lambda: self.lists(context))
        yield Job("files", NODES, lambda: self.files(context))

    def run(self, context, environment, *arguments):
        return context.measure([str(binary("iod_small")), *map(str, arguments)], environment)

    def medians(self, outcome, row_of):
        """A sample for each method and operation."""
        figures = {}
        for record in outcome.records:
            figures.setdefault((record["method"], record["op"]), []).append(record["us"])
        return [Sample(row_of(op), statistics.median(values), "us", LOWER, outcome.problem, subject=method)
                for (method, op), values in figures.items()]

    def reads(self, context):
        with two_nodes(context) as (directory, environment):
            outcome = self.run(context, environment[NODES], "reads", directory / "file", 2000 if context.quick else 20_000)
            return self.medians(outcome, lambda op: "read of 4 KiB")

    def lists(self, context):
        with two_nodes(context) as (directory, environment):
            outcome = self.run(context, environment[NODES], "list", directory / "file", 10_000 if context.quick else 100_000)
            return self.medians(outcome, lambda op: f"random requests, {op}")

    def files(self, context):
        """Files on the nodes and here in turn: what a new file costs changes with the state of the file system."""
        samples, rounds = [], 1 if context.quick else 10
        with two_nodes(context) as (directory, environment):
            for where in (LOCAL, NODES) * rounds:
                outcome = self.run(context, environment[where], "files", directory, 100)
                for sample in self.medians(outcome, lambda op: f"files: {op}"):
                    sample.subject = where
                    samples.append(sample)
        return samples

    def targets(self, results, context):
        self.require(results, "read of 4 KiB", "Shima", "raw TCP", 1.5)
        for op in OPS:
            self.require(results, f"random requests, {op}", "list", "one call each", 1 / 20)
        self.require(results, "files: all", NODES, LOCAL, 3.0)

    def require(self, results, row, method, other, needed):
        ours, theirs = results.median(row, method), results.median(row, other)
        if ours and theirs:
            results.verdicts.append(Verdict(row, method, other, ours / theirs, needed, LOWER))
