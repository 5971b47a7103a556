"""LAPI between hosts: a stream of small writes, and reads from a task that computes.

A stream is sent in packets of many messages; SHIMA_LAPI_GATHER=0 sends each by itself. The first read
from a task that computes shows whether that task serves others meanwhile.
"""

import two_hosts
from lib.results import HIGHER, LOWER, Sample, Verdict
from lib.section import Job, Section
from lib.places import TOOL
from lib.programs import binary

LAPI, EACH = "lapi", "lapi, one message each"
STREAM, GET = "a write of 8 B in a stream", "the first get from a task that computes"
LOOPS, COMPUTE_MS = 20, 2000
ROWS = {"stream": STREAM, "get": GET}
FACTOR, MOST_GET_US = 3, 5000


class LapiHosts(Section):
    name = "lapi_hosts"
    title = "LAPI between two hosts: a stream of small writes, and a target that computes"
    lead = ("us; stream: a write, their completion included, median of 7 rounds of 20 000; get: median of 20 loops in "
            "which the target computes for 2 s")
    limit = False
    is_warmed = False

    def skip_reason(self):
        return two_hosts.why_unavailable()

    def columns(self, context):
        return [LAPI, EACH, *(subject.name for subject in context.subjects if not subject.shima)]

    def row_names(self, context):
        return list(ROWS.values())

    def jobs(self, context):
        stock = [subject for subject in context.subjects if not subject.shima]
        get = ["get", *map(str, (LOOPS // 4, COMPUTE_MS // 4) if context.quick else (LOOPS, COMPUTE_MS))]
        for thing, arguments in (("stream", ["stream"]), ("get", get)):
            for subject in stock:
                yield Job(thing, subject.name, lambda t=thing, a=arguments, s=subject: self.measure(
                    context, t, s, [str(binary("between_hosts_mpi", s.flavour)), *a]))
            yield Job(thing, LAPI, lambda t=thing, a=arguments: self.measure_lapi(context, t, stock[0], a))
        yield Job("stream", EACH, lambda: self.measure_lapi(context, "stream", stock[0], ["stream"], SHIMA_LAPI_GATHER="0"))

    def measure_lapi(self, context, thing, starter, arguments, **environment):
        """The starter's mpiexec only starts the tasks."""
        command = ["env", *(f"{name}={value}" for name, value in environment.items()),
                   str(binary("between_hosts_lapi")), *arguments]
        return self.measure(context, thing, starter, command, [str(TOOL), "run", "--lapi"])

    def measure(self, context, thing, subject, command, before=()):
        flavour, row = subject.flavour, ROWS[thing]
        try:
            with two_hosts.TwoHosts() as hosts:
                outcome = context.measure(hosts.mpi_command(flavour.mpiexec, 2, command, before),
                                          flavour.environment() | two_hosts.ROOT_ENVIRONMENT)
        except two_hosts.Unavailable as reason:
            return [Sample(row, None, note=str(reason))]
        return [Sample(row, record["us"], "us", LOWER, outcome.problem or ("WRONG DATA" if record["wrong"] else ""))
                for record in outcome.records] or [Sample(row, None, "us", LOWER, outcome.problem or "no result")]

    def targets(self, results, context):
        together, each, get = (results.median(row, column) if row in results.samples else None
                               for row, column in ((STREAM, LAPI), (STREAM, EACH), (GET, LAPI)))
        if together and each:
            results.verdicts.append(Verdict(STREAM, LAPI, "the speed of one message each", each / together, FACTOR, HIGHER))
        if get:
            results.verdicts.append(Verdict(GET, LAPI, "5 ms", get / MOST_GET_US, 1.0, LOWER))
