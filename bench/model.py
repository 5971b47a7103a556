#!/usr/bin/env python3
"""Compares the model of `shima simulate` with measured collective calls.

The values of the machine are those with which the model is closest to calibrating calls. Other calls
are the cells: numbers of hosts and ranks, pieces, bytes, reads and writes, each with every strategy.
Both are measured in several jobs, in a random order. `shima simulate` estimates the cells with the
values of the machine. Prints the errors and how often the strategy that is estimated first is also
measured first; the same for one job as an estimate of the others, which is the error of the measurement
itself; and draws a page. Each result is stored as soon as it is there; a further run continues, so the
command may be interrupted.

    bench/model.py --cells 40            40 random cells of the grid, then the report
    bench/model.py --report              the report alone
    bench/model.py --fresh               forgets stored results

Hosts are namespaces of this machine (two_hosts.py), which needs root; without it only one host is
measured.
"""

import argparse
import concurrent.futures
import dataclasses
import itertools
import json
import math
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

import two_hosts
from lib import picture, places, programs, runner, subjects
from lib.noise import NOISY, Others

ROOT = places.ROOT
STRATEGIES = ("independent", "disk_directed", "two_phase", "subgroup")
HOSTS, RANKS = (1, 2, 4), (2, 4, 8, 16, 32)
PATTERNS, PIECES = ("columns", "blocks", "irregular"), (64, 1024, 16384, 262144)
BYTES = (65536, 1 << 20, 8 << 20)
MOST_BYTES, MOST_PIECES = 256 << 20, 1 << 20  # of all ranks
LIMIT_ERROR, LIMIT_FIRST = 0.20, 0.90
EVEN = 1.10  # strategies whose times differ by less are equally good
MOST_CALLS, CALLS_FOR_SECONDS = 100, 0.04  # in a job, of short calls
TRIES = 4  # jobs, while other processes disturb them
MOST_IN_A_JOB, MOST_BYTES_IN_A_JOB = 16, 512 << 20
KNOWN = ("processor_cache_mb", "shared_cores")  # without measuring calls
# Where the search for values begins: a machine with namespaces. The tool's own values are a cluster's.
START = {"round_us": 20, "turn_us": 25, "message_us": 10, "visit_us": 8, "segment_kb": 250,
         "wire_mb_s": 2000}


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


