"""Jobs of `shima dse run` for tests: run them, watch their processes, and two hosts with a substitute for ssh."""

import os
import pathlib
import re
import subprocess
import sys
import time
import uuid

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCES, "bench"))

SHIMA = os.environ["SHIMA"]
LIBRARIES = os.path.join(os.environ["SHIMA_BUILD_DIR"], "lib")
SANITIZE = os.environ.get("SHIMA_SANITIZE", "")
SLOW = 3 if SANITIZE else 1
MARK = "SHIMA_DSE_TEST_MARK"

# As the real one: one line for the other host's shell, the standard input passed on, another working directory.
SSH = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
pid=$(cat '{state}'/"$1".pid) || exit 255
shift
cd / && exec nsenter -t "$pid" -n -u -m sh -c "$*"
"""


def compile_program(source, program, *libraries):
    sanitize = [f"-fsanitize={SANITIZE.replace('+', ',')}"] if SANITIZE else []
    subprocess.run(["cc", "-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", os.path.join(SOURCES, source), "-o", program,
                    *sanitize, f"-I{SOURCES}/include", f"-I{SOURCES}/tests/lapi", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}",
                    *libraries, "-lpthread"], check=True)


class Problems(list):
    def expect(self, what, found, wanted):
        if found != wanted:
            self.append(f"{what}: expected {wanted!r}, found {found!r}")

    def contains(self, what, text, part):
        if part not in text:
            self.append(f"{what}: {part!r} is not in {text!r}")

    def result(self):
        print("\n".join(self), file=sys.stderr)
        return 1 if self else 0


class Job:
    """A job under way. Its processes, on all hosts, have a mark in their environment."""

    def __init__(self, *arguments, prefix=(), stdin=subprocess.DEVNULL, environment=None):
        self.mark = str(uuid.uuid4())
        self.process = subprocess.Popen([*prefix, SHIMA, "dse", "run", *map(str, arguments)], stdin=stdin, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, start_new_session=True,
                                        env=dict(os.environ, **(environment or {}), **{MARK: self.mark}))

    def end(self, text=None):
        try:
            output, errors = self.process.communicate(text, timeout=60 * SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, errors = self.process.communicate()
            errors += "\nthe job hangs"
        return self.process.returncode, output, errors

    def processes(self):
        """{pid: words of its command line}"""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().decode().split("\0")[:-1]
            except OSError:
                pass  # it exited meanwhile
        return {pid: words for pid, words in found.items() if words}

    def pids(self, *words):
        """Of the processes with this command line; the first word may be missing."""
        return sorted(pid for pid, line in self.processes().items() if list(words) in (line, line[1:]))

    def await_pids(self, count, *words):
        until = time.monotonic() + 30 * SLOW
        while len(found := self.pids(*words)) != count and time.monotonic() < until:
            time.sleep(0.02)
        if len(found) != count:
            raise RuntimeError(f"{len(found)} processes {words}, not {count}: {self.processes()}")
        return found

    def left(self):
        """The processes that are still there after the job, and a moment."""
        until = time.monotonic() + 10 * SLOW
        while (found := self.processes()) and time.monotonic() < until:
            time.sleep(0.05)
        return list(found.values())


def run(*arguments, text=None, **options):
    job = Job(*arguments, stdin=subprocess.PIPE if text is not None else subprocess.DEVNULL, **options)
    return job.end(text)


def write_ssh(hosts, path="ssh"):
    script = pathlib.Path(path).absolute()
    script.write_text(SSH.format(state=hosts.state))
    script.chmod(0o755)
    return str(script)


def key_of(text):
    return re.search(r"key=(\w+)", text)[1]
