#!/usr/bin/env python3
"""Measures Shima against the stock MPIs and against what the machine can do at all.

How figures are taken. Everything runs on one machine in one run, and jobs alternate (lib/session.py).
Before each, dirty pages are written out and free memory is touched. Tables show the median (and the
best); verdicts use medians. A job that takes longer than --slow seconds is not repeated, and its
figure says n=1. The experiments of the five documents are those of `shima bench`.

    make bench          everything; half an hour and more
    bench/bench.py --quick --only columns --np 8
"""

import argparse
import json
import pathlib
import shutil
import signal
import sys
import time

import documents
from lib import places, programs, runner, subjects
from documents.page import write_page
from lib.places import ROOT
from lib.section import Context
from lib.session import Mismatch, Session, State
from sections import SECTIONS

QUICK = 1 / 8


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = [section.name for section in SECTIONS]
    add = parser.add_argument
    add("--only", action="append", choices=names, help="this section (may be given again)")
    add("--quick", action="store_true", help="an eighth of the data, one repetition")
    add("--full", action="store_true", help="every cell of the section subgroup: hours")
    add("--reps", type=int, help="repetitions (default 3)")
    add("--np", type=lambda text: [int(part) for part in text.split(",")], dest="np_list",
        help="numbers of ranks, as 2,8, instead of the section's own")
    add("--dir", help="where the files go (default: build/bench-files)")
    add("--out", default=str(ROOT / "bench/out/results.json"), help="the JSON file")
    add("--timeout", type=float, default=900, help="seconds a job may take")
    add("--slow", type=float, default=90, help="a job that took so many seconds is not repeated")
    add("--seed", type=int, default=time.time_ns() % 1000000, help="of the order of the jobs")
    add("--random-seed", type=int, default=1, help="first seed of the random patterns")
    add("--stock-only", action="store_true", help="leave Shima out")
    add("--strict", action="store_true", help="exit 1 if a target is missed or a row fails")
    add("--resume", action="store_true", help="continue an interrupted run with the same options")
    return parser.parse_args()


def compile_everything(flavours):
    for program in filter(programs.can_be_compiled, programs.PLAIN):
        programs.binary(program)
    for flavour in flavours:
        for program in programs.SOURCES.keys() - programs.PLAIN.keys():
            programs.binary(program, flavour)


def show(section, results, options):
    print(f"\n{section.title}\n{section.lead}\n")
    print(results.table(options.reps))
    for note in results.even_rows() + results.notes() + results.warnings():
        print(f"  note: {note}")
    for failure in results.failures():
        print(f"  {failure}")
    sys.stdout.flush()


def draw(all_results, context, facts):
    chosen = [document for document in documents.DOCUMENTS
              if any(section.name in all_results for section in document.all_sections())]
    if chosen:
        path = ROOT / "build/report/bench.html"
        write_page(path, chosen, all_results, context, facts)
        print(f"picture: {path}")


def write_json(options, facts, all_results):
    path = pathlib.Path(options.out)
    path.parent.mkdir(parents=True, exist_ok=True)
    sections = {name: results.as_json() for name, results in all_results.items()}
    path.write_text(json.dumps({"machine": facts, "order_seed": options.seed,
                                "repetitions": options.reps, "quick": options.quick,
                                "random_seed": options.random_seed, "sections": sections},
                               indent=1) + "\n")


def session_of(options, context, flavours):
    run = {"seed": options.seed, "repetitions": options.reps, "quick": options.quick, "full": options.full,
           "np": options.np_list, "random_seed": options.random_seed, "stock_only": options.stock_only,
           "mpi": [flavour.identity() for flavour in flavours]}
    try:
        state = State(ROOT / "build/bench-state.jsonl", run, options.resume)
    except Mismatch as reason:
        sys.exit(f"bench: {reason}")
    options.seed = state.run["seed"]
    return Session(context, state, options.reps, options.slow)


def measure_all(options, flavours, directory):
    chosen = [s for s in SECTIONS if not options.only or s.name in options.only]
    context = Context(subjects.find_subjects(flavours, not options.stock_only), directory,
                      QUICK if options.quick else 1.0, options.np_list, options.timeout, options.random_seed,
                      options.full)
    facts = runner.machine_facts(directory, flavours)
    session = session_of(options, context, flavours)
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print(f"order seed {options.seed}, {options.reps} repetitions; median (best)")
    if options.quick:
        print("quick: an eighth of the data; the titles below do not show this")
    if not places.shima_is_built() or options.stock_only:
        print("without Shima: only the stock side is measured")
    all_results = {}
    skipped = {section.name: reason for section in chosen if (reason := section.skip_reason())}
    session.announce([section for section in chosen if section.name not in skipped])
    for section in chosen:
        if section.name in skipped:
            print(f"\n{section.title}\nskipped: {skipped[section.name]}")
            continue
        all_results[section.name] = session.measure(section)
        show(section, all_results[section.name], options)
        write_json(options, facts, all_results)
    draw(all_results, context, facts)
    return all_results


def main():
    options = parse()
    options.reps = options.reps or (1 if options.quick else 3)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    flavours = subjects.find_flavours()
    if not flavours:
        sys.exit("no MPI found; scripts/setup installs MPICH and Open MPI")
    directory = runner.working_directory(options.dir, ROOT / "build/bench-files",
                                         2 if options.quick else 6)
    try:
        compile_everything(flavours)
        all_results = measure_all(options, flavours, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if all_results:
        print(f"\nall samples: {options.out}")
    return judge(options, all_results)


def judge(options, all_results):
    judged = sum(len(results.verdicts) for results in all_results.values())
    failures = sum(len(results.failures()) for results in all_results.values())
    print(f"{judged} targets judged; {failures} missed, or rows failed")
    return 1 if options.strict and failures else 0


if __name__ == "__main__":
    sys.exit(main())
