"""Shared by the tests of `shima mount`: a mount that ends with the test, striped files, ranks."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
SHIMA = os.environ["SHIMA"]
SKIP = 77
DIRECTORY, MOUNT = pathlib.Path("directory").absolute(), pathlib.Path("mount").absolute()
UNIT, COUNT = 64 * 1024, 3

ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def enter():
    """Continues in a separate mount namespace, so that nothing stays mounted in any case."""
    if sys.argv[1:2] == ["inside"]:
        return
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        skip(error)
    if not (pathlib.Path(SHIMA).parent.parent / "lib/shima/shima-fuse").exists():
        skip("built without libfuse3")
    private = ["unshare", "--mount", "--propagation", "private"]
    if subprocess.run([*private, "true"], capture_output=True).returncode != 0:
        skip("no right to make a mount namespace")
    os.execvp("unshare", [*private, sys.executable, "-B", sys.argv[0], "inside"])


@contextlib.contextmanager
def in_memory():
    """Shows a directory in memory: truncating and renaming sync master files, which dominates the time on a disk."""
    directory = pathlib.Path(f"/dev/shm/mount-test-{os.getpid()}")
    try:
        directory.mkdir()
        DIRECTORY.symlink_to(directory)
        yield
    finally:
        shutil.rmtree(directory)


@contextlib.contextmanager
def mounted(*options):
    if not DIRECTORY.exists():
        DIRECTORY.mkdir()
    MOUNT.mkdir(exist_ok=True)
    subprocess.run([SHIMA, "mount", "--log-file", "mount.log", *options, DIRECTORY, MOUNT], check=True, timeout=90)
    try:
        yield
    except BaseException:
        subprocess.run(["umount", "-l", MOUNT], check=False)  # files may be open
        raise
    else:
        for _ in range(600):  # a file just closed may still be in use
            ended = subprocess.run([SHIMA, "umount", MOUNT], capture_output=True, text=True)
            if ended.returncode == 0:
                break
            time.sleep(0.1)
        assert ended.returncode == 0, ended.stderr
    text = pathlib.Path("mount.log").read_text()
    for word in ("Sanitizer", "corrupt", "malloc"):
        assert word not in text, text


def compile_ranks():
    subprocess.run([os.environ["MPICC"], "-std=gnu11", "-O1", "-DOMPI_SKIP_MPICXX", f"-I{SOURCE}/tests", "-o", "ranks",
                    SOURCE / "tests/tool/mount_ranks.c"], check=True)


class Ranks:
    """An MPI program under Shima that executes commands."""

    def __init__(self, count=2, *hints):
        words = [word for hint in hints for word in ("--hint", hint)]
        self.job = subprocess.Popen([SHIMA, "run", "-n", str(count), "--mpiexec", os.environ["MPIEXEC"], *words,
                                     "./ranks"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                    env=ENVIRONMENT)

    def __call__(self, *command):
        print(*command, file=self.job.stdin, flush=True)
        answer = self.job.stdout.readline().strip()
        assert answer, f"the ranks have ended ({command})"
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        print(file=self.job.stdin, flush=True)  # not all launchers pass on the end of stdin
        self.job.stdin.close()
        assert self.job.wait(60) == 0


def make_striped(*paths, unit=UNIT, count=COUNT):
    """Empty striped files."""
    hints = ("shima_targets=beside", f"striping_factor={count}", f"striping_unit={unit}")
    with Ranks(1, *hints) as ranks:
        for path in paths:
            ranks("open", path)
            ranks("close")
    for path in paths:
        assert pathlib.Path(path).read_bytes().startswith(b"shima striped file"), path
