"""For gdb: the symbols of all tasks of a space.

    $ gdb -p PID-OF-A-TASK
    (gdb) source .../share/shima/shima-gdb.py
    (gdb) shima-tasks
    (gdb) backtrace

The debugger treats a task as a process of pvas-root, whose program and libraries it knows; pvas-root and a private
ld.so have mapped the task's own, unknown to the debugger.  shima-tasks reads the mappings, of a running
process or in a core, and adds the symbols of every program and library in every partition, or with numbers as
arguments in those of these tasks.
"""
import re

import gdb

REGION = range(16 << 40, 80 << 40)  # the partitions of spaces (src/pvas/shared/commons.h)
PARTITION = 128 << 30
MAPPING = re.compile(r"^\s*(0x[0-9a-f]+)\s+0x[0-9a-f]+\s+0x[0-9a-f]+\s+(0x[0-9a-f]+)\s+(?:[rwxps-]{4}\s+)?(/\S.*)$")


def images():
    """(task number, file, address) of the beginning of every file that is mapped in a partition."""
    for line in gdb.execute("info proc mappings", to_string=True).splitlines():
        match = MAPPING.match(line)
        if not match:
            continue
        address, offset, path = int(match[1], 16), int(match[2], 16), match[3].strip()
        if offset == 0 and address in REGION:
            yield (address - REGION.start) // PARTITION, path, address


def is_elf(path):
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


class ShimaTasks(gdb.Command):
    """Add the symbols of the tasks of a space: shima-tasks [TASK...]"""

    def __init__(self):
        super().__init__("shima-tasks", gdb.COMMAND_FILES)
        self.known = set()

    def invoke(self, arguments, _from_tty):
        wanted = {int(word) for word in arguments.split()}
        found = sorted(image for image in images() if is_elf(image[1]) and (not wanted or image[0] in wanted))
        for task, path, address in found:
            if (path, address) in self.known:
                continue
            self.known.add((path, address))
            gdb.execute(f'add-symbol-file "{path}" -o {address:#x}', to_string=True)
            print(f"task {task}: {path} at {address:#x}")
        if not found:
            print("no tasks' programs are mapped here")


ShimaTasks()
