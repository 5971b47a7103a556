"""The initramfs of a guest: busybox, the kernel modules that it needs in load order, guest/init."""

import pathlib
import shutil

BASE_MODULES = ["virtio_pci", "virtiofs", "overlay", "virtio_net", "virtio_blk"]
MODULES_OF_ROLE = {"server": [*BASE_MODULES, "nfsd"], "client": [*BASE_MODULES, "nfsv4", "nfsv3"]}
TOOLS = "sh cat mount mkdir insmod ip cp echo switch_root poweroff".split()
DIRECTORIES = "bin dev proc sys m ro rw new".split()


def module_name(file):
    return pathlib.Path(file).name.removesuffix(".ko").replace("-", "_")


class Modules:
    """The modules of a kernel and their dependencies, from its modules.dep."""

    def __init__(self, directory):
        self.path, self.needs = {}, {}
        for line in (directory / "modules.dep").read_text().splitlines():
            file, _, needed = line.partition(":")
            self.path[module_name(file)] = directory / file
            self.needs[module_name(file)] = [module_name(other) for other in needed.split()]

    def in_order(self, wanted):
        """The wanted modules, each after its dependencies; a missing one is built in."""
        order = []

        def add(name):
            if name in order or name not in self.path:
                return
            for other in reversed(self.needs[name]):
                add(other)
            order.append(name)

        for name in wanted:
            add(name)
        return order


def archive(entries):
    """A cpio archive (newc) of entries (name, mode, bytes)."""
    out = bytearray()
    for inode, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        encoded = name.encode() + b"\0"
        fields = [inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0]
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        out += b"\0" * (-len(out) % 4) + data
        out += b"\0" * (-len(out) % 4)
    return bytes(out)


def initramfs(modules_directory, init, hosts):
    entries = [(name, 0o40755, b"") for name in DIRECTORIES]
    entries.append(("bin/busybox", 0o100755, pathlib.Path(shutil.which("busybox")).resolve().read_bytes()))
    entries += [(f"bin/{tool}", 0o120777, b"busybox") for tool in TOOLS]
    entries += [("init", 0o100755, init), ("hosts", 0o100644, hosts.encode())]
    modules = Modules(modules_directory)
    packed = set()
    for role, wanted in MODULES_OF_ROLE.items():
        order = modules.in_order(wanted)
        entries.append((f"modules.{role}", 0o100644, (" ".join(order) + "\n").encode()))
        entries += [(f"m/{name}.ko", 0o100644, modules.path[name].read_bytes()) for name in order if name not in packed]
        packed.update(order)
    return archive(entries)
