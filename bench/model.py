#!/usr/bin/env python3
"""Compares the model of `shima simulate` with measured collective calls.

The values of the machine are measured first (bench/mpi/model_cells.c), then cells: numbers of hosts
and ranks, pieces, bytes, reads and writes, each with every strategy. `shima simulate` estimates the
same cells with the measured values. Prints the errors and how often the strategy that is estimated
first is also measured first, and draws a page. Each result is stored as soon as it is there; a
further run continues, so the command may be interrupted.

    bench/model.py --cells 40            40 random cells of the grid, then the report
    bench/model.py --report              the report alone
    bench/model.py --fresh               forgets stored results

Hosts are namespaces of this machine (two_hosts.py), which needs root; without it only one host is
measured.
"""

import argparse
import dataclasses
import itertools
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys

import two_hosts
from lib import picture, runner, subjects

ROOT = subjects.ROOT
STRATEGIES = ("independent", "disk_directed", "two_phase", "subgroup")
HOSTS, RANKS = (1, 2, 4), (2, 4, 8, 16, 32)
PATTERNS, PIECES = ("columns", "blocks", "irregular"), (64, 1024, 16384, 262144)
BYTES = (65536, 1 << 20, 8 << 20)
MOST_BYTES, MOST_PIECES = 256 << 20, 1 << 20  # of all ranks
LIMIT_ERROR, LIMIT_FIRST = 0.20, 0.90
EVEN = 1.10  # strategies whose times differ by less are equally good


@dataclasses.dataclass(frozen=True)
class Cell:
    hosts: int
    ranks: int
    pattern: str
    piece: int
    bytes: int
    op: str

    def name(self):
        return (f"{self.hosts} hosts {self.ranks} ranks {self.pattern} {self.bytes >> 10} KiB "
                f"in {self.piece} B {self.op}")

    def strategies(self):
        apart = self.hosts > 1 and self.ranks > self.hosts
        return [name for name in STRATEGIES if name != "subgroup" or apart]


