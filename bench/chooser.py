#!/usr/bin/env python3
"""Measures how often Shima's choice of a collective strategy is not the best one.

A cell is a number of ranks, a place (processes of one host, tasks of one address space, two hosts),
a size of call, a size of pieces, an operation and a layout. Cells are drawn so that each value of
each of these occurs equally often. In a cell all fixed strategies (the hint shima_collective) and
`auto` run in turn, in one job (bench/mpi/chooser_cells.c). The fixed strategy that is best in half
of the repeats is compared with `auto` in the other half. A cell is a miss if the whole 95 %
interval of that ratio of times is above 1.10.

    bench/chooser.py --cells 200 --seed 1            about three quarters of an hour (--seconds 3: a quarter)
    bench/chooser.py --cells 200 --seed 1 --resume   continues where a run was ended
    bench/chooser.py --report                        the table of the cells measured so far

Each cell is a line of JSON in --out. Needs root for the cells of two hosts; without, they are left out.
"""

import argparse
import dataclasses
import json
import pathlib
import random
import shutil
import signal
import statistics
import sys
import time

import two_hosts
from lib import places, programs, runner, subjects
from lib.interval import interval
from lib.places import ROOT
from lib.table import format_table

RANKS = (2, 4, 8, 16)
PLACES = ("processes", "one_space", "two_hosts")
CALL_BYTES = tuple(4096 * 4**i for i in range(9))  # 4 KiB to 256 MiB
PIECE_BYTES = (64, 512, 4096, 32768, 262144, 4194304)
OPS = ("write", "cached", "cold")
SUBFILES = (1, 4)
FIXED = ("disk_directed", "two_phase", "independent")
FIXED_OF_HOSTS = (*FIXED, "subgroup")  # the same as disk_directed on one host
LEAST_REPEATS, MOST_REPEATS = 6, 30
CELLS_A_JOB = 6
MISS, FAR_MISS = 1.10, 1.30


@dataclasses.dataclass(frozen=True)
class Cell:
    np: int
    place: str
    call_bytes: int
    piece_bytes: int
    op: str
    subfiles: int

    def id(self):
        return f"{self.place}-np{self.np}-{self.call_bytes}-{self.piece_bytes}-{self.op}-{self.subfiles}"

    def argument(self):
        return f"{self.id()}:{self.call_bytes}:{self.piece_bytes}:{self.op}:{self.subfiles}"

    def strategies(self):
        return FIXED_OF_HOSTS if self.place == "two_hosts" else FIXED


# --- drawing cells ----------------------------------------------------------------------------

def deal(values, count, dice):
    """`count` values in random order, each about equally often."""
    cards = [values[i % len(values)] for i in range(count)]
    dice.shuffle(cards)
    return cards


