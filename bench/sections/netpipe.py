"""NetPIPE's ping-pong by LAPI, beside its modules for MPI (stock) and TCP, on one host and over two.

NetPIPE is an independent benchmark; its LAPI module is compiled unmodified against lapi.h. A line of its
output has a message's bytes, the throughput in Mbit/s and the time of one way in seconds. It chooses itself how
often it repeats the message whose latency is judged (for a quarter of a second). The other sizes are repeated
200 times; the latency of these few milliseconds is shown, too: in them the kernel keeps tasks that wake each
other on one core.
"""

import pathlib
import subprocess

import two_hosts
from lib import places
from lib.results import HIGHER, LOWER, Sample, Verdict
from lib.section import Job, Section

PLACE = places.ROOT / "build/bench/netpipe"
LIBRARIES = places.PREFIX / "lib"
LARGE, MOST = 65536, 1 << 20
WHERE = ("two cores", "one core", "two hosts")
FIGURES = ("latency", "64 KiB", "1 MiB")  # these are judged
FIRST = "latency at first"
LAPI, SPACE, TCP = "lapi", "lapi, one space", "tcp"


def fetch():
    """NetPIPE's sources; or why there are none."""
    found = list(PLACE.glob("NetPIPE-*/src"))
    if found:
        return found[0], None
    PLACE.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([str(places.ROOT / "scripts/fetch_netpipe")], cwd=PLACE, capture_output=True, text=True)
    last = (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1]
    return (pathlib.Path(last), None) if done.returncode == 0 else (None, last)


def build(name, compiler, sources, *more):
    target = PLACE / name
    if not target.exists():
        subprocess.run([compiler, "-O2", "-w", *map(str, sources), "-o", str(target), *more], check=True)
    return str(target)


