#!/usr/bin/env python3
"""The main job: two ordinary MPI programs, with their MPI's own MPI-IO and under Shima.

examples/columns.c (an array distributed by columns, three ways) and examples/steps.cpp (a new file
every step, against the naive way) are compiled unmodified with the stock compilers. Each runs with
every MPI found here, alone and under Shima, at 8 ranks. The files must be identical for all writers:
their SHA-256 sums are compared. It ends with a table of ratios and a picture.

One pass, in a few minutes; `make bench` is the thorough measurement.
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import shutil
import signal
import sys

from lib import picture, places, programs, runner, subjects
from lib.fresh_directory import fresh_directory
from lib.places import ROOT
from lib.table import format_table, number

WAYS, OPS = ("UT", "FV", "COL"), ("write", "read")
RANKS = 8
DOUBLES = 100000  # per rank of steps
FREE_GIB = 4  # three files of the array at a time, and the other output meanwhile


class Differ(Exception):
    """Files that should be identical are not, or a program failed."""


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--size-mib", type=int, default=1024, help="size of the array")
    add("--steps", type=int, default=100, help="time steps")
    add("--ranks", type=int, default=RANKS)
    add("--dir", help="where the files go (default: build/run-files)")
    add("--picture", default=str(ROOT / "build/report/main.html"))
    add("--timeout", type=float, default=300, help="seconds a program may take")
    return parser.parse_args()


# --- running ----------------------------------------------------------------------------------

def start(subject, options, directory, program, arguments, warm_mib=runner.WARM_MIB):
    outcome = runner.measure(programs.binary("warm_memory"), directory,
                             subject.command(options.ranks, program, arguments),
                             subject.flavour.environment(), options.timeout, warm_mib)
    if outcome.problem:
        raise Differ(f"{subject.label()}: {program} failed: {outcome.problem}")
    return outcome.records[0]


def run_columns(subject, options, directory, figures):
    """Writes and reads the array each way; returns the files, one per way."""
    files = []
    for way in WAYS:
        path = directory / f"columns-{subject.name.replace('/', '-')}-{way}.dat"
        files.append(path)
        for op in OPS:
            record = start(subject, options, directory, "columns", [
                "--way", way, "--op", op, "--size-mib", options.size_mib, "--file", path, "--json"])
            rate = figures[way, op][subject.name] = record["open_close_mib_s"]
            runner.say(f"  {subject.label():22} {way:3} {op:5} {rate:9,.0f} MiB/s")
    return files


def run_steps(subject, options, directory, figures):
    """Runs each half as its own job, so that the first does not slow down the second.

    Returns the sums of each half's files.
    """
    sums = []
    for half in ("mpi", "naive"):
        with fresh_directory(directory) as made:
            record = start(subject, options, made, "steps", [
                "--steps", options.steps, "--count", DOUBLES, "--dir", made, "--half", half, "--sync-first", "--json"],
                warm_mib=0)  # as in experiments/steps.py
            figures["steps", half][subject.name] = record[f"{half}_s"]
            sums.append(hash_and_remove(sorted(made.glob("step*")), f"steps, {half}"))
    figures["steps", "drawing"][subject.name] = record["drawing_s"]
    runner.say(f"  {subject.label():22} steps: MPI-IO {figures['steps', 'mpi'][subject.name]:.2f} s, "
               f"naive {figures['steps', 'naive'][subject.name]:.2f} s")
    return sums


def run_limit(options, directory):
    """Measures the machine's limit."""
    path = directory / "limit.dat"
    outcome = runner.measure(programs.binary("warm_memory"), directory,
                             [str(programs.binary("limit")), "--json", "--file", str(path),
                              "--size-mib", str(max(options.size_mib, 64))])
    path.unlink(missing_ok=True)
    return {record["op"]: record["open_close_mib_s"] for record in outcome.records}


def steps_limit(options, figures, limit):
    """Seconds to draw the numbers, and then to write them at the machine's limit."""
    written_mib = options.steps * options.ranks * DOUBLES * 8 / 2**20
    return min(figures["steps", "drawing"].values()) + written_mib / limit["write"]


# --- comparing files --------------------------------------------------------------------------

def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while block := file.read(4 << 20):
            digest.update(block)
    return digest.hexdigest()


