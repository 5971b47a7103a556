#!/usr/bin/env python3
"""Measures Shima against the stock MPIs and against what the machine can do at all.

How figures are taken. Everything runs on one machine in one run. In each repetition the cells run
in a random order (the seed is printed), and inside a cell all subjects run in direct succession, in
random order too, so that a slow minute of the machine affects all equally. Before each, dirty pages
are written out and free memory is touched. Tables show the median (and the best); verdicts use
medians. A job that takes longer than --slow seconds is not repeated, and its figure says n=1.

    make bench          everything; half an hour and more
    bench/bench.py --quick --only columns --np 8
"""

import argparse
import json
import pathlib
import random
import shutil
import signal
import sys
import time

from lib import picture, runner, subjects
from lib.results import Results
from lib.section import Context
from sections import SECTIONS
from lib.subjects import ROOT
from lib.table import number


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
    return parser.parse_args()


def compile_everything(flavours):
    for program in filter(subjects.can_be_compiled, subjects.PLAIN):
        subjects.compile_program(program)
    for flavour in flavours:
        for program in subjects.SOURCES.keys() - subjects.PLAIN.keys():
            subjects.compile_program(program, flavour)


def shuffled_jobs(section, context, dice):
    """Groups in random order, and inside a group its jobs in random order."""
    groups = {}
    for job in section.jobs(context):
        if job.subject != "limit" or section.limit:
            groups.setdefault(job.group, []).append(job)
    names = list(groups)
    dice.shuffle(names)
    for name in names:
        dice.shuffle(groups[name])
        yield from groups[name]


def measure_section(section, context, options, dice):
    results, slow = Results(section.title, section.columns(context)), set()
    for repetition in range(options.reps):
        for job in shuffled_jobs(section, context, dice):
            if (job.group, job.subject) in slow:
                continue
            pass_name = f"{section.name} {repetition + 1}/{options.reps}"
            runner.say(f"  {pass_name}  {job.group}  {job.subject}")
            started = time.monotonic()
            results.add(job.subject, job.run())
            if time.monotonic() - started > options.slow:
                slow.add((job.group, job.subject))
    results.arrange(section.row_names(context))
    section.targets(results, context)
    return results


def show(section, results, options):
    print(f"\n{section.title}\n{section.lead}\n")
    print(results.table(options.reps))
    for note in results.notes():
        print(f"  note: {note}")
    for failure in results.failures():
        print(f"  {failure}")
    sys.stdout.flush()


def draw(section, results, context, facts):
    charts = section.charts(results, context)
    if not charts:
        return
    columns = section.columns(context)
    rows = [[row] + [number(value) if (value := results.median(row, column)) else "-"
                     for column in columns] for row in results.samples]
    path = ROOT / f"build/report/{section.name}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(picture.page(section.title, section.lead + ".", section.series(context), charts,
                                 ["median", *columns], rows,
                                 ", ".join(f"{key} {value}" for key, value in facts.items())))
    print(f"picture: {path}")


def write_json(options, facts, all_results):
    path = pathlib.Path(options.out)
    path.parent.mkdir(parents=True, exist_ok=True)
    sections = {name: results.as_json() for name, results in all_results.items()}
    path.write_text(json.dumps({"machine": facts, "order_seed": options.seed,
                                "repetitions": options.reps, "quick": options.quick,
                                "random_seed": options.random_seed, "sections": sections},
                               indent=1) + "\n")


def measure_all(options, flavours, directory):
    chosen = [s for s in SECTIONS if not options.only or s.name in options.only]
    context = Context(subjects.find_subjects(flavours, not options.stock_only), directory,
                      options.quick, options.np_list, options.timeout, options.random_seed, options.full)
    facts = runner.machine_facts(directory, flavours)
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print(f"order seed {options.seed}, {options.reps} repetitions; median (best)")
    if options.quick:
        print("quick: an eighth of the data and 20 steps; the titles below do not show this")
    if not subjects.shima_is_built() or options.stock_only:
        print("without Shima: only the stock side is measured")
    dice, all_results = random.Random(options.seed), {}
    for section in chosen:
        reason = section.skip_reason()
        if reason:
            print(f"\n{section.title}\nskipped: {reason}")
            continue
        all_results[section.name] = measure_section(section, context, options, dice)
        show(section, all_results[section.name], options)
        draw(section, all_results[section.name], context, facts)
        write_json(options, facts, all_results)
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
