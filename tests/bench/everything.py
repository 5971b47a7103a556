#!/usr/bin/env python3
# FLAVOURS: mpich-wheel
# EVERYDAY: none
# PROCESSORS: 2
# TIMEOUT: 300
"""`shima bench all` with tiny data: each experiment gives figures; then S1's over disks and I/O nodes, where root may make them."""

import json
import os

import bench_lib
import page_lib

EXPERIMENTS = ["columns", "steps", "subgroup", "dsm", "delegate", "irregular", "scale"]
# Those whose programs are not linked with Shima: an ordinary program cannot be linked with a sanitized library.
APART = ["columns", "steps", "subgroup", "irregular", "scale"]


def check_disks():
    for extra, sections in ((["--disks", "2"], ["disks"]), (["--disks", "2", "--io-nodes"], ["io_nodes", "daemon_disks"])):
        done = bench_lib.run("columns", "--size", "8M", "--np", "8", "--reps", "1", "--json", *extra)
        report = json.loads(done.stdout)
        if report["skipped"]:
            print("\n".join(report["skipped"]))
            continue
        bench_lib.check_json(report, ["columns"], 1)
        found = report["experiments"]["columns"]["sections"]
        assert list(found) == sections, found
        for name in sections:
            rows = {row["row"] for row in found[name]["rows"] if row["subject"] == "shima/mpich"}
            assert rows == {row["row"] for row in found[name]["rows"] if row["subject"] == "limit"}, rows


def main():
    chosen = APART if os.environ["SHIMA_SANITIZE"] else EXPERIMENTS
    done = bench_lib.run(*(["all"] if chosen == EXPERIMENTS else chosen), *bench_lib.SMALL, "--reps", "1", "--json", "--html", "all.html")
    report = json.loads(done.stdout)
    skipped = [line for line in report["skipped"] if "address spaces" in line]
    wanted = [name for name in chosen if name != "delegate" or not skipped]
    for name in set(chosen) - set(wanted):
        assert not report["experiments"].pop(name)["sections"]
    bench_lib.check_json(report, wanted, 1)
    for name in ("columns", "steps"):
        bench_lib.both_sides(report["experiments"][name]["sections"][name])
    for name in wanted:
        assert report["experiments"][name]["figures"], name
    page_lib.parse_page("all.html")
    for scheme in (page_lib.LIGHT, page_lib.DARK):
        page_lib.check_shown("all.html", scheme)
    check_disks()


if __name__ == "__main__":
    main()