def hash_and_remove(paths, what):
    """The sums of files, in parallel (hashing releases Python's lock); removes the files."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        sums = []
        for done, digest in enumerate(pool.map(sha256, paths), 1):
            sums.append(digest)
            if done % 25 == 0 or done == len(paths):
                runner.say(f"  {what}: {done} of {len(paths)} files hashed")
    for path in paths:
        path.unlink()
    return sums


def expect_same(sums, what):
    if len(set(sums)) != 1:
        raise Differ(f"{what}: files differ: " + ", ".join(digest[:12] for digest in sums))


def measure(options, chosen, directory):
    """All figures, {(what, which): {subject: value}}, after checking that all files agree."""
    figures = {(way, op): {} for way in WAYS for op in OPS}
    figures |= {("steps", half): {} for half in ("mpi", "naive", "drawing")}
    columns_sums, steps_sums = [], []
    for number_, subject in enumerate(chosen, 1):
        runner.say(f"[{number_}/{len(chosen)}] {subject.label()}")
        files = run_columns(subject, options, directory, figures)
        columns_sums += hash_and_remove(files, "columns")
        expect_same(columns_sums, f"columns, up to {subject.label()}")
        steps_sums += run_steps(subject, options, directory, figures)
        if any(other != steps_sums[0] for other in steps_sums):
            raise Differ(f"steps: {subject.label()} wrote other files than {chosen[0].label()}")
    return figures, columns_sums[0]


# --- the table and the picture ----------------------------------------------------------------

def cell_names():
    names = {(way, op): f"{way} {op}" for op in OPS for way in WAYS}
    return names | {("steps", "mpi"): "steps, MPI-IO", ("steps", "naive"): "steps, naive"}


def gain(key, figures, subject):
    """How many times faster than its own stock MPI a Shima subject is; None for the others."""
    stock = figures[key].get(subject.flavour.family)
    value = figures[key].get(subject.name)
    if not subject.shima or not stock or not value:
        return None
    return stock / value if key[0] == "steps" else value / stock


def make_table(figures, chosen, limit):
    header = ["", "unit", "limit", *(s.label() for s in chosen)]
    header += [f"gain, {s.flavour.label()}" for s in chosen if s.shima]
    rows = []
    for key, name in cell_names().items():
        steps = key[0] == "steps"
        row = [name, "s" if steps else "MiB/s", number(limit.get(key if steps else key[1]))]
        row += [number(figures[key].get(s.name)) for s in chosen]
        row += [f"{gain(key, figures, s):.1f}x" for s in chosen if gain(key, figures, s)]
        rows.append(row)
    return header, rows, naive_ratios(figures, chosen)


def naive_ratios(figures, chosen):
    mpi, naive = figures["steps", "mpi"], figures["steps", "naive"]
    return ["steps, MPI-IO / naive", "ratio", "-",
            *(f"{mpi[s.name] / naive[s.name]:.2f}" for s in chosen),
            *("" for s in chosen if s.shima)]


def make_bar(key, figures, subject, series):
    """The naive halves get no ratio: Shima has no part in them."""
    value, unit = figures[key].get(subject.name), "s" if key[0] == "steps" else "MiB/s"
    times = None if key == ("steps", "naive") else gain(key, figures, subject)
    notes = [f"{times:.1f}\u00d7 stock"] if times else []
    if key == ("steps", "mpi"):
        notes.append(f"{value / figures['steps', 'naive'][subject.name]:.2f} of taking turns")
    better = None if times is None else times >= 0.95
    return picture.Bar(series[subject.name], value, f"{number(value)} {unit}",
                       " \u00b7 ".join(notes), better)


def make_charts(figures, chosen, limit, options, series):
    names, size = cell_names(), f"{options.size_mib} MiB"
    charts = []
    for op, verb in (("write", "Writing"), ("read", "Reading")):
        groups = [picture.Group(names[way, op], [make_bar((way, op), figures, s, series)
                                                 for s in chosen], limit.get(op)) for way in WAYS]
        charts.append(picture.Chart(
            f"{verb} an array dealt by columns", f"{size}, 16 KiB pieces, {options.ranks} ranks; "
            "MiB/s from open to close, longer is better.", groups,
            limit_label=f"Dashed: two threads, large blocks ({number(limit.get(op))} MiB/s)."))
    groups = [picture.Group(label, [make_bar(("steps", half), figures, s, series) for s in chosen])
              for half, label in (("mpi", "MPI-IO"), ("naive", "taking turns"))]
    charts.append(picture.Chart(
        "A new file every step", f"{options.steps} steps, 100 000 doubles a rank, {options.ranks} "
        "ranks; seconds, shorter is better.", groups, own_scale=True))
    return charts


def write_picture(options, figures, chosen, limit, facts, table):
    header, rows, ratios = table
    known = {"mpich": 0, "shima/mpich": 1, "openmpi": 2, "shima/openmpi": 3}
    ways = ("UT: seek and write, row by row. FV: a file view, one independent call. "
            "COL: a file view, one collective call. ")
    mpis = ", ".join(f"{name} {version}" for name, version in facts["mpi"].items())
    footer = (f"{ways}{mpis}; {facts['cores']} cores, {facts['processor']}, Linux "
              f"{facts['kernel']}, {facts['file_system']}, page cache; one pass, {facts['date']}.")
    path = pathlib.Path(options.picture)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(picture.page(
        "Shima: the same programs, the same bytes", "Two unmodified MPI programs, with their MPI's "
        "own MPI-IO and under Shima. All files were compared and are identical.",
        [(known[s.name], s.label()) for s in chosen],
        make_charts(figures, chosen, limit, options, known), header, [*rows, ratios], footer))
    return path


# --- the job ----------------------------------------------------------------------------------

def prepare():
    flavours = subjects.find_flavours()
    if not flavours:
        sys.exit("no MPI found; scripts/setup installs MPICH and Open MPI")
    for program in ("limit", "warm_memory"):
        programs.binary(program)
    for flavour in flavours:
        runner.say(f"{flavour.label()} {flavour.version}: compiling with {flavour.mpicc}")
        for program in ("columns", "steps"):
            programs.binary(program, flavour)
    if not places.shima_is_built():
        runner.say(f"{places.TOOL} is not built: only the stock side runs")
    by_flavour = sorted(subjects.find_subjects(flavours), key=lambda s: (s.flavour.family, s.shima))
    return flavours, by_flavour


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    flavours, chosen = prepare()
    directory = runner.working_directory(options.dir, ROOT / "build/run-files", FREE_GIB)
    try:
        facts = runner.machine_facts(directory, flavours)
        limit = run_limit(options, directory)
        figures, digest = measure(options, chosen, directory)
        limit["steps", "mpi"] = steps_limit(options, figures, limit)
    except Differ as difference:
        print(f"FAILED: {difference}")
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    table = make_table(figures, chosen, limit)
    path = write_picture(options, figures, chosen, limit, facts, table)
    print(f"\nAll files are identical (columns: sha256 {digest[:16]}...).\n")
    print(format_table(table[0], [*table[1], table[2]]))
    print(f"\npicture: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
