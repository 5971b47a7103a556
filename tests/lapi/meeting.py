#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 120
"""The meeting place of a LAPI job refuses strangers: wrong secrets with one line, and ten thousand connections that never
speak leave its memory flat; the job goes on. So does the socket at which a task listens for others. Two tasks with one number are an error. Programs that start with randomized
addresses, as over ssh, get the addresses of the others."""

import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys

SHIMA = os.environ["SHIMA"]
SOURCES = os.environ["SHIMA_SOURCE_DIR"]
LIBRARIES = os.path.join(os.environ["SHIMA_BUILD_DIR"], "lib")
SILENT = 10_000
AT_ONCE = 500
GROWTH_KIB = 65536 if os.environ.get("SHIMA_SANITIZE") else 2048  # AddressSanitizer keeps what has been freed
STRANGERS = 100


def compile_task():
    pathlib.Path("task.c").write_text("""#include <lapi.h>
        #include <stdio.h>
        #include <unistd.h>
        int main(int argc, char** argv) { (void)argv; lapi_info_t info = {}; lapi_handle_t handle = 0; static int variable;
          printf("%p %p\\n", (void*)main, (void*)&variable);
          if (LAPI_Init(&handle, &info) != LAPI_SUCCESS) return 1;
          while (argc > 1) { puts("ready"); fflush(stdout); pause(); }
          return LAPI_Gfence(handle) == LAPI_SUCCESS && LAPI_Term(handle) == LAPI_SUCCESS ? 0 : 1; }""")
    sanitize = [f"-fsanitize={os.environ['SHIMA_SANITIZE'].replace('+', ',')}"] if os.environ.get("SHIMA_SANITIZE") else []
    subprocess.run(["cc", "task.c", "-o", "task", *sanitize, f"-I{SOURCES}/include", f"-L{LIBRARIES}",
                    f"-Wl,-rpath,{LIBRARIES}", "-llapi"], check=True)


def memory_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))


def open_silent(endpoint, count):
    for _ in range(0, count, AT_ONCE):
        connections = [socket.create_connection(endpoint) for _ in range(AT_ONCE)]
        for connection in connections:
            connection.close()


def is_refused(endpoint, words):
    with socket.create_connection(endpoint, timeout=20) as connection:
        connection.sendall(words)
        try:
            return connection.recv(16) == b""
        except ConnectionResetError:
            return True


def check_strangers():
    job = subprocess.Popen([SHIMA, "run", "--lapi", "sh", "-c", "echo $SHIMA_LAPI; read line; ./task"],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    host, port = re.match(r"meet=([0-9.]+):(\d+)", job.stdout.readline()).groups()
    endpoint = (host, int(port))
    open_silent(endpoint, AT_ONCE)
    before = memory_kib(job.pid)
    open_silent(endpoint, SILENT)
    grown = memory_kib(job.pid) - before
    print(f"{SILENT} silent connections: {grown} KiB more")
    problems = [f"{SILENT} silent connections cost {grown} KiB"] if grown > GROWTH_KIB else []
    for words in (b"x" * 16, b"\0" * 4096, b"GET / HTTP/1.1\r\n\r\n"):
        if not is_refused(endpoint, words):
            problems.append(f"{words[:20]} was not refused")
    _, errors = job.communicate("go on\n", timeout=60)
    if job.returncode != 0:
        problems.append(f"the job failed: {job.returncode} {errors}")
    if errors.count("without the secret") != 1:
        problems.append(f"not one line about strangers: {errors}")
    return problems


def check_numbers():
    """Two tasks that both are number 0 of 1."""
    job = subprocess.run([SHIMA, "run", "--lapi", "sh", "-c", "./task & ./task; first=$?; wait $!; exit $((first + $?))"],
                         capture_output=True, text=True, timeout=60)
    problems = [] if job.returncode != 0 else ["two tasks with one number have met"]
    return problems + ([] if "do not form one job" in job.stderr else [f"no reason: {job.stderr}"])


def listening_endpoints(pid):
    """Where the process listens, as /proc/net/tcp says it (IPv4)."""
    sockets = set()
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            sockets.add(os.readlink(entry))
        except OSError:
            pass  # closed meanwhile
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
            address, port = words[1].split(":")
            yield socket.inet_ntoa(bytes.fromhex(address)[::-1]), int(port, 16)


def check_task():
    """The socket at which a task listens for others: neither memory nor descriptors for ten thousand strangers."""
    command = "PMI_RANK=0 PMI_SIZE=1 ./task wait & echo $!; wait $!"
    job = subprocess.Popen([SHIMA, "run", "--lapi", "sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    task = int(job.stdout.readline())
    while job.stdout.readline().strip() != "ready":
        pass
    descriptors = lambda: len(os.listdir(f"/proc/{task}/fd"))
    before, most = descriptors(), 0
    endpoint = next(listening_endpoints(task))
    open_silent(endpoint, AT_ONCE)
    memory = memory_kib(task)
    kept = []
    for _ in range(0, SILENT, AT_ONCE):
        kept = [socket.create_connection(endpoint) for _ in range(AT_ONCE)]  # closes the former ones
        most = max(most, descriptors())
    grown = memory_kib(task) - memory
    print(f"{SILENT} silent connections to a task: {grown} KiB and {most - before} descriptors more")
    problems = [f"{SILENT} silent connections to a task cost {grown} KiB"] if grown > GROWTH_KIB else []
    problems += [f"a task has {most - before} descriptors of strangers"] if most - before > STRANGERS else []
    for words in (b"x" * 16, b"\0" * 4096):
        if not is_refused(endpoint, words):
            problems.append(f"a task has not refused {words[:20]}")
    del kept
    os.kill(task, signal.SIGTERM)
    _, errors = job.communicate(timeout=60)
    return problems + ([] if errors.count("without the secret") == 1 else [f"not one line about strangers: {errors}"])


RANDOMIZED = """import ctypes, os
ctypes.CDLL(None).personality(0)
os.execv("./task", ["./task"])
"""


def check_addresses():
    pathlib.Path("randomized.py").write_text(RANDOMIZED)
    seen = {subprocess.run([SHIMA, "run", "--lapi", *command], capture_output=True, text=True, check=True, timeout=60).stdout
            for command in (["./task"], ["python3", "randomized.py"], ["python3", "randomized.py"])}
    return [] if len(seen) == 1 else [f"the addresses of tasks differ: {seen}"]


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    compile_task()
    problems = check_strangers() + check_task() + check_numbers() + check_addresses()
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