def grid(most_hosts, pieces_bytes=PIECES, ranks_bytes=BYTES):
    for values in itertools.product(HOSTS, RANKS, PATTERNS, pieces_bytes, ranks_bytes, ("write", "read")):
        cell = Cell(*values)
        pieces = cell.ranks * (cell.bytes // cell.piece if cell.pattern != "blocks" else 1)
        if (cell.hosts <= min(cell.ranks, most_hosts) and cell.piece <= cell.bytes
                and cell.ranks * cell.bytes <= MOST_BYTES and pieces <= MOST_PIECES
                and (cell.pattern != "blocks" or cell.piece == pieces_bytes[0])):
            yield cell


# The calls in which a value decides. All sizes are none of the grid's, so that no call is judged that has
# been used to find a value.
COSTS = {
    "disk_mb_s": [(Cell(1, 4, "blocks", 64, 2 << 20, "write"), "independent"),
                  (Cell(2, 4, "columns", 131072, 2 << 20, "write"), "independent")],
    "cache_mb_s": [(Cell(1, 4, "blocks", 64, 2 << 20, "read"), "independent"),
                   (Cell(2, 4, "columns", 65536, 2 << 20, "read"), "independent")],
    "copy_mb_s": [(Cell(1, 4, "columns", 16384, 2 << 20, "write"), "disk_directed"),
                  (Cell(1, 4, "columns", 16384, 2 << 20, "read"), "disk_directed"),
                  (Cell(1, 8, "columns", 16384, 512 << 10, "read"), "two_phase")],
    "io_us": [(Cell(1, 2, "columns", 1024, 512 << 10, "write"), "independent"),
              (Cell(1, 8, "columns", 1024, 512 << 10, "read"), "independent"),
              (Cell(2, 16, "columns", 1024, 256 << 10, "write"), "independent"),
              (Cell(4, 8, "irregular", 1024, 512 << 10, "write"), "independent"),
              (Cell(2, 4, "columns", 4096, 512 << 10, "read"), "independent")],
    "mapped_piece_ns": [(Cell(1, 8, "columns", 64, 128 << 10, "write"), "independent"),
                        (Cell(1, 2, "columns", 64, 4 << 20, "write"), "independent"),
                        (Cell(2, 8, "irregular", 64, 512 << 10, "write"), "independent")],
    "meeting_us": [(Cell(1, 2, "blocks", 8, 8, "write"), "independent"),
                   (Cell(1, 2, "columns", 16384, 32 << 10, "write"), "disk_directed")],
    "turn_us": [(Cell(1, 8, "blocks", 8, 8, "write"), "independent"),
                (Cell(1, 16, "blocks", 8, 8, "write"), "independent"),
                (Cell(1, 32, "blocks", 8, 8, "write"), "independent")],
    "round_us": [(Cell(2, 2, "blocks", 8, 8, "write"), "independent"),
                 (Cell(2, 8, "blocks", 8, 8, "write"), "independent"),
                 (Cell(4, 4, "blocks", 8, 8, "write"), "independent"),
                 (Cell(4, 16, "blocks", 8, 8, "write"), "independent")],
    "piece_ns": [(Cell(1, 2, "columns", 64, 4 << 20, "write"), "disk_directed"),
                 (Cell(1, 2, "columns", 64, 4 << 20, "read"), "disk_directed"),
                 (Cell(1, 8, "columns", 64, 512 << 10, "write"), "two_phase"),
                 (Cell(2, 4, "columns", 64, 512 << 10, "write"), "subgroup")],
    "list_piece_ns": [(Cell(1, 2, "irregular", 64, 4 << 20, "write"), "disk_directed"),
                      (Cell(1, 2, "irregular", 64, 4 << 20, "read"), "disk_directed"),
                      (Cell(1, 8, "irregular", 64, 512 << 10, "read"), "disk_directed"),
                      (Cell(2, 8, "irregular", 64, 512 << 10, "read"), "subgroup")],
    "sieved_piece_ns": [(Cell(1, 2, "irregular", 64, 4 << 20, "read"), "independent"),
                        (Cell(1, 8, "irregular", 64, 512 << 10, "read"), "independent")],
    "visit_us": [(Cell(1, 8, "columns", 1024, 256 << 10, "read"), "two_phase"),
                 (Cell(1, 16, "columns", 1024, 128 << 10, "write"), "two_phase"),
                 (Cell(1, 32, "columns", 1024, 128 << 10, "write"), "two_phase"),
                 (Cell(1, 16, "columns", 1024, 512 << 10, "read"), "disk_directed")],
    "message_us": [(Cell(2, 8, "columns", 8192, 32 << 10, "read"), "disk_directed"),
                   (Cell(2, 16, "columns", 1024, 32 << 10, "write"), "two_phase"),
                   (Cell(2, 8, "columns", 1024, 32 << 10, "write"), "subgroup"),
                   (Cell(4, 8, "columns", 1024, 32 << 10, "read"), "two_phase"),
                   (Cell(4, 16, "irregular", 1024, 32 << 10, "write"), "disk_directed")],
    "memory_mb_s": [(Cell(1, 8, "columns", 16384, 16 << 20, "write"), "independent"),
                    (Cell(1, 8, "columns", 16384, 16 << 20, "read"), "independent"),
                    (Cell(1, 8, "columns", 16384, 16 << 20, "write"), "disk_directed"),
                    (Cell(4, 4, "blocks", 64, 16 << 20, "write"), "independent")],
    "wire_mb_s": [(Cell(2, 2, "columns", 16384, 4 << 20, "write"), "disk_directed"),
                  (Cell(2, 4, "columns", 16384, 4 << 20, "read"), "subgroup"),
                  (Cell(4, 8, "columns", 16384, 4 << 20, "write"), "two_phase"),
                  (Cell(2, 8, "columns", 1024, 2 << 20, "write"), "disk_directed"),
                  (Cell(4, 16, "columns", 65536, 2 << 20, "read"), "disk_directed")],
}

# Calls of all kinds as well: a value is wrong for most calls if it is found by special ones alone.
MORE_CALLS, MORE_PIECES, MORE_BYTES = 70, (256, 4096, 65536), (128 << 10, 512 << 10, 4 << 20)


def calibrating_calls(most_hosts):
    """Those of COSTS, and others at random. No cell of the grid has their sizes."""
    decisive = [call for calls in COSTS.values() for call in calls if call[0].hosts <= most_hosts]
    chance = random.Random(1)
    cells = chance.sample(list(grid(most_hosts, MORE_PIECES, MORE_BYTES)), MORE_CALLS)
    return decisive + [(cell, chance.choice(cell.strategies())) for cell in cells]


# --- results that outlive the command -----------------------------------------------------------

class Store:
    """A line of JSON for each result; `key` identifies it, and the last line counts."""

    def __init__(self, path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        self.results = {entry["key"]: entry["value"] for entry in runner.json_lines("\n".join(lines))}

    def put(self, key, value):
        self.results[key] = value
        with open(self.path, "a") as file:
            file.write(json.dumps({"key": key, "value": value}) + "\n")

    @staticmethod
    def key(cell, strategy):
        return f"{cell.name()} {strategy}"

    def jobs(self, cell, strategy):
        """The median seconds of a call in each job."""
        return self.results.get(self.key(cell, strategy), [])

    def seconds(self, cell, strategy):
        jobs = self.jobs(cell, strategy)
        return statistics.median(jobs) if jobs else None


def processor_cache_mb():
    """Of all processors: the level that each has for itself. Measured calls are slower if they do not fit that,
    although they fit the level that processors share, which virtual machines have to share as well."""
    total = 0
    for cache in pathlib.Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cache/index2"):
        size = (cache / "size").read_text().strip()
        total += int(size[:-1]) * 1.024e-3 if size.endswith("K") else 0
    return total or 32


# --- measuring ----------------------------------------------------------------------------------

class Bench:
    def __init__(self, flavour, directory, options):
        self.flavour, self.directory, self.options = flavour, directory, options
        self.path = directory / "model.dat"
        self.end = time.monotonic() + options.limit

    def is_over(self):
        return time.monotonic() > self.end

    def start(self, hosts, ranks, program):
        """What the program prints under Shima."""
        environment = self.flavour.environment() | two_hosts.ROOT_ENVIRONMENT
        runner.drain()
        if hosts == 1:
            outcome = runner.run([str(places.TOOL), "run", "-n", str(ranks), *program], environment,
                                 self.options.timeout)
        else:
            with two_hosts.TwoHosts(count=hosts) as there:
                command = there.mpi_command(self.flavour.mpiexec, ranks,
                                            [str(places.TOOL), "exec", *program])
                outcome = runner.run(command, environment, self.options.timeout)
        self.path.unlink(missing_ok=True)
        if outcome.problem:
            runner.say(f"    {outcome.problem}")
        return outcome.records

    def times(self, calls, repetitions):
        """The seconds of the calls, which have the same ranks, in a job that others have not disturbed, if there is one."""
        program = [str(programs.binary("model_cells", self.flavour)), "--file", str(self.path),
                   "--repeat", str(repetitions), "--most", str(MOST_CALLS), "--seconds", str(CALLS_FOR_SECONDS)]
        for cell, strategy in calls:
            program += ["--op", cell.op, "--pattern", cell.pattern, "--bytes", str(cell.bytes),
                        "--piece", str(cell.piece), "--strategy", strategy]
        for _ in range(TRIES):
            others = Others()
            records = self.start(calls[0][0].hosts, calls[0][0].ranks, program)
            share = others.share()
            if len(records) < len(calls) or share < NOISY:
                break
            runner.say(f"    other processes used {share:.0%} of the processors")
        return [statistics.median(record["seconds"]) for record in records]


# --- estimating ---------------------------------------------------------------------------------

def simulation(cell, strategy, machine):
    """What `shima simulate` tells of the call."""
    command = [str(places.TOOL), "simulate", "--ranks", str(cell.ranks),
               "--ranks-per-node", str(-(-cell.ranks // cell.hosts)),
               "--cores-per-node", str(os.cpu_count()), "--pattern", cell.pattern,
               "--bytes-per-rank", str(cell.bytes), "--piece", str(min(cell.piece, cell.bytes)),
               "--direction", cell.op, "--strategy", strategy, "--samples", "2", "--json", "-"]
    command += [word for name, value in machine.items() for word in ("--set", f"{name}={value}")]
    done = subprocess.run(command + (["--cached"] if cell.op == "read" else []),
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"model: {' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def simulated(cell, strategy, machine):
    return simulation(cell, strategy, machine)["scales"][0]


def estimate(cell, strategy, machine):
    return simulated(cell, strategy, machine)["estimate"]["seconds"]


def plan_of(scale):
    """Equal for strategies that do the same in a cell: two_phase is disk_directed if each rank has a core."""
    return json.dumps([scale["path"], scale["agents"], scale["sampled_agents"]])


# --- finding the machine's values ---------------------------------------------------------------

def logs_of_ratios(calls, machine):
    """log(estimated / measured) of each call."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        seconds = pool.map(lambda each: estimate(*each[0], machine), calls)
        return [math.log(made / measured) for made, (_, measured) in zip(seconds, calls)]


def solved(matrix, right):
    """The solution of a system of linear equations, by Gauss's elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for i in range(len(rows)):
        best = max(range(i, len(rows)), key=lambda row: abs(rows[row][i]))
        rows[i], rows[best] = rows[best], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for j in range(len(rows)):
            if j != i:
                rows[j] = [value - rows[j][i] * of for value, of in zip(rows[j], rows[i])]
    return [row[-1] for row in rows]


class Fit:
    """The values with which the model is closest to all calls: least squares of the logarithms, where calls
    that are far off count less (Huber), by Gauss and Newton. A little weight for the values at the start
    decides what no call tells."""

    STEP, FAR, KEEP, TURNS = 0.05, 0.25, 0.02, 12

    def __init__(self, calls, machine):
        self.calls, self.start = calls, dict(machine)
        self.names = [name for name in machine if name not in KNOWN]

    def find(self):
        machine = dict(self.start)
        ratios = logs_of_ratios(self.calls, machine)
        for _ in range(self.TURNS):
            change = self._newton(machine, ratios)
            for share in (1, 0.5, 0.25):
                made = machine | {name: machine[name] * math.exp(share * max(-1, min(1, by)))
                                  for name, by in zip(self.names, change)}
                after = logs_of_ratios(self.calls, made)
                if self._cost(made, after) < self._cost(machine, ratios):
                    break
            else:
                break
            machine, ratios = made, after
        return {name: float(f"{value:.4g}") for name, value in machine.items()}

    def _away(self, machine):
        return [math.log(machine[name] / self.start[name]) for name in self.names]

    def _cost(self, machine, ratios):
        far = self.FAR
        each = (r * r / 2 if abs(r) < far else far * (abs(r) - far / 2) for r in ratios)
        return sum(each) + self.KEEP / 2 * sum(by * by for by in self._away(machine))

    def _newton(self, machine, ratios):
        slopes = []
        for name in self.names:
            after = logs_of_ratios(self.calls, machine | {name: machine[name] * math.exp(self.STEP)})
            slopes.append([(b - a) / self.STEP for a, b in zip(ratios, after)])
        weights = [min(1, self.FAR / max(abs(r), 1e-9)) for r in ratios]
        matrix = [[sum(w * a * b for w, a, b in zip(weights, one, other)) + (self.KEEP if one is other else 0)
                   for other in slopes] for one in slopes]
        right = [-sum(w * a * r for w, a, r in zip(weights, one, ratios)) - self.KEEP * by
                 for one, by in zip(slopes, self._away(machine))]
        return solved(matrix, right)


def calls_of(cells):
    return [(cell, name) for cell in cells for name in cell.strategies()]


def find_costs(store, most_hosts, learnt, known):
    wanted = calibrating_calls(most_hosts) + calls_of(learnt)
    calls = [(call, store.seconds(*call)) for call in wanted if store.jobs(*call)]
    if not calls:
        sys.exit("model: no calibrating call has been measured yet")
    if len(calls) < len(wanted):
        print(f"values from {len(calls)} of {len(wanted)} calls: a further run measures the others")
    start = simulation(*calls[0][0], known)["machine"]
    return Fit(calls, start | START).find()


# --- comparing ----------------------------------------------------------------------------------

@dataclasses.dataclass
class Compared:
    cell: Cell
    measured: dict   # strategy -> seconds
    estimated: dict
    spread: dict     # strategy -> the seconds of the fastest and of the slowest job

    def errors(self):
        return [abs(self.estimated[name] / self.measured[name] - 1) for name in self.measured]

    def same_first(self):
        """Whether the strategy that is estimated first is measured within EVEN of the best."""
        first = min(self.measured, key=lambda name: self.estimated[name])
        return self.measured[first] <= EVEN * min(self.measured.values())

    def is_told_apart(self):
        """Whether the slowest job of the best strategy is faster than all jobs of those with another plan."""
        best = min(self.measured, key=lambda name: self.measured[name])
        others = [self.spread[name][0] for name in self.measured if self.spread[name] != self.spread[best]]
        return all(self.spread[best][1] < fastest for fastest in others)


def compare(store, cells, machine):
    """The cells, and the error of one job as the estimate of the others that executed the same plan."""
    results, repeated = [], []
    for cell in cells:
        jobs, plans, estimated = {}, {}, {}
        for name in cell.strategies():
            if store.jobs(cell, name):
                scale = simulated(cell, name, machine)
                plans[name], estimated[name] = plan_of(scale), scale["estimate"]["seconds"]
                jobs.setdefault(plans[name], []).extend(store.jobs(cell, name))
        if estimated:
            measured = {name: statistics.median(jobs[plan]) for name, plan in plans.items()}
            spread = {name: (min(jobs[plan]), max(jobs[plan])) for name, plan in plans.items()}
            results.append(Compared(cell, measured, estimated, spread))
        for times in jobs.values():
            for turn, seconds in enumerate(times if len(times) > 1 else []):
                repeated.append(abs(seconds / statistics.median(times[:turn] + times[turn + 1:]) - 1))
    return results, repeated


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
            one = Compared(each.cell, {name: each.measured[name]}, {name: each.estimated[name]}, each.spread)
            groups.setdefault(name, []).append(one)
    print(f"{'':<20} {'calls':>6} {'median error':>13} {'same first':>11}")
    for key, members in groups.items():
        error, first, calls = summary(members)
        print(f"{key:<20} {calls:>6} {error:>12.0%} {first:>10.0%}")


def in_words(results):
    error, first, _ = summary(results)
    return f"median error {error:.0%}, the same strategy first in {first:.0%}"


def repeated_in_words(errors):
    return (f"one job as the estimate of the others that executed the same plan: "
            f"median error {statistics.median(errors):.0%} of {len(errors)}")


def draw(results, repeated, machine, path):
    groups = []
    for each in sorted(results, key=lambda r: dataclasses.astuple(r.cell)):
        bars = []
        for name in each.measured:
            for series, seconds in ((0, each.measured[name]), (1, each.estimated[name])):
                bars.append(picture.Bar(series, seconds, f"{seconds * 1e3:.2f} ms {name}"))
        groups.append((each.cell, picture.Group("", bars)))
    charts = [picture.Chart(cell.name(), "", [group]) for cell, group in groups]
    lead = (f"{summary(results)[2]} calls in {len(results)} cells: {in_words(results)} "
            f"(to reach: {LIMIT_ERROR:.0%} and {LIMIT_FIRST:.0%}).")
    if repeated:
        lead += f" For comparison, {repeated_in_words(repeated)}."
    rows = [[each.cell.name(), name, f"{each.measured[name] * 1e3:.3f}", f"{each.estimated[name] * 1e3:.3f}",
             f"{each.estimated[name] / each.measured[name]:.2f}"]
            for each in results for name in each.measured]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(picture.page("The model against measured calls", lead,
                                 [(0, "measured"), (1, "estimated")], charts,
                                 ["cell", "strategy", "measured ms", "estimated ms", "ratio"], rows,
                                 ", ".join(f"{key} {value:g}" for key, value in machine.items())))
    print(f"picture: {path}")


def chosen_cells(most_hosts, seed, count):
    cells = list(grid(most_hosts))
    random.Random(seed).shuffle(cells)
    return cells[:count]


def report(store, cells, most_hosts, options):
    learnt = chosen_cells(most_hosts, options.learn, options.cells)[:options.cells // 2] if options.learn else []
    cells = [cell for cell in cells if cell not in learnt]
    known = store.results.get("machine")
    if known is None:
        sys.exit("model: nothing is stored")
    machine = find_costs(store, most_hosts, learnt, known)
    results, repeated = compare(store, cells, machine)
    if not results:
        sys.exit("model: no cell has been measured yet")
    print(", ".join(f"{key} {value:g}" for key, value in machine.items()))
    print_errors(results)
    if repeated:
        print(repeated_in_words(repeated))
    apart = [each for each in results if len(each.measured) > 1 and each.is_told_apart()]
    if apart:
        print(f"{len(apart)} of {len(results)} cells, in which no job of another strategy is as fast as one of the "
              f"best: {in_words(apart)}")
    draw(results, repeated, machine, ROOT / "build/report/model.html")
    error, first, _ = summary(results)
    return 1 if options.strict and (error > LIMIT_ERROR or first < LIMIT_FIRST) else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--cells", type=int, default=40, help="how many cells of the grid, chosen at random (40)")
    add("--seed", type=int, default=1, help="which cells")
    add("--learn", type=int, metavar="SEED", help="find values from half of this seed's cells too, and judge none of them")
    add("--reps", type=int, default=5, help="calls in a job; their median counts (5)")
    add("--jobs", type=int, default=3, help="jobs a call; the median of theirs counts (3)")
    add("--mpi", choices=list(subjects.FAMILIES), default="mpich")
    add("--hosts", type=int, default=4, help="the most hosts (4)")
    add("--dir", help="where the file goes (default: build/bench-files)")
    add("--out", default=str(ROOT / "bench/out/model.jsonl"), help="the stored results")
    add("--limit", type=float, default=math.inf, help="start no job after so many seconds; a further run continues")
    add("--timeout", type=float, default=120, help="seconds a job may take")
    add("--report", action="store_true", help="measure nothing")
    add("--measure", action="store_true", help="report nothing")
    add("--fresh", action="store_true", help="forget stored results")
    add("--strict", action="store_true", help="exit 1 if the model misses its limits")
    return parser.parse_args()


def batches(calls):
    """Calls with the same ranks share a job, which takes longer to start than most calls take. They are few, so
    that an interruption loses little."""
    batch, ranks, bytes = [], None, 0
    for call in sorted(calls, key=lambda call: (call[0].hosts, call[0].ranks)):
        cell = call[0]
        if batch and (ranks != (cell.hosts, cell.ranks) or len(batch) == MOST_IN_A_JOB
                      or bytes + cell.ranks * cell.bytes > MOST_BYTES_IN_A_JOB):
            yield batch
            batch, bytes = [], 0
        batch, ranks, bytes = [*batch, call], (cell.hosts, cell.ranks), bytes + cell.ranks * cell.bytes
    if batch:
        yield batch


def measure_calls(bench, store, jobs, repetitions):
    """`jobs`: how many each call needs. All calls once, then again, each time in another order: the machine's slow changes
    show as differences between jobs, and change no kind of call more than others."""
    for job in range(max(jobs.values())):
        chance = random.Random(job)
        calls = chance.sample(list(jobs), len(jobs))
        missing = list(batches([call for call in calls if len(store.jobs(*call)) <= job < jobs[call]]))
        chance.shuffle(missing)
        for number, batch in enumerate(missing):
            if bench.is_over():
                return
            cell = batch[0][0]
            runner.say(f"  job {job + 1}, {number + 1}/{len(missing)}  {cell.hosts} hosts {cell.ranks} ranks: "
                       f"{len(batch)} calls")
            for call, seconds in zip(batch, bench.times(batch, repetitions)):
                store.put(store.key(*call), [*store.jobs(*call), seconds])


def measure_all(bench, store, cells, most_hosts, options):
    if "machine" not in store.results:
        store.put("machine", {"processor_cache_mb": processor_cache_mb(), "shared_cores": os.cpu_count()})
    jobs = dict.fromkeys(calibrating_calls(most_hosts), max(3, options.jobs))
    jobs |= dict.fromkeys(calls_of(cells), options.jobs)
    measure_calls(bench, store, jobs, options.reps)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the job
    options = parse()
    if options.fresh:
        pathlib.Path(options.out).unlink(missing_ok=True)
    store = Store(pathlib.Path(options.out))
    flavour = subjects.find_flavour(options.mpi)
    if not flavour or not places.shima_is_built():
        sys.exit("model: needs Shima (make build) and an MPI (scripts/setup)")
    reason = two_hosts.why_unavailable()
    if reason and options.hosts > 1:
        print(f"model: only one host: {reason}", file=sys.stderr)
    most_hosts = 1 if reason else options.hosts
    cells = chosen_cells(most_hosts, options.seed, options.cells)
    if options.report:
        return report(store, cells, most_hosts, options)
    directory = runner.working_directory(options.dir, ROOT / "build/bench-files", 1)
    bench = Bench(flavour, directory, options)
    try:
        programs.binary("model_cells", flavour)
        measure_all(bench, store, cells, most_hosts, options)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if options.measure:
        return 0
    if bench.is_over():
        print("model: the limit of time is over; a further run continues, --report shows what there is")
        return 0
    return report(store, cells, most_hosts, options)


if __name__ == "__main__":
    sys.exit(main())
