"""Jobs of LAPI tasks on one host, in one address space and over two hosts, without an MPI's launcher."""

import os
import subprocess
import sys

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCES, "bench"))
from two_hosts import TwoHosts, Unavailable

SHIMA = os.environ["SHIMA"]
LIBRARIES = os.path.join(os.environ["SHIMA_BUILD_DIR"], "lib")
SANITIZE = os.environ.get("SHIMA_SANITIZE", "")
WAYS = ("processes", "one space", "two hosts")


def compile_program(source, program):
    """C or C++, by the name of the source."""
    compiler = ["c++", "-std=c++17"] if source.endswith(".cpp") else ["cc", "-std=gnu11"]
    sanitize = [f"-fsanitize={SANITIZE.replace('+', ',')}"] if SANITIZE else []
    subprocess.run([*compiler, "-g", "-O1", "-Wall", "-Wextra", "-Werror", os.path.join(SOURCES, "tests/lapi", source), "-o", program,
                    *sanitize, f"-I{SOURCES}/include", f"-I{SOURCES}/tests/lapi", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}",
                    "-llapi", "-lpthread"], check=True)


def command_of(way, hosts, tasks, program):
    """`program` is a list of words. Over hosts, the last task is on the second host, the others are on the first."""
    if way == "processes":
        return [SHIMA, "run", "--lapi", "-n", str(tasks), *program]
    if way == "one space":
        return ["env", "SHIMA_ONE_SPACE=required", SHIMA, "run", "--lapi", "--one-space", "-n", str(tasks), *program]
    starts = [" ".join(["env", f"PMI_RANK={task}", f"PMI_SIZE={tasks}", *hosts.enter(1 if task == tasks - 1 else 0), *program, "&",
                        f"p{task}=$!;"]) for task in range(tasks)]
    waits = [f"wait $p{task} || code=$?;" for task in range(tasks)]
    return [*hosts.enter(0), SHIMA, "run", "--lapi", "sh", "-c", " ".join(["code=0;", *starts, *waits, "exit $code"])]


def on_each_way(problems_of):
    """`problems_of(way, hosts)` returns texts. The exit code of the test."""
    problems = []
    try:
        with TwoHosts() as hosts:
            for way in WAYS:
                if not (SANITIZE and way == "one space"):
                    problems += problems_of(way, hosts)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 77
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0
