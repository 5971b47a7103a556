#!/usr/bin/env python3
# TIMEOUT: 240
# FLAVOURS: mpich-wheel
"""Random operations on a striped file through `shima mount`, each repeated on a plain file (like fsx).

Both must give the same bytes, sizes and errors after every step: reads, writes, appends, truncation up and down, mapped reads
and writes, reopening in another mode, renaming, preallocating, reads by another descriptor, and removal while open. A failure
prints the seed and the last steps. MOUNT_FSX_SEEDS=7,8 selects seeds, MOUNT_FSX_STEPS the number of steps of each.
"""

import mmap
import os
import pathlib
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tool"))
from mount_lib import DIRECTORY, MOUNT, compile_ranks, enter, in_memory, make_striped, mounted

SEEDS = [int(seed) for seed in os.environ.get("MOUNT_FSX_SEEDS", "1,2,3,4,5,6").split(",")]
STEPS = int(os.environ.get("MOUNT_FSX_STEPS", "300" if os.environ.get("SHIMA_SANITIZE") else "2500"))
LARGEST = 400_000


class Twins:
    """The same steps on two files."""

    def __init__(self, seed, striped, plain):
        self.dice = random.Random(seed)
        self.paths = [striped, plain]
        self.name = 0
        self.files = [None, None]
        self.reopen()

    def both(self, action):
        """Both results must be equal, errors included."""
        outcomes = []
        for file, path in zip(self.files, self.paths):
            try:
                outcomes.append(action(file, path))
            except OSError as error:
                outcomes.append(("error", error.errno))
        striped, plain = outcomes
        if striped != plain:
            where = ""
            if isinstance(striped, bytes) and isinstance(plain, bytes):
                where = f"; bytes differ at {next((i for i, (a, b) in enumerate(zip(striped, plain)) if a != b), None)}"
            striped, plain = (len(found) if isinstance(found, bytes) else found for found in outcomes)
            raise AssertionError(f"{striped} striped, {plain} plain{where}")
        return plain

    def span(self):
        offset = self.dice.randrange(LARGEST)
        return offset, self.dice.choice((1, 10, 4096, 65536, self.dice.randrange(1, 150_000)))

    def size(self):
        return self.both(lambda file, path: os.fstat(file).st_size)

    def reopen(self):
        for file in self.files:
            if file is not None:
                os.close(file)
        mode = self.dice.choice((os.O_RDWR, os.O_RDWR, os.O_RDWR | os.O_APPEND, os.O_RDWR | os.O_DSYNC))
        self.files = [os.open(path, mode) for path in self.paths]
        return f"mode {mode:o}"

    def read(self):
        offset, count = self.span()
        self.both(lambda file, path: os.pread(file, count, offset))
        return f"{count} at {offset}"

    def write(self):
        offset, count = self.span()
        data = self.dice.randbytes(count)
        self.both(lambda file, path: os.pwrite(file, data, offset))
        if self.size() > 2 * LARGEST:  # after many appends
            self.both(lambda file, path: os.ftruncate(file, LARGEST))
        return f"{count} at {offset}"

    def truncate(self):
        size = self.dice.choice((0, self.size(), self.dice.randrange(LARGEST), self.dice.randrange(LARGEST)))
        if self.dice.random() < 0.5:
            self.both(lambda file, path: os.ftruncate(file, size))
        else:
            self.both(lambda file, path: os.truncate(path, size))
        return str(size)

    def append_by_name(self):
        data = self.dice.randbytes(self.dice.randrange(1, 5000))

        def action(_, path):
            with open(path, "ab", buffering=0) as file:
                return file.write(data)
        self.both(action)
        return str(len(data))

    def mapped_read(self):
        if self.size() == 0:
            return "empty"

        def action(file, _):
            with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as view:
                return bytes(view)
        self.both(action)
        return "all"

    def mapped_write(self):
        size = self.size()
        if size == 0:
            return "empty"
        begin = self.dice.randrange(size)
        data = self.dice.randbytes(min(size - begin, self.dice.randrange(1, 20_000)))

        def action(file, _):
            with mmap.mmap(file, 0) as view:
                view[begin:begin + len(data)] = data
                view.flush()
        self.both(action)
        return f"{len(data)} at {begin}"

    def look(self):
        self.both(lambda _, path: pathlib.Path(path).read_bytes())
        self.both(lambda _, path: (os.stat(path).st_size, os.stat(path).st_mode, os.stat(path).st_nlink))
        return ""

    def rename(self):
        self.name += 1
        for i, path in enumerate(self.paths):
            new = path.with_name(f"{path.name.split('-')[0]}-{self.name}")
            os.rename(path, new)
            self.paths[i] = new
        return str(self.name)

    def preallocate(self):
        offset, count = self.span()
        self.both(lambda file, path: os.posix_fallocate(file, offset, count))
        return f"{count} at {offset}"

    def sync(self):
        self.both(lambda file, path: os.fsync(file))
        return ""

    def step(self):
        return self.dice.choice([self.read] * 6 + [self.write] * 6 + [self.truncate] * 2 + [
            self.append_by_name, self.mapped_read, self.mapped_write, self.look, self.look, self.rename, self.reopen,
            self.preallocate, self.sync])


def remove_while_open(twins):
    """A file without a name stays usable until it is closed."""
    for path in twins.paths:
        os.unlink(path)
    for action in (twins.read, twins.write, twins.size, twins.read):
        action()
    twins.both(lambda file, path: os.ftruncate(file, 5000))
    twins.both(lambda file, path: os.fstat(file).st_nlink)
    twins.both(lambda file, path: os.pread(file, 10_000, 0))
    for file in twins.files:
        os.close(file)


def play(seed):
    dice = random.Random(seed)
    striped = DIRECTORY / f"striped{seed}"
    make_striped(striped, unit=dice.choice((1000, 4096, 65536)), count=dice.choice((1, 2, 3, 5)))
    plain = pathlib.Path(f"plain{seed}")
    plain.touch()
    os.chmod(plain, os.stat(striped).st_mode & 0o7777)
    twins, log = Twins(seed, MOUNT / striped.name, plain), []
    try:
        for number in range(STEPS):
            step = twins.step()
            log.append(f"{number} {step.__name__}")
            log[-1] += " " + step()
        twins.look()
        log.append("remove while open")
        remove_while_open(twins)
    except BaseException:
        print(f"seed {seed}; the last steps:", *log[-12:], sep="\n", file=sys.stderr)
        raise
    assert not list((DIRECTORY / ".shima").glob("*.[0-9]*")), "subfiles are left"


def main():
    enter()
    compile_ranks()
    with in_memory(), mounted():
        for seed in SEEDS:
            play(seed)
            print(f"seed {seed}: {STEPS} steps", flush=True)


if __name__ == "__main__":
    main()
