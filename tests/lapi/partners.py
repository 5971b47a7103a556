#!/usr/bin/env python3
# FLAVOURS: mpich-wheel
# TIMEOUT: 120
"""LAPI tasks on two hosts, one of which does not receive at first, or leaves right after its first message: nothing that
was sent is lost, and no task that lives."""

import os
import subprocess
import sys

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path[:0] = [os.path.join(SOURCES, "bench"), os.path.join(SOURCES, "tests/lapi")]
from hosts import check_runs, compile_program, run
from two_hosts import TwoHosts, Unavailable

SKIP = 77
LATE_CONNECTOR = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>
// The answer to a connect is one byte; it is late.
ssize_t recv(int socket, void* data, size_t len, int flags) {
  ssize_t (*real)(int, void*, size_t, int) = (ssize_t (*)(int, void*, size_t, int))dlsym(RTLD_NEXT, "recv");
  ssize_t got = real(socket, data, len, flags);
  if (len == 1 && flags == 0) usleep(300000);
  return got;
}
"""
NO_CONNECT = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
// Task 0 reaches the meeting place only.
int connect(int socket, const struct sockaddr* address, socklen_t len) {
  static int count;
  int (*real)(int, const struct sockaddr*, socklen_t) = (int (*)(int, const struct sockaddr*, socklen_t))dlsym(RTLD_NEXT, "connect");
  const int is_first = getenv("PMI_RANK")[0] == '0' && address->sa_family == AF_INET;
  if (!is_first || count++ == 0) return real(socket, address, len);
  errno = ECONNREFUSED;
  return -1;
}
"""


def compile_preload(name, text):
    with open(f"{name}.c", "w", encoding="utf-8") as source:
        source.write(text)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", f"{name}.so", f"{name}.c", "-ldl"], check=True)
    return f"LD_PRELOAD={os.getcwd()}/{name}.so"


def check_forked(hosts):
    """Behind a shell, so that the launcher does not end the other."""
    _, output = run(hosts, 2, ["sh", "-c", "./partners forked; exit 0"])
    return [] if "survives" in output else [f"a killed task with a child is not lost\n{output[-2000:]}"]


def check_unreachable(hosts, preload):
    """Neither task waits for ever, and both say why."""
    _, output = run(hosts, 2, ["sh", "-c", f"env {preload} ./partners first; exit 0"])
    return [f"no {words}\n{output[-2000:]}" for words in ("returned 401", "shima[1]: warning") if words not in output]


def main():
    compile_program("partners")
    late = compile_preload("late", LATE_CONNECTOR)
    alone = compile_preload("alone", NO_CONNECT)
    os.environ["SHIMA_NODE_TIMEOUT"] = "2"
    try:
        with TwoHosts() as hosts:
            problems = [problem for case in ("last", "first", "busy", "thread") for problem in check_runs(hosts, 2, "./partners", case)]
            problems += check_runs(hosts, 2, "env", late, "./partners", "first")
            problems += check_forked(hosts) + check_unreachable(hosts, alone)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
