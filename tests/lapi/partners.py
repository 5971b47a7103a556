#!/usr/bin/env python3
# FLAVOURS: mpich-wheel
# TIMEOUT: 120
"""LAPI tasks on two hosts, one of which does not receive at first, or leaves right after its first message: nothing that
was sent is lost, and no task that lives."""

import os
import sys

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path[:0] = [os.path.join(SOURCES, "bench"), os.path.join(SOURCES, "tests/lapi")]
from hosts import check_runs, compile_program
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


def main():
    compile_program("partners")
    with open("late.c", "w", encoding="utf-8") as source:
        source.write(LATE_CONNECTOR)
    if os.system("cc -shared -fPIC -o late.so late.c -ldl") != 0:
        return 1
    os.environ["SHIMA_NODE_TIMEOUT"] = "2"
    try:
        with TwoHosts() as hosts:
            problems = [problem for case in ("last", "first", "busy", "thread") for problem in check_runs(hosts, 2, "./partners", case)]
            problems += check_runs(hosts, 2, "env", f"LD_PRELOAD={os.getcwd()}/late.so", "./partners", "first")
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