def draw_cells(count, seed, places):
    dice, cells = random.Random(seed), {}
    while len(cells) < count:
        columns = [deal(values, count, dice) for values in (RANKS, places, CALL_BYTES, PIECE_BYTES, OPS, SUBFILES)]
        for np, place, call_bytes, piece_bytes, op, subfiles in zip(*columns):
            # Every rank has at least one piece.
            cell = Cell(np, place, call_bytes, min(piece_bytes, call_bytes // np), op, subfiles)
            if len(cells) < count:
                cells[cell.id()] = cell
    return list(cells.values())


def jobs_of(cells):
    """Cells that can run in one MPI job: of the same ranks and place."""
    groups = {}
    for cell in cells:
        groups.setdefault((cell.place, cell.np), []).append(cell)
    for group in groups.values():
        for i in range(0, len(group), CELLS_A_JOB):
            yield group[i:i + CELLS_A_JOB]


# --- measuring --------------------------------------------------------------------------------

def start(subject, options, cells, directory):
    first = cells[0]
    program = programs.binary("chooser_cells", subject.flavour)
    arguments = [directory, options.seconds, LEAST_REPEATS, MOST_REPEATS, options.seed,
                 ",".join(("auto", *first.strategies())), *(cell.argument() for cell in cells)]
    environment = subject.flavour.environment()
    warmer = programs.binary("warm_memory")
    if first.place != "two_hosts":
        one_space = first.place == "one_space"
        if one_space:
            environment["SHIMA_ONE_SPACE"] = "required"
        command = subject.command(first.np, "chooser_cells", arguments, one_space)
        return runner.measure(warmer, directory, command, environment, options.timeout)
    with two_hosts.TwoHosts() as hosts:
        command = [str(places.TOOL), "exec", str(program), *map(str, arguments)]
        return runner.measure(warmer, directory, hosts.mpi_command(subject.flavour.mpiexec, first.np, command),
                              environment | two_hosts.ROOT_ENVIRONMENT, options.timeout)


def decided_by(stats, cell):
    """How often each row of the chooser's table decided, in the calls by `auto`."""
    calls = "collective_writes" if cell.op == "write" else "collective_reads"
    rows = {}
    for record in stats:
        of_cell = pathlib.Path(record["file"]).name.startswith(cell.id() + ".")
        if of_cell and record["hints"].get("shima_collective") == "auto" and record["counters"][calls]:
            for row, count in record.get("decided", {}).items():
                rows[row] = rows.get(row, 0) + count // cell.np
    return rows


def measure(subject, options, cells, directory):
    """The results of a job's cells; a cell without result has the reason instead."""
    outcome = start(subject, options, cells, directory)
    times = {record["cell"]: record["seconds"] for record in outcome.records}
    for cell in cells:
        result = {"cell": dataclasses.asdict(cell), "mpi": subject.flavour.family}
        if cell.id() in times:
            result |= {"seconds": times[cell.id()], "decided": decided_by(outcome.stats, cell)}
        else:
            result["problem"] = outcome.problem or "no result"
        yield result


# --- judging ----------------------------------------------------------------------------------

@dataclasses.dataclass
class Verdict:
    cell: Cell
    best: str
    ratio: float
    low: float
    high: float
    decided: dict

    def missed(self):
        return self.low > MISS


def judge(result):
    """Finds the best fixed strategy in the even repeats, compares it with auto in the odd ones."""
    seconds = result["seconds"]
    auto = seconds["auto"]
    fixed = {name: values for name, values in seconds.items() if name != "auto"}
    complete = {name: values for name, values in fixed.items() if len(values) == len(auto)}
    if not complete:  # auto is more than twice as fast as all of them
        complete = {name: [min(values)] * len(auto) for name, values in fixed.items()}
    best = min(complete, key=lambda name: statistics.median(complete[name][::2]))
    ratios = [mine / its for mine, its in zip(auto[1::2], complete[best][1::2])]
    return Verdict(Cell(**result["cell"]), best, *interval(ratios), result["decided"])


def binary_bytes(count):
    for unit in ("B", "KiB", "MiB"):
        if count < 1024 or unit == "MiB":
            return f"{count:g} {unit}"
        count /= 1024


def row_of(verdict):
    cell = verdict.cell
    rows = ", ".join(sorted(verdict.decided, key=verdict.decided.get, reverse=True)) or "-"
    return [f"{cell.place}, {cell.np} ranks", binary_bytes(cell.call_bytes), binary_bytes(cell.piece_bytes),
            cell.op, "striped" if cell.subfiles > 1 else "plain", rows, verdict.best,
            f"{verdict.ratio:.2f}", f"{verdict.low:.2f}-{verdict.high:.2f}", "MISS" if verdict.missed() else ""]


def report(results):
    failed = [result for result in results if "problem" in result]
    verdicts = sorted((judge(result) for result in results if "problem" not in result), key=lambda v: -v.low)
    if verdicts:
        header = ["", "call", "pieces", "op", "layout", "decided", "best fixed", "auto/best", "95 %", ""]
        print(format_table(header, [row_of(verdict) for verdict in verdicts]))
    for result in failed:
        print(f"failed: {Cell(**result['cell']).id()}: {result['problem']}")
    if not verdicts:
        return 1
    missed = sum(verdict.missed() for verdict in verdicts)
    print(f"\n{missed} of {len(verdicts)} cells missed ({100 * missed / len(verdicts):.1f} %): the whole interval is "
          f"above {MISS:.2f}; at most 5 % may be\nworst interval: {verdicts[0].low:.2f} to {verdicts[0].high:.2f}; "
          f"none may be above {FAR_MISS:.2f} as a whole")
    return 1 if failed or missed > 0.05 * len(verdicts) or verdicts[0].low > FAR_MISS else 0


# --- the command ------------------------------------------------------------------------------

def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--cells", type=int, default=200)
    add("--seed", type=int, default=1, help="of the choice of cells and the order of strategies")
    add("--seconds", type=float, default=8, help="for the repeats of a cell, beyond the first %d" % LEAST_REPEATS)
    add("--mpi", choices=list(subjects.FAMILIES), default="mpich")
    add("--place", action="append", choices=PLACES, help="only this place (may be given again)")
    add("--dir", help="where the files go (default: build/bench-files)")
    add("--out", default=str(ROOT / "bench/out/chooser.jsonl"), help="a line of JSON for each cell")
    add("--resume", action="store_true", help="keep the cells that --out has, and measure the others")
    add("--report", action="store_true", help="measure nothing: the table of the cells that --out has")
    add("--timeout", type=float, default=900, help="seconds a job of %d cells may take" % CELLS_A_JOB)
    return parser.parse_args()


def results_in(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def places_here(options):
    reason = two_hosts.why_unavailable()
    if reason:
        runner.say(f"two_hosts is left out: {reason}")
    return [place for place in options.place or PLACES if place != "two_hosts" or not reason]


def prepare(family):
    flavour = subjects.find_flavour(family)
    if not flavour:
        sys.exit(f"no {family} found; scripts/setup installs it")
    if not places.shima_is_built():
        sys.exit(f"{places.TOOL} is not built; make build builds it")
    programs.binary("warm_memory")
    programs.binary("chooser_cells", flavour)
    return subjects.Subject("shima/" + family, flavour, True)


def measure_all(options, subject, out):
    """Measures what --out does not have yet, and appends each job's cells to it."""
    done = {Cell(**result["cell"]) for result in results_in(out) if "problem" not in result}
    cells = draw_cells(options.cells, options.seed, places_here(options))
    left = [cell for cell in cells if cell not in done]
    directory = runner.working_directory(options.dir, ROOT / "build/bench-files", 4)
    started, measured = time.monotonic(), 0
    try:
        for job in jobs_of(left):
            for result in measure(subject, options, job, directory):
                with open(out, "a") as lines:
                    lines.write(json.dumps(result) + "\n")
            measured += len(job)
            minutes = (time.monotonic() - started) / 60
            runner.say(f"  {len(cells) - len(left) + measured} of {len(cells)} cells, {job[0].place}, {job[0].np} "
                       f"ranks; {minutes:.0f} min, {minutes / measured * (len(left) - measured):.0f} min to go")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    out = pathlib.Path(options.out)
    if not options.report:
        out.parent.mkdir(parents=True, exist_ok=True)
        if not options.resume:
            out.unlink(missing_ok=True)
        measure_all(options, prepare(options.mpi), out)
    latest = {Cell(**result["cell"]): result for result in results_in(out)}  # a cell that failed may follow again
    return report(list(latest.values()))


if __name__ == "__main__":
    sys.exit(main())
