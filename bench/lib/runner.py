"""Runs one program as a measurement: on a quiet machine, within a time limit, leaving nothing.

Dirty pages of earlier runs disturb every later figure, so measure() writes them out first. It also
provides memory that is cheap to allocate (bench/machine/warm_memory.cpp). A job that exceeds its time
is ended with all its processes, also those that a launcher moved out of its process group: they still
share the session that was created for the job.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

WARM_MIB = 3584
REAL_FILE_SYSTEMS_NOT = {"tmpfs", "ramfs", "devtmpfs", "proc", "sysfs"}


@dataclasses.dataclass
class Outcome:
    records: list      # the JSON objects that the program printed
    stats: list        # the JSON objects that Shima wrote, one per closed file
    seconds: float     # of the whole job, its start included
    problem: str = ""  # why it is no measurement: a timeout, an exit code


def say(text):
    print(text, file=sys.stderr, flush=True)


# --- a quiet machine --------------------------------------------------------------------------

def unwritten_mib():
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    kib = [int(line.split()[1]) for line in lines if line.startswith(("Dirty:", "Writeback:"))]
    return sum(kib) / 1024


def drain(limit_mib=16, patience_s=60):
    """Writes dirty pages out and waits until hardly any are left; other programs may create new ones."""
    os.sync()
    deadline = time.monotonic() + patience_s
    while unwritten_mib() > limit_mib and time.monotonic() < deadline:
        time.sleep(0.05)


def available_mib():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


# --- one job ----------------------------------------------------------------------------------

def session_members(session):
    members = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == session:
                members.append(int(entry.name))
        except OSError:
            pass  # it exited meanwhile
    return members


def end_job(process):
    """Sends the launcher SIGTERM to end its ranks, then kills the processes left in the job's session."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        pass
    for pid in session_members(process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


def json_lines(text):
    objects = []
    for line in text.splitlines():
        try:
            if line.startswith("{"):
                objects.append(json.loads(line))
        except json.JSONDecodeError:
            pass  # a line of another program
    return objects


def run(command, environment=None, timeout_s=600):
    """Runs a command in its own session; Shima, if the command uses it, writes its statistics to a
    file, unless the environment sets SHIMA_STATS to an empty string."""
    with tempfile.TemporaryDirectory(prefix="shima-bench-") as scratch:
        stats = pathlib.Path(scratch, "stats.jsonl")
        environment = {"SHIMA_STATS": str(stats)} | dict(environment or os.environ)
        with open(f"{scratch}/out", "w+") as out, open(f"{scratch}/err", "w+") as err:
            started = time.monotonic()
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, start_new_session=True)
            problem = ""
            try:
                if process.wait(timeout_s) != 0:
                    problem = f"exit code {process.returncode}"
            except subprocess.TimeoutExpired:
                problem = f"no end after {timeout_s:.0f} s"
            finally:
                if process.poll() is None:
                    end_job(process)
            seconds = time.monotonic() - started
            out.seek(0), err.seek(0)
            records, errors = json_lines(out.read()), err.read()
        if problem and errors.strip():
            say("    " + "\n    ".join(errors.strip().splitlines()[-6:]))
        written = json_lines(stats.read_text()) if stats.exists() else []
        return Outcome(records, written, seconds, problem)


@contextlib.contextmanager
def warmed(warmer, directory, warm_mib=WARM_MIB):
    """Memory that is cheap to allocate for the next file in the directory, on a quiet machine. `warmer`:
    bench/warm_memory, compiled; it waits for that file. 0 MiB: the quiet machine only."""
    drain()
    if warm_mib == 0:
        yield
        return
    size_mib = min(warm_mib, available_mib() // 2)
    with subprocess.Popen([str(warmer), str(size_mib), str(directory)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        try:
            yield
        finally:
            holder.kill()


def measure(warmer, directory, command, environment=None, timeout_s=600, warm_mib=WARM_MIB):
    """run() in warmed() memory."""
    with warmed(warmer, directory, warm_mib):
        return run(command, environment, timeout_s)


# --- which path Shima took --------------------------------------------------------------------

def paths_taken(stats):
    """The number of calls on each path, summed over the files closed; "independent": without any."""
    taken = {}
    for record in stats:
        for name, count in record.get("counters", {}).items():
            if name.startswith(("path_", "strategy_independent")) and count:
                path = name.split("_", 1)[1]
                taken[path] = taken.get(path, 0) + count
    return taken


def wrong_path(stats, expected):
    """A message if calls were served by a path that the row does not measure."""
    taken = paths_taken(stats)
    strange = {path: count for path, count in taken.items() if path not in expected}
    if not expected:
        return ""
    if not taken:
        return "Shima counted no collective call: it did not serve the program"
    if not strange:
        return ""
    return "other path: " + ", ".join(f"{path} {count}x" for path, count in strange.items())


def not_combined(stats):
    """A message if no independent write was done by a sweep (independent/combine.h)."""
    counters = [record.get("counters", {}) for record in stats]
    writes = sum(counter.get("writes", 0) for counter in counters)
    combined = sum(counter.get("combined_writes", 0) for counter in counters)
    return "" if combined else f"none of {writes} independent writes was combined"


# --- where ------------------------------------------------------------------------------------

def file_system_of(directory):
    """The type of a directory's file system: that of the longest mount point above it."""
    path, best = str(pathlib.Path(directory).resolve()), ("", "unknown")
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, mount, kind = line.split()[:3]
        inside = path == mount or path.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best[0]):
            best = (mount, kind)
    return best[1]


def working_directory(wanted, parent, free_gib):
    """A directory for the big files, on a disk file system with free space; ends the program if there is none."""
    base = pathlib.Path(wanted or parent).absolute()
    base.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(base).free / 2**30
    if free < free_gib:
        sys.exit(f"{base}: {free:.1f} GiB free, but the files need {free_gib:.1f} GiB; "
                 "free space, or name another directory with --dir")
    kind = file_system_of(base)
    if kind in REAL_FILE_SYSTEMS_NOT:
        sys.exit(f"{base}: it is on {kind}, which is in memory and cannot be measured as a disk file system; "
                 "name another directory with --dir")
    return pathlib.Path(tempfile.mkdtemp(prefix="files-", dir=base))


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def congestion_control():
    """What limits the speed of TCP between two_hosts.py's hosts, too: BBR paces what it sends."""
    path = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control")
    return path.read_text().strip() if path.exists() else "unknown"


def machine_facts(directory, flavours):
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cores": len(os.sched_getaffinity(0)), "processor": processor(),
            "memory_gib": round(memory / 2**30, 1), "kernel": platform.release(),
            "file_system": file_system_of(directory), "tcp": congestion_control(),
            "mpi": {flavour.label(): flavour.version for flavour in flavours},
            "date": time.strftime("%Y-%m-%d %H:%M")}
