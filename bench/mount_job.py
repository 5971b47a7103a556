#!/usr/bin/env python3
"""Times cp of a file into a directory and out again: mount_job.py cp|pass-through|shima DIRECTORY SIZE_MIB.

DIRECTORY is used directly, through a file system in user space that only passes calls on
(passthrough_fs.c, compiled here), or through `shima mount`, where the copy is a striped file. The
whole program runs in its own mount namespace. Both copies are to existing files, so that each
uses the memory that its predecessor has just freed (see bench/machine/warm_memory.cpp); dirty pages
are written out before each. After a first copy that does not count, the median of three is printed,
in a line of JSON.
"""

import filecmp
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHIMA = ROOT / "build/release/bin/shima"
STRIPES = ("--stripe", "unit=1M,targets=4", "--order", "beside")


def compile_passthrough():
    program = ROOT / "build/bench/plain/passthrough_fs"
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=True)
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-O2", "-std=gnu11", "-D_FILE_OFFSET_BITS=64", "-o", program, ROOT / "bench/machine/passthrough_fs.c",
                    *flags.stdout.split()], check=True)
    return program


def mount(way, directory, mount_point):
    if way == "shima":
        subprocess.run([SHIMA, "create", *STRIPES, directory / "copy"], check=True)
        subprocess.run([SHIMA, "mount", directory, mount_point], check=True)
        return
    subprocess.Popen([compile_passthrough(), directory, mount_point], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(500):
        if os.path.ismount(mount_point):
            return
        time.sleep(0.01)
    sys.exit("the pass-through cannot be mounted")


def copy(source, goal, op, size_mib):
    rates = []
    for _ in range(4):
        os.sync()
        started = time.monotonic()
        subprocess.run(["cp", source, goal], check=True)
        rates.append(size_mib / (time.monotonic() - started))
    print(json.dumps({"op": op, "mib_s": statistics.median(rates[1:]),
                      "different_files": 0 if filecmp.cmp(source, goal, shallow=False) else 1}))


def main():
    private = ["unshare", "--mount", "--propagation", "private"]
    if "inside" not in sys.argv:
        os.execvp(private[0], [*private, sys.executable, *sys.argv, "inside"])
    way, base, size_mib = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    directory, mount_point, big, out = (base / name for name in ("directory", "mount", "big", "out"))
    directory.mkdir(), mount_point.mkdir()
    try:
        with open(big, "wb") as file:
            for _ in range(size_mib):
                file.write(os.urandom(1 << 20))
        shutil.copy(big, out)
        shown = directory if way == "cp" else mount_point
        if way != "cp":
            mount(way, directory, mount_point)
        if way != "shima":
            shutil.copy(big, directory / "copy")
        else:
            shutil.copyfile(big, shown / "copy")
        copy(big, shown / "copy", "in", size_mib)
        copy(shown / "copy", out, "out", size_mib)
    finally:
        if os.path.ismount(mount_point):
            subprocess.run(["fusermount3", "-u", mount_point], check=False)
        for path in (directory, mount_point):
            shutil.rmtree(path, ignore_errors=True)
        for path in (big, out):
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
