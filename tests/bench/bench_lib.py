"""Runs `shima bench` with tiny data, and checks the form of its JSON."""

import os
import pathlib
import subprocess

SHIMA = os.environ["SHIMA"]
SMALL = ("--size", "8M", "--np", "2")
CACHE = pathlib.Path(os.environ["SHIMA_BUILD_DIR"]) / "tests/bench-programs"  # compiled once for all tests


def environment(**changes):
    # CI is root, whom Open MPI refuses.
    return os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} | changes


def command(*arguments):
    return [SHIMA, "bench", *map(str, arguments), "--mpiexec", os.environ["MPIEXEC"], "--cache", str(CACHE)]


def run(*arguments, status=0):
    """The completed process, whose exit status must be `status`."""
    done = subprocess.run(command(*arguments), capture_output=True, text=True, env=environment(), timeout=280)
    assert done.returncode == status, f"exit {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done


def check_json(report, experiments, repetitions):
    """What a program may rely on."""
    assert report["version"] == 1 and report["repetitions"] == repetitions and report["size_mib"] == 8, report
    assert {"cores", "processor", "kernel", "file_system", "mpi", "date"} <= report["machine"].keys()
    assert list(report["experiments"]) == list(experiments), list(report["experiments"])
    for name, document in report["experiments"].items():
        assert document["title"] and document["source"]
        assert document["sections"], name
        for figure in document["figures"]:
            assert all(len(series["values"]) == len(figure["x"]) for series in figure["series"]), figure
        for statement in document["statements"]:
            assert statement["here"] and isinstance(statement["stated"], str), statement
        for section in document["sections"].values():
            for row in section["rows"]:
                assert not row["problems"], row
                assert len(row["values"]) >= repetitions and min(row["values"]) >= 0, row
                assert row["better"] in ("higher", "lower") and row["unit"], row


def both_sides(section):
    """A stock MPI and Shima under it, with figures in the same rows."""
    rows = {}
    for row in section["rows"]:
        rows.setdefault(row["subject"], set()).add(row["row"])
    stock = next(subject for subject in rows if subject in ("mpich", "openmpi"))
    assert rows[stock] == rows[f"shima/{stock}"], rows
