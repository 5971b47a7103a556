#!/usr/bin/env python3
"""A rank that is killed in or before a collective call ends the job soon, and leaves nothing behind.

The job must end within seconds, and not with success; afterwards no process of it may be left, no
name of ours in /dev/shm, and in the folder nothing but the data file. What it does is in
kill_rank.c. The same is tried with ranks whose launcher cannot see their end and so lets the others
live: these must be told by Shima, every one of them, and end by themselves.
"""

import os
import pathlib
import subprocess
import sys
import time

LIMIT_S = 10
PROGRAM = pathlib.Path("kill_rank").absolute()


def compile_program():
    tests = os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests")
    subprocess.run([os.environ["MPICC"], "-std=gnu11", "-O1", "-Wall", f"-I{tests}", "-o", PROGRAM,
                    f"{tests}/fault/kill_rank.c", "-lpthread"], check=True)


def survivors(folder):
    """Processes of the job that still run: those whose current folder is the job's."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(folder):
                found.append(f"{entry.name} {(entry / 'cmdline').read_bytes()!r}")
        except OSError:
            pass  # ended meanwhile, or somebody else's
    return found


def wait_for_no_survivors(folder):
    for _ in range(50):
        left = survivors(folder)
        if not left:
            return []
        time.sleep(0.1)
    return left


def shared_names():
    return {name for name in os.listdir("/dev/shm") if "shima" in name}


def command_for(moment, hint, way, shielded):
    """Shielded: each rank in a session of its own, below a shell that ends well whatever happens."""
    program = ["--hint", f"shima_reach={hint}", str(PROGRAM), moment, way]
    if not shielded:
        return [os.environ["SHIMA"], "run", "-n", "4", "--mpiexec", os.environ["MPIEXEC"], *program]
    shield = ["setsid", "--wait", "sh", "-c", '"$0" "$@"; exit 0']
    return [os.environ["MPIEXEC"], "-n", "4", *shield, os.environ["SHIMA"], "exec", *program]


def run_job(moment, hint, way, shielded):
    name = f"{hint}.{way}.{moment}" + (".shielded" if shielded else "")
    folder = pathlib.Path(name).absolute()
    folder.mkdir()
    names_before = shared_names()
    started = time.monotonic()
    job = subprocess.run(command_for(moment, hint, way, shielded), cwd=folder, capture_output=True, text=True,
                         stdin=subprocess.DEVNULL, timeout=60)
    took_s = time.monotonic() - started
    complaints = []
    if job.returncode == 0 and not shielded:
        complaints.append("the job ended with success")
    if took_s > LIMIT_S:
        complaints.append(f"the job took {took_s:.1f} s to end")
    if left := wait_for_no_survivors(folder):
        complaints.append("processes are left: " + ", ".join(left))
    if more := shared_names() - names_before:
        complaints.append(f"/dev/shm has {more}")
    files = {path.name for path in folder.iterdir()}
    told = {name for name in files if name.startswith("told.")}
    if files - told != {"data.bin"}:
        complaints.append(f"files in the folder: {files}")
    if shielded and len(told) != 3:
        complaints.append(f"of the three other ranks only these were told: {told}")
    print(f"{name}: {took_s:.1f} s, exit code {job.returncode}")
    return [f"{name}: {complaint}\n{job.stderr[-2000:]}" for complaint in complaints]


def main():
    compile_program()
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"):
        os.environ[name] = os.environ[name + "_CONFIRM"] = "1"
    os.environ["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
    os.environ["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    complaints = []
    for hint, way in (("pull", "blocking"), ("pack", "blocking"), ("pull", "nonblocking"), ("pack", "split")):
        for moment in ("before", "during"):
            complaints += run_job(moment, hint, way, False)
            complaints += run_job(moment, hint, way, True)
    print("\n".join(complaints), file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
