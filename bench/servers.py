"""Parameter servers over a unix socket: echo of frames beside raw bytes, rows pulled and pushed."""

import json

from bench import server_saves
from bench.context import CannotRun, Context
from bench.measure import Series, interleave, run
from bench.report import Report, Row, in_unit

ECHO = {64 << 10: "64 KiB", 512 << 10: "512 KiB", 4 << 20: "4 MiB"}
ECHO_GOAL = 0.8
ECHO_ONLY = "^(ThereAndBack/Unix|Raw/UnixThereAndBack)/"
BATCHES = (512, 4096, 32768)  # rows
PULLS, PUSHES = 3e6, 1.5e6  # rows a second of a core
THREADS_GOAL = 1.7  # of a server with two threads over one with one
seconds = in_unit("s", 2)
METHOD = """
Echo: as many bytes there and back between two threads, a core each: frames of our channels, which ask
for a while before they sleep as servers and workers do, and blocking calls on a socket. Rows: one worker and one server, a thread each, with a table of 4,000,000
rows of 32 floats and Adagrad (1 GB), each batch of other rows, spread over all of it; a push is there
when the server has applied it. Rows a CPU second count the CPU time of both threads together: splitting,
copying, the socket both ways, the optimizer. Threads: the rows of a server alone, without socket and worker. The
chief reads the state of one server, or of two with a half each, into its memory; no batch is applied meanwhile.
"""

Times = dict[str, dict[str, float]]  # by benchmark


def benchmarks(context: Context, program: str, only: str) -> Times:
    done = run([context.program(program), f"--benchmark_filter={only}", "--benchmark_format=json"])
    found = json.loads(done.output[done.output.index("{") :])["benchmarks"]
    for one in found:
        if one.get("error_occurred"):
            raise CannotRun(f"{program}: {one}")
    return {one["name"].split("/real_time")[0].replace("/process_time", ""): one for one in found}


def series_of(rounds: list[Times], name: str, key: str) -> Series:
    return Series(tuple(one[name][key] for one in rounds))


def per_cpu_second(rounds: list[Times], name: str, rows: int) -> Series:
    return Series(tuple(rows * 1e9 / one[name]["cpu_time"] for one in rounds))


def measure(context: Context, name: str) -> Report:
    echo, rows = [], []
    for number in range(context.rounds):
        echo.append(benchmarks(context, "muster_net_transport_benchmark", ECHO_ONLY))
        rows.append(benchmarks(context, "muster_ps_benchmark", "."))
        print(f"  round {number + 1}/{context.rounds}", flush=True)
    saves = interleave(
        {
            "servers": lambda: server_saves.save_seconds(context, servers_have_folder=True),
            "chief": lambda: server_saves.save_seconds(context, servers_have_folder=False),
        },
        context.rounds,
    )
    report = Report(
        name=name,
        title="Parameter servers over a unix socket",
        method=METHOD + server_saves.METHOD,
        peer="a raw socket; one thread; the chief",
        unit="bytes or rows a second",
    )
    for size, text in ECHO.items():
        report.rows.append(Row(
            f"echo of {text}", series_of(echo, f"ThereAndBack/Unix/{size}", "bytes_per_second"),
            series_of(echo, f"Raw/UnixThereAndBack/{size}", "bytes_per_second"), ECHO_GOAL,
        ))  # fmt: skip
    for side, what, least in (("Pull", "pulled", PULLS), ("PushAdagrad", "pushed", PUSHES)):
        for batch in BATCHES:
            each = f"{side}/{batch}"
            report.rows.append(Row(
                f"{batch} rows at a time, {what} a CPU second",
                per_cpu_second(rows, each, batch), least=least,
            ))  # fmt: skip
            report.rows.append(Row(
                f"{batch} rows at a time, {what}", series_of(rows, each, "items_per_second")
            ))  # fmt: skip
    for side, what in (("ReadRows", "read"), ("ApplyAdagrad", "updated")):
        for batch in BATCHES[1:]:
            one, two = (series_of(rows, f"{side}/{batch}/{threads}", "items_per_second") for threads in (1, 2))
            report.rows.append(Row(f"{batch} rows at a time, {what} by two threads; by one", two, one, THREADS_GOAL))
            one, two = (per_cpu_second(rows, f"{side}/{batch}/{threads}", batch) for threads in (1, 2))
            report.rows.append(Row("... a CPU second", two, one, 0.9))
    for servers in (1, 2):
        milliseconds = series_of(rows, f"SaveState/{servers}", "real_time")
        report.rows.append(Row(
            f"the chief reads 1 GB of {servers} server{'s' if servers > 1 else ''}",
            Series(tuple(each / 1000 for each in milliseconds.values)), form=seconds,
        ))  # fmt: skip
    own, chiefs = (saves[name].values for name in ("servers", "chief"))
    report.rows.append(Row(
        "a save of 1 GB of 2 servers, GB/s; by the chief", Series(tuple(1 / each for each in own)),
        Series(tuple(1 / each for each in chiefs)), server_saves.GOAL, form=lambda rate: f"{rate:.2f}",
    ))  # fmt: skip
    return report
