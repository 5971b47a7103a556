"""NFS between machines (machines_lib.py), and MPI jobs over its clients.

    with NfsCluster("4.2") as cluster:
        done = cluster.mpi(mpiexec, 4, "./prog /nfs/file")     # ranks 0 and 1 on the first client, 2 and 3 on the second
"""

import concurrent.futures
import subprocess

from machines_lib import GUEST, NETWORK, UNPACKED, Machines

SERVER, CLIENTS = 0, (1, 2)
EXPORT, MOUNT = "/export", "/nfs"
OPENMPI_ENVIRONMENT = " ".join(f"{name}=1" for name in (
    "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"))


def mpi_command(mpiexec, ranks, command):
    """The command that starts half of the ranks on each client, for the first client's shell."""
    half = (ranks + 1) // 2
    hosts = ",".join(f"vm{client}:{count}" for client, count in zip(CLIENTS, (half, ranks - half)) if count > 0)
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True).stdout
    if "Open MPI" not in version and "OpenRTE" not in version:
        return f"{mpiexec} -launcher ssh -launcher-exec {GUEST}/ssh -hosts {hosts} -n {ranks} {command}"
    old = "(Open MPI) 4" in version or "OpenRTE" in version
    agent = "--mca plm_rsh_agent" if old else "--prtemca plm_ssh_agent"
    return f"env {OPENMPI_ENVIRONMENT} {mpiexec} --host {hosts} {agent} {GUEST}/ssh --leave-session-attached " \
           f"--map-by slot:OVERSUBSCRIBE --bind-to none -n {ranks} {command}"


class NfsCluster(Machines):
    """A server (machine 0) and two clients that mount its disk; `version` is 3 or 4.x."""

    def __init__(self, version):
        super().__init__(1 + len(CLIENTS))
        self.programs = UNPACKED / "usr" / "sbin"
        self.version = version

    def __enter__(self):
        super().__enter__()
        try:
            with concurrent.futures.ThreadPoolExecutor() as pool:
                ready = pool.submit(self.check_on, CLIENTS, self._start_rpc())
                self.serve()
                ready.result()
            self.mount_on(CLIENTS)
        except BaseException:
            self.__exit__()
            raise
        return self

    def serve(self):
        """Exports the server's disk, by both versions of the protocol; anew after each boot of the server.

        The server's records of its clients are stored on the disk too: after a power cut clients reclaim their locks.
        """
        first = self.run(SERVER, f"mkdir -p {EXPORT} && mount -t ext4 /dev/vda {EXPORT} && test -e {EXPORT}/.server").code != 0
        self.check(SERVER, "\n".join([
            "set -e", f"mkdir -p {EXPORT}/.server/v4recovery /var/lib/nfs/v4recovery /var/lib/nfs/rpc_pipefs",
            f"mount --bind {EXPORT}/.server/v4recovery /var/lib/nfs/v4recovery",
            "touch /var/lib/nfs/etab /var/lib/nfs/rmtab", f"chmod 1777 {EXPORT}",
            "mount -t nfsd nfsd /proc/fs/nfsd", "echo 10 >/proc/fs/nfsd/nfsv4gracetime",
            # Clients on a busy host may be slow.
            "echo 600 >/proc/fs/nfsd/nfsv4leasetime", self._start_rpc(),
            f"{self.programs}/exportfs -i -o rw,sync,no_root_squash,no_subtree_check,insecure,fsid=0 {NETWORK}0/24:{EXPORT}",
            f"{self.programs}/rpc.mountd >/dev/null 2>&1", f"{self.programs}/rpc.nfsd -V 4.2 --grace-time 10 4",
            # Without this the first opens and locks wait for the end of the grace time.
            "echo Y >/proc/fs/nfsd/v4_end_grace" if first else "true"]))

    def mount(self, client, version=None, at=MOUNT, more_options=""):
        version = version or self.version
        options = ",".join(filter(None, [f"vers={version}", more_options]))
        source = f"vm{SERVER}:{EXPORT if version == '3' else '/'}"
        before = f"{self._start_rpc()}; " if version == "3" else ""
        self.check(client, f"{before}mkdir -p {at} && mount -t nfs -o {options} {source} {at}")

    def mount_on(self, clients, *arguments):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda client: self.mount(client, *arguments), clients))

    def check_on(self, machines, command):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda machine: self.check(machine, command), machines))

    @staticmethod
    def _start_rpc():
        """Version 3 needs these on both sides for its locks."""
        return "mkdir -p /run/rpcbind /run/sendsigs.omit.d; pgrep rpcbind >/dev/null || rpcbind -w; " \
               "pgrep rpc.statd >/dev/null || rpc.statd --no-notify"

    def mpi(self, mpiexec, ranks, command, **options):
        return self.run(CLIENTS[0], mpi_command(mpiexec, ranks, command), **options)