def grid(most_hosts):
    for values in itertools.product(HOSTS, RANKS, PATTERNS, PIECES, BYTES, ("write", "read")):
        cell = Cell(*values)
        pieces = cell.ranks * (cell.bytes // cell.piece if cell.pattern != "blocks" else 1)
        if (cell.hosts <= min(cell.ranks, most_hosts) and cell.piece <= cell.bytes
                and cell.ranks * cell.bytes <= MOST_BYTES and pieces <= MOST_PIECES
                and (cell.pattern != "blocks" or cell.piece == PIECES[0])):
            yield cell


# --- results that outlive the command -----------------------------------------------------------

class Store:
    """A line of JSON for each result; `key` identifies it."""

    def __init__(self, path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        self.results = {entry["key"]: entry["value"] for entry in runner.json_lines("\n".join(lines))}

    def get(self, key, make):
        if key not in self.results:
            value = make()
            if value is None:
                return None
            self.results[key] = value
            with open(self.path, "a") as file:
                file.write(json.dumps({"key": key, "value": value}) + "\n")
        return self.results[key]


# --- measuring ----------------------------------------------------------------------------------

class Bench:
    def __init__(self, flavour, directory, options):
        self.flavour, self.directory, self.options = flavour, directory, options
        self.path = directory / "model.dat"

    def start(self, hosts, ranks, arguments, hints=""):
        """The JSON object that the program prints under Shima, or None."""
        program = [str(subjects.binary("model_cells", self.flavour)), "--file", str(self.path),
                   *map(str, arguments)]
        environment = self.flavour.environment() | two_hosts.ROOT_ENVIRONMENT | {"SHIMA_HINTS": hints}
        self.path.unlink(missing_ok=True)
        runner.drain()
        if hosts == 1:
            command = [str(subjects.TOOL), "run", "-n", str(ranks), *program]
            outcome = runner.run(command, environment, self.options.timeout)
        else:
            with two_hosts.TwoHosts(count=hosts) as there:
                command = there.mpi_command(self.flavour.mpiexec, ranks,
                                            [str(subjects.TOOL), "exec", *program])
                outcome = runner.run(command, environment, self.options.timeout)
        self.path.unlink(missing_ok=True)
        if outcome.problem or not outcome.records:
            runner.say(f"    {outcome.problem or 'no result'}")
            return None
        return outcome.records[0]

    def cell(self, cell, strategy):
        record = self.start(cell.hosts, cell.ranks, [
            "--op", cell.op, "--pattern", cell.pattern, "--bytes", cell.bytes, "--piece", cell.piece,
            "--repeat", self.options.reps], f"shima_collective={strategy}")
        return record and statistics.median(record["seconds"])

    def median_us(self, hosts, pattern, size, piece, strategy, ranks=2):
        record = self.start(hosts, ranks, ["--op", "write", "--pattern", pattern, "--bytes", size,
                                       "--piece", piece, "--repeat", 100],
                            f"shima_collective={strategy}")
        if record is None:
            sys.exit("model: cannot measure the machine; see the messages above")
        return statistics.median(record["seconds"]) * 1e6

    def machine(self, most_hosts):
        """The values of the model. What only Shima knows comes from calls of two ranks: a call of 8 bytes
        is a write of each rank and a meeting; small pieces cost more than large ones. With more ranks
        than cores, such a call is their turns."""
        values = self.start(min(2, most_hosts), 2, ["--machine"])
        if values is None:
            sys.exit("model: cannot measure the machine; see the messages above")
        smallest_us = self.median_us(1, "blocks", 8, 8, "independent")
        values["meeting_us"] = max(0.5, smallest_us - values["io_us"])
        cores = os.cpu_count()
        values["turn_us"] = self.median_us(1, "blocks", 8, 8, "independent", 4 * cores) / 4
        if most_hosts > 1:
            apart_us = self.median_us(2, "blocks", 8, 8, "independent")
            values["round_us"] = max(values["latency_us"], apart_us - smallest_us)
        size, small, large = 1 << 20, 64, 16384
        more_us = (self.median_us(1, "columns", size, small, "disk_directed")
                   - self.median_us(1, "columns", size, large, "disk_directed"))
        more_pieces = 2 * (size // small - size // large)
        values["piece_ns"] = max(1.0, more_us * 1e3 * min(2, cores) / more_pieces)
        values["shared_cores"] = cores
        return values


# --- estimating ---------------------------------------------------------------------------------

def estimate(cell, strategy, machine_file):
    command = [str(subjects.TOOL), "simulate", "--ranks", str(cell.ranks),
               "--ranks-per-node", str(-(-cell.ranks // cell.hosts)),
               "--cores-per-node", str(os.cpu_count()), "--pattern", cell.pattern,
               "--bytes-per-rank", str(cell.bytes), "--piece", str(min(cell.piece, cell.bytes)),
               "--direction", cell.op, "--strategy", strategy, "--machine", str(machine_file),
               "--json", "-"] + (["--cached"] if cell.op == "read" else [])
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"model: {' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)["scales"][0]["estimate"]["seconds"]


@dataclasses.dataclass
class Compared:
    cell: Cell
    measured: dict   # strategy -> seconds
    estimated: dict

    def errors(self):
        return [abs(self.estimated[name] / self.measured[name] - 1) for name in self.measured]

    def same_first(self):
        """Whether the strategy that is estimated first is measured within EVEN of the best."""
        first = min(self.measured, key=lambda name: self.estimated[name])
        return self.measured[first] <= EVEN * min(self.measured.values())


def compare(store, cells, machine_file):
    for cell in cells:
        measured = {name: store.results.get(f"{cell.name()} {name}") for name in cell.strategies()}
        measured = {name: seconds for name, seconds in measured.items() if seconds}
        if measured:
            yield Compared(cell, measured, {name: estimate(cell, name, machine_file) for name in measured})


# --- showing ------------------------------------------------------------------------------------

def summary(results):
    errors = [error for each in results for error in each.errors()]
    several = [each.same_first() for each in results if len(each.measured) > 1]
    first = sum(several) / len(several) if several else 1.0
    return statistics.median(errors), first, len(errors)


def print_errors(results):
    groups = {"all": results}
    for each in results:
        for key in (f"{each.cell.hosts} hosts", each.cell.op, each.cell.pattern,
                    f"pieces of {each.cell.piece} B"):
            groups.setdefault(key, []).append(each)
        for name in each.measured:
            one = Compared(each.cell, {name: each.measured[name]}, {name: each.estimated[name]})
            groups.setdefault(name, []).append(one)
    print(f"{'':<20} {'calls':>6} {'median error':>13} {'same first':>11}")
    for key, members in groups.items():
        error, first, calls = summary(members)
        print(f"{key:<20} {calls:>6} {error:>12.0%} {first:>10.0%}")


def draw(results, machine, path):
    groups = []
    for each in sorted(results, key=lambda r: dataclasses.astuple(r.cell)):
        bars = []
        for name in each.measured:
            for series, seconds in ((0, each.measured[name]), (1, each.estimated[name])):
                bars.append(picture.Bar(series, seconds, f"{seconds * 1e3:.2f} ms {name}"))
        groups.append((each.cell, picture.Group("", bars)))
    charts = [picture.Chart(cell.name(), "", [group]) for cell, group in groups]
    error, first, calls = summary(results)
    lead = (f"{calls} calls in {len(results)} cells: median error {error:.0%} (at most {LIMIT_ERROR:.0%}), "
            f"the same strategy first in {first:.0%} (at least {LIMIT_FIRST:.0%}).")
    rows = [[each.cell.name(), name, f"{each.measured[name] * 1e3:.3f}", f"{each.estimated[name] * 1e3:.3f}",
             f"{each.estimated[name] / each.measured[name]:.2f}"]
            for each in results for name in each.measured]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(picture.page("The model against measured calls", lead,
                                 [(0, "measured"), (1, "estimated")], charts,
                                 ["cell", "strategy", "measured ms", "estimated ms", "ratio"], rows,
                                 ", ".join(f"{key} {value:g}" for key, value in machine.items())))
    print(f"picture: {path}")


def report(store, cells, machine, options):
    machine_file = store.path.with_suffix(".machine.json")
    machine_file.write_text(json.dumps(machine) + "\n")
    results = list(compare(store, cells, machine_file))
    if not results:
        sys.exit("model: no cell has been measured yet")
    print(", ".join(f"{key} {value:g}" for key, value in machine.items()))
    print_errors(results)
    draw(results, machine, ROOT / "build/report/model.html")
    error, first, _ = summary(results)
    return 1 if options.strict and (error > LIMIT_ERROR or first < LIMIT_FIRST) else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--cells", type=int, default=40, help="how many cells of the grid, chosen at random (40)")
    add("--seed", type=int, default=1, help="which cells")
    add("--reps", type=int, default=5, help="calls a cell; their median counts (5)")
    add("--mpi", choices=subjects.FAMILIES, default="mpich")
    add("--hosts", type=int, default=4, help="the most hosts (4)")
    add("--dir", help="where the file goes (default: build/bench-files)")
    add("--out", default=str(ROOT / "bench/out/model.jsonl"), help="the stored results")
    add("--timeout", type=float, default=120, help="seconds a job may take")
    add("--report", action="store_true", help="measure nothing")
    add("--fresh", action="store_true", help="forget stored results")
    add("--strict", action="store_true", help="exit 1 if the model misses its limits")
    return parser.parse_args()


def measure_all(bench, store, cells):
    for number, cell in enumerate(cells):
        for strategy in cell.strategies():
            key = f"{cell.name()} {strategy}"
            if key not in store.results:
                runner.say(f"  {number + 1}/{len(cells)}  {key}")
                store.get(key, lambda c=cell, s=strategy: bench.cell(c, s))


def main():
    options = parse()
    if options.fresh:
        pathlib.Path(options.out).unlink(missing_ok=True)
    store = Store(pathlib.Path(options.out))
    flavour = subjects.find_flavour(options.mpi)
    if not flavour or not subjects.shima_is_built():
        sys.exit("model: needs Shima (make build) and an MPI (scripts/setup)")
    reason = two_hosts.why_unavailable()
    if reason and options.hosts > 1:
        print(f"model: only one host: {reason}", file=sys.stderr)
    most_hosts = 1 if reason else options.hosts
    cells = list(grid(most_hosts))
    random.Random(options.seed).shuffle(cells)
    cells = cells[:options.cells]
    if options.report:
        machine = store.get(f"machine {options.mpi}", lambda: sys.exit("model: nothing is stored"))
        return report(store, cells, machine, options)
    directory = runner.working_directory(options.dir, ROOT / "build/bench-files", 1)
    try:
        subjects.compile_program("model_cells", flavour)
        bench = Bench(flavour, directory, options)
        machine = store.get(f"machine {options.mpi}", lambda: bench.machine(most_hosts))
        measure_all(bench, store, cells)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return report(store, cells, machine, options)


if __name__ == "__main__":
    sys.exit(main())
