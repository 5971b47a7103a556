#!/usr/bin/env python3
"""Runs the experiments of the documents that Shima implements, as their authors ran them.

Each experiment runs with the stock MPIs found here and with Shima under each, in turn, and prints medians beside what
the document states; --html draws the document's figures. The programs are compiled with the MPI's own mpicc at the
first use. Started by `shima bench`; the manual is shima-bench(1).
"""

import sys

if sys.version_info < (3, 10):
    sys.exit(f"shima: bench: python3 is {sys.version.split()[0]}; version 3.10 or newer is needed")

import argparse
import json
import os
import pathlib
import shutil
import signal
import time

from documents import DOCUMENTS
from documents.document import Measured
from documents.page import statements_of, write_page
from lib import places, runner, subjects
from lib.section import Context
from lib.session import Mismatch, Session, State

REFUSED, FAILED, INTERRUPTED, PIPE_CLOSED = 2, 1, 130, 141
FULL_MIB = 1024  # the array of S1, to which --size is relative
FREE_GIB = 6
UNITS = {"": 1, "M": 1, "G": 1024}
WORDS = {document.name: document for document in DOCUMENTS}


class Refused(Exception):
    """A wrong command line; the message says what to write."""


# --- the command line -------------------------------------------------------------------------

def size_mib(text):
    number, unit = text.rstrip("MmGg"), text.lstrip("0123456789").upper()
    if not number.isdigit() or unit not in UNITS or int(number) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no size; write 256M or 1G")
    return int(number) * UNITS[unit]


def counts(text):
    parts = text.split(",")
    if not all(part.isdigit() and 1 <= int(part) <= 1 << 24 for part in parts):
        raise argparse.ArgumentTypeError(f"{text} is no list of numbers; write 2,4,8")
    return sorted({int(part) for part in parts})


def count(text):
    if not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is no number from 1 to 1000")
    return int(text)


def families(text):
    chosen = text.split(",")
    for name in chosen:
        if name not in subjects.FAMILIES:
            raise argparse.ArgumentTypeError(f"{name} is no MPI that can be measured; write {','.join(subjects.FAMILIES)}")
    return list(dict.fromkeys(chosen))


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused(f"{message}; see `shima bench --help`")


def parse(arguments):
    parser = Parser(
        prog="shima bench", description="Run the experiments of the documents that Shima implements, as their authors ran them.",
        epilog="The manual: shima-bench(1).", allow_abbrev=False)
    add = parser.add_argument
    add("experiment", nargs="+", choices=["list", *WORDS, "all"], metavar="EXPERIMENT",
        help=f"list, {', '.join(WORDS)} or all; several may be given")
    add("--mpi", type=families, metavar="FAMILY,...", help="The MPIs to measure (mpich,openmpi), the first found of each")
    add("--mpiexec", action="append", metavar="PATH", help="Measure the MPI of this launcher; may be repeated")
    add("--np", type=counts, metavar="N,...", help="Numbers of ranks, instead of the document's")
    add("--size", type=size_mib, default=FULL_MIB, metavar="SIZE",
        help="MiB of the array by columns (1024); the data of the other experiments change in proportion")
    add("--reps", type=count, default=3, metavar="N", help="Repetitions (3)")
    add("--disks", type=count, metavar="N", help="columns: over N throttled disks; needs root")
    add("--io-nodes", action="store_true", help="columns: over as many I/O nodes as --disks (8), with a disk each")
    add("--json", action="store_true", help="Print the results as JSON instead of tables")
    add("--html", metavar="FILE", help="Write a page with the documents' figures")
    add("--dir", metavar="DIR", help="Where the experiments' files go (default: here)")
    add("--cache", metavar="DIR", help="Where compiled programs go (default: ~/.cache/shima/bench)")
    add("--state", default="shima-bench.jsonl", metavar="FILE", help="Results for --resume (shima-bench.jsonl)")
    add("--resume", action="store_true", help="Continue the interrupted run of --state, with the same options")
    add("--timeout", type=count, default=900, metavar="S", help="Seconds that a job may take (900)")
    add("--slow", type=count, default=90, metavar="S", help="A job that took so many seconds is not repeated (90)")
    return parser.parse_args(arguments)


def chosen_documents(options):
    names = set(options.experiment)
    if "list" in names and len(names) > 1:
        raise Refused("list: it stands alone; write `shima bench list`")
    chosen = [document for name, document in WORDS.items() if name in names or "all" in names]
    if (options.disks or options.io_nodes) and chosen and WORDS["columns"] not in chosen:
        raise Refused("--disks, --io-nodes: only the experiment columns has disks; write `shima bench columns --disks 4`")
    return chosen