class NetPipe(Section):
    name = "netpipe"
    title = "NetPIPE's ping-pong: LAPI beside MPI and TCP"
    lead = "us one way of the smallest message; MiB/s of large ones. MPI: the stock MPIs' own messages"
    limit = False
    is_warmed = False

    def skip_reason(self):
        self.sources, reason = fetch()
        return reason

    def columns(self, context):
        return [LAPI, SPACE, TCP, *(subject.name for subject in context.subjects if not subject.shima)]

    def row_names(self, context):
        return [f"{where}, {figure}" for where in WHERE for figure in (*FIGURES, FIRST)]

    def programs(self, context):
        source = self.sources
        main = source / "netpipe.c"
        tcp = build("NPtcp", "cc", [main, source / "tcp.c"], "-DTCP", f"-I{source}")
        lapi = build("NPlapi", "cc", [main, source / "lapi.c"], "-DLAPI", f"-I{source}", f"-I{places.ROOT}/include",
                     f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", "-llapi")
        mpi = {subject: build(f"NPmpi.{subject.name}", subject.flavour.mpicc, [main, source / "mpi.c"], "-DMPI", f"-I{source}")
               for subject in context.subjects if not subject.shima}
        return tcp, lapi, mpi

    def jobs(self, context):
        tcp, lapi, mpi = self.programs(context)
        tool = str(places.TOOL)
        for where in WHERE[:2]:
            core = ["taskset", "-c", "0"] if where == "one core" else []
            yield Job(where, LAPI, lambda w=where, c=core: self.measure(context, w, [*c, tool, "run", "--lapi", "-n", "2", lapi]))
            yield Job(where, SPACE, lambda w=where, c=core: self.measure(
                context, w, [*c, tool, "run", "--lapi", "--one-space", "-n", "2", lapi]))
            yield Job(where, TCP, lambda w=where, c=core: self.measure_tcp(context, w, c, c, tcp))
            for subject, program in mpi.items():
                yield Job(where, subject.name, lambda w=where, c=core, s=subject, p=program: self.measure(
                    context, w, [*c, *s.flavour.launch(2), p], s.flavour.environment()))
        if two_hosts.why_unavailable() is None:
            yield Job("two hosts", TCP, lambda: self.over_hosts(context, lambda hosts: self.measure_tcp(
                context, "two hosts", hosts.enter(0), hosts.enter(1), tcp, two_hosts.ADDRESSES[1])))
            for subject, program in mpi.items():
                yield Job("two hosts", subject.name, lambda s=subject, p=program: self.over_hosts(
                    context, lambda hosts: self.measure(context, "two hosts", hosts.mpi_command(s.flavour.mpiexec, 2, [p]),
                                                        s.flavour.environment() | two_hosts.ROOT_ENVIRONMENT)))
            starter = next(iter(mpi))  # the launcher only starts the tasks
            yield Job("two hosts", LAPI, lambda s=starter: self.over_hosts(
                context, lambda hosts: self.measure(
                    context, "two hosts", hosts.mpi_command(s.flavour.mpiexec, 2, [lapi], before=[tool, "run", "--lapi"]),
                    s.flavour.environment() | two_hosts.ROOT_ENVIRONMENT)))

    def over_hosts(self, context, measure):
        try:
            with two_hosts.TwoHosts() as hosts:
                return measure(hosts)
        except two_hosts.Unavailable as reason:
            return [Sample(f"two hosts, {figure}", None, note=str(reason)) for figure in FIGURES]

    def runs(self, context, where):
        """The arguments of the run of the latency, and of that of all sizes."""
        # MPIs spin: on one core a message takes a time slice.
        repeats = 20 if where == "one core" else 200
        return ["-l", "1", "-u", "1"], ["-u", str(MOST), "-n", str(repeats // 10 if context.quick else repeats)]

    def measure(self, context, where, command, environment=None):
        return self.samples(context, where, lambda arguments: context.measure([*map(str, command), *arguments], environment).problem)

    def measure_tcp(self, context, where, receiver, sender, program, address="127.0.0.1"):
        place = two_hosts.ADDRESSES[0] if where == "two hosts" else address
        return self.samples(context, where, lambda arguments: self.run_tcp(context, receiver, sender, program, place, arguments))

    def run_tcp(self, context, receiver, sender, program, place, arguments):
        """The receiver is the first host's, or this one's; both ends have the same arguments."""
        far = subprocess.Popen([*receiver, program, *arguments[:-1], "/dev/null"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            outcome = context.measure([*sender, "sh", "-c", 'sleep 0.5; exec "$@"', "sh", program, "-h", place, *arguments])
        finally:
            far.kill()
            far.wait()
        return outcome.problem

    def samples(self, context, where, run):
        """`run` runs NetPIPE with arguments, and returns what has gone wrong."""
        path = context.directory / "np.out"
        problem, by_size = "", []
        for arguments in self.runs(context, where):
            problem = run([*arguments, "-o", str(path)]) or problem
            lines = [list(map(float, line.split())) for line in path.read_text().splitlines()] if path.exists() else []
            path.unlink(missing_ok=True)
            by_size.append({int(line[0]): line for line in lines if len(line) >= 3})
        if not all(by_size):
            return [Sample(f"{where}, {figure}", None, problem=problem or "no result") for figure in (*FIGURES, FIRST)]
        latency, first = (sizes[min(sizes)][2] * 1e6 for sizes in by_size)
        rates = {size: line[1] / 8 * 1e6 / 2**20 for size, line in by_size[1].items() if size in (LARGE, MOST)}
        return [Sample(f"{where}, latency", latency, "us", LOWER, problem),
                Sample(f"{where}, 64 KiB", rates.get(LARGE), problem=problem),
                Sample(f"{where}, 1 MiB", rates.get(MOST), problem=problem),
                Sample(f"{where}, {FIRST}", first, "us", LOWER, problem)]

    def targets(self, results, context):
        stock = results.stock()
        for where, column, slower, faster, what, others in (
                ("two cores", LAPI, 1.5, 0.9, "the better NPmpi", stock), ("two cores", SPACE, 1.0, 1.0, "the better NPmpi", stock),
                ("two hosts", LAPI, 1.5, 0.9, "NPtcp", [TCP])):
            for figure in FIGURES:
                needed, better = (slower, LOWER) if figure == FIGURES[0] else (faster, HIGHER)
                self.judge(results, Verdict(f"{where}, {figure}", column, what, 0, needed, better), others)
        self.judge(results, Verdict("one core, latency", LAPI, "NPtcp", 0, 1.0, LOWER), [TCP])

    def judge(self, results, verdict, others):
        if verdict.row not in results.samples:
            return
        value = results.median(verdict.row, verdict.subject)
        reference = results.best_median([verdict.row], others, verdict.better)
        if value and reference:
            verdict.ratio = value / reference
            results.verdicts.append(verdict)
