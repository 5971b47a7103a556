#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 180
"""A process set over two hosts that share no directory: examples/pff_hosts.c on a file of two I/O nodes.

The bytes of the file are compared with what the members wrote. A member that is killed, and one that never comes, are
errors of the others.
"""

import os
import pathlib
import subprocess
import sys

SOURCE, BUILD = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"]), pathlib.Path(os.environ["SHIMA_BUILD_DIR"])
sys.path[:0] = [str(SOURCE / "tests"), str(SOURCE / "bench")]
import two_hosts
from iod_lib import KEY, SHIMA, make_key
from two_hosts import ADDRESSES, NAMES, TwoHosts, Unavailable

PORT = 7000
PIECE, ROWS = 4096, 512


def start_node(hosts, host, target):
    disk = pathlib.Path("disk").absolute()
    disk.mkdir(exist_ok=True)
    hosts.call(host, ["mount", "-t", "tmpfs", "tmpfs", str(disk)])
    hosts.call(host, ["mkdir", f"{disk}/target", f"{disk}/files"])
    node = subprocess.Popen(hosts.enter(host) + [SHIMA, "iod", "--listen", f":{PORT}", "--target", f"{target}={disk}/target",
                                                 "--directory", f"run={disk}/files", "--key", str(KEY)], stdout=subprocess.PIPE, text=True)
    assert "serving" in node.stdout.readline()
    return node


def start_members(hosts, places_of_hosts, path, meeting):
    members = [subprocess.Popen(hosts.enter(host) + ["./pff_hosts", path, meeting], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True) for host in places_of_hosts]
    return members, [member.stdout.readline() for member in members]


def tell(members, places):
    for member in members:
        member.stdin.write("".join(places))
        member.stdin.flush()
        member.stdin.close()
        member.stdin = None


def ends(members):
    said = [member.communicate(timeout=90) for member in members]
    return [member.returncode for member in members], said


def expected(count):
    rows = [bytes((i // 7 + member) % 256 for i in range(ROWS * PIECE)) for member in range(count)]
    return b"".join(rows[member][row * PIECE:(row + 1) * PIECE] for row in range(ROWS) for member in range(count))


def main():
    subprocess.run(["cc", "-std=gnu11", "-O1", "-o", "pff_hosts", SOURCE / "examples/pff_hosts.c", f"-I{SOURCE}/include",
                    f"-L{BUILD}/lib", "-lshima-pff", f"-Wl,-rpath,{BUILD}/lib"], check=True)
    make_key()
    os.environ.update(SHIMA_IOD_KEY=str(KEY), SHIMA_HINTS="striping_factor=2;striping_unit=65536",
                      SHIMA_TARGETS=":".join(f"{target}=iod://{name}:{PORT}/{target}" for target, name in zip("ab", NAMES)))
    path, meeting = f"iod://{NAMES[0]}:{PORT}/run/columns", f"{ADDRESSES[0]}:7100"
    with TwoHosts() as hosts:
        nodes = [start_node(hosts, host, target) for host, target in enumerate("ab")]
        for layout in ([0, 0, 1, 1], [1, 0, 1]):
            # The first of the array listens, so its host is the one that the others connect to.
            where = f"{ADDRESSES[layout[0]]}:7100"
            members, places = start_members(hosts, layout, path, where)
            tell(members, places)
            codes, said = ends(members)
            assert codes == [0] * len(layout), (layout, codes, said)
            stored = subprocess.run(hosts.enter(1) + [SHIMA, "cat", path], check=True, capture_output=True, timeout=60).stdout
            assert stored == expected(len(layout)), f"{layout}: other bytes than written"
            subprocess.run(hosts.enter(1) + [SHIMA, "rm", path], check=True, timeout=60)
        # One that is killed before it joins is found by its node, and all others hear of it.
        members, places = start_members(hosts, [0, 1, 1], path, meeting)
        members[2].kill()
        members[2].wait()
        tell(members[:2], places)
        codes, said = ends(members[:2])
        assert codes == [1, 1] and all("number 2" in err or "process" in err for _, err in said), (codes, said)
        for node in nodes:
            node.terminate()
            assert node.wait(60) == 0


try:
    main()
except Unavailable as reason:
    print(f"skipped: {reason}")
    sys.exit(two_hosts.SKIP)