def found_mpis(options):
    if options.mpiexec and options.mpi:
        raise Refused("--mpi, --mpiexec: these exclude each other; give one of them")
    if options.mpiexec:
        found = []
        for path in options.mpiexec:
            flavour = subjects.flavour_of(os.path.abspath(path))
            if flavour is None:
                raise Refused(f"--mpiexec {path}: no launcher of MPICH or Open MPI with its mpicc beside it; give the "
                              "path of its mpiexec")
            if flavour.family in [other.family for other in found]:
                raise Refused(f"--mpiexec {path}: the second {flavour.label()}; measure them one after the other")
            found.append(flavour)
        return found
    found = subjects.find_flavours(options.mpi or list(subjects.FAMILIES))
    if not found:
        raise Refused("no MPI with its mpicc was found in PATH; name one with --mpiexec PATH")
    return found


# --- the run ----------------------------------------------------------------------------------

def cache_directory(options):
    if options.cache:
        return pathlib.Path(options.cache).absolute()
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "shima/bench"


def working_directory(options):
    factor = options.size / FULL_MIB
    disks_gib = 0 if not (options.disks or options.io_nodes) else (options.disks or 8) * 1.1
    try:
        return runner.working_directory(options.dir, ".", min(FREE_GIB, FREE_GIB * factor + 0.1) + disks_gib)
    except SystemExit as reason:
        raise Refused(reason.code) from None


def context_of(options, flavours, directory):
    factor = options.size / FULL_MIB
    return Context(subjects.find_subjects(flavours), directory, factor, options.np, options.timeout,
                   disk_counts=(options.disks,) if options.disks else (1, 2, 4), node_count=options.disks or 8,
                   warm_mib=max(32, int(runner.WARM_MIB * min(1, factor))))


def identity_of(options, flavours):
    """What must be the same for a run that is continued."""
    return {"experiments": sorted(options.experiment), "mpi": [flavour.identity() for flavour in flavours], "np": options.np,
            "size": options.size, "repetitions": options.reps, "disks": options.disks, "io_nodes": options.io_nodes,
            "seed": time.time_ns() % 1000000}


def measure(chosen, options, session):
    """Results by section, and why sections were left out."""
    results, skipped = {}, {}
    for document in chosen:
        for section in document.sections(options):
            if reason := section.skip_reason():
                skipped[section.name] = f"{section.title}: left out, {reason}"
    sections = [(document, section) for document in chosen for section in document.sections(options)
                if section.name not in skipped]
    session.announce([section for _, section in sections])
    for document, section in sections:
        runner.say(f"{document.name}: {section.title}")
        results[section.name] = session.measure(section)
        if not options.json:
            show(results[section.name], session)
    return results, list(skipped.values())


def show(results, session):
    print(f"\n{results.title}\n\n{results.table(session.repetitions, judged=False)}")
    for note in results.notes():
        print(f"  note: {note}")
    for warning in results.warnings():
        print(f"  NOISY: {warning}")
    for failure in results.all_problems():
        print(f"  {failure}")
    sys.stdout.flush()


def report(chosen, options, context, facts, session, outcome):
    results, skipped = outcome
    measured = Measured(results, context)
    if options.json:
        print(json.dumps({
            "version": 1, "machine": facts, "repetitions": options.reps, "size_mib": options.size,
            "order_seed": session.state.run["seed"], "skipped": skipped,
            "experiments": {document.name: document.as_json(measured) for document in chosen}}, indent=1))
    else:
        for document in chosen:
            if text := statements_of(document, measured):
                print(f"\n{document.title}: what the document states, and what was measured\n\n{text}")
        for line in skipped:
            print(f"\n{line}")
    if options.html:
        remarks = list(skipped)
        if options.size != FULL_MIB:
            remarks.insert(0, f"The data are {options.size / FULL_MIB:.3g} of the documents' (--size).")
        write_page(options.html, chosen, results, context, facts, remarks)
        runner.say(f"page: {options.html}")
    return FAILED if any(each.all_problems() for each in results.values()) else 0


def print_list(options):
    print("Experiment   Figures              What", flush=True)
    for name, document in WORDS.items():
        print(f"{name:<12} {document.form:<20} {document.title}")
        for section in document.all_sections():
            if reason := section.skip_reason():
                print(f"{'':<33} {section.name}: cannot run here: {reason}")
    return 0


def run(options):
    chosen = chosen_documents(options)
    if not chosen:
        return print_list(options)
    if not places.shima_is_built():
        raise Refused(f"{places.TOOL}: there is no such command; start this by `shima bench`")
    places.programs = cache_directory(options)
    flavours = found_mpis(options)
    directory = working_directory(options)
    try:
        context = context_of(options, flavours, directory)
        try:
            state = State(options.state, identity_of(options, flavours), options.resume)
        except Mismatch as reason:
            raise Refused(f"--resume: {reason}") from None
        session = Session(context, state, options.reps, options.slow)
        outcome = measure(chosen, options, session)
        return report(chosen, options, context, runner.machine_facts(directory, flavours), session, outcome)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main(arguments):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = None
    try:
        options = parse(arguments)
        return run(options)
    except Refused as reason:
        print(f"shima: bench: {reason}", file=sys.stderr)
        return REFUSED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for Python's own flush at the end
        return PIPE_CLOSED
    except KeyboardInterrupt:
        print(f"shima: bench: interrupted; `--resume` with the same options continues from {options.state}", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
