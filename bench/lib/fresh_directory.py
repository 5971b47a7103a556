"""Directories in which creating a file costs what it costs a user.

ext4 gives the inode of a file that was just removed to no other file for up to five minutes, and each
creation in the same block group looks at all those again: after some thousand removed files, 85 to
250 us instead of 15 to 20. A job that creates many files so pays for those that earlier jobs removed.
Directories are spread over block groups below one that has the flag TOPDIR (chattr(1)). Where a file
system does not have this flag, the directories are just new.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import struct
import tempfile

FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_TOPDIR_FL = 0x80086601, 0x40086602, 0x00020000  # linux/fs.h


def spread(directory):
    """Spreads what will be created in the directory, where the file system can."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flags = struct.unpack("l", fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, bytes(struct.calcsize("l"))))[0]
        fcntl.ioctl(descriptor, FS_IOC_SETFLAGS, struct.pack("l", flags | FS_TOPDIR_FL))
    except OSError:
        pass
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def fresh_directory(parent):
    """A new directory, which ends with the block."""
    top = pathlib.Path(parent) / "fresh"
    top.mkdir(parents=True, exist_ok=True)
    spread(top)
    made = pathlib.Path(tempfile.mkdtemp(dir=top))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
