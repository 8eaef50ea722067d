"""What a coordinator of 1,000 agents costs, and one decision about 1,000 tasks."""

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.context import CannotRun, Context
from bench.measure import Series, run
from bench.report import Report, Row, in_unit
from bench.simulated_agents import Agents

AGENTS = 1000
CORE_PERCENT, PASS_MS = 10.0, 1.0
SETTLE, WATCH = 3.0, 20.0  # seconds
MEETING = 60.0  # seconds, for all agents to be told to start
PASSES = {
    "FirstPass": "all are started",
    "AllStarting": "all start",
    "AllRunning": "all run",
    "GangRestart": "one has failed, all are stopped to start again",
    "AllFailed": "all have failed, each is started again",
}
METHOD = f"""
A coordinator of a job of {AGENTS} workers in a process of its own, with journal and token, over
loopback; its launcher starts nothing. Another process speaks for the agents, each over a connection
of its own and as `muster agent` does: a report waits at the coordinator for news, up to a second,
and the next one follows. That they meet is from the first connection until the last one is told to
start, with the addresses of all. Once all run: CPU time of the coordinator's process, all its
threads, over {WATCH:.0f} seconds. Decisions: one call of `Reconcile` for a job of {AGENTS} replicas
(a chief, 10 parameter servers, workers), CPU time by Google Benchmark.
"""


percent = in_unit("%", 1)
milliseconds = in_unit("ms", 3)
whole_milliseconds = in_unit("ms")
mebibytes = in_unit("MiB")


def plain(value: float) -> str:
    return f"{value:.0f}"


@contextmanager
def coordinator(context: Context) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    program = context.root / "build/release/bench/coordinator/coordinator_alone"
    if not program.exists():
        raise CannotRun(f"{program} is not there: build with -DMUSTER_BENCHMARKS=ON")
    words = [program, context.fresh_folder("coordinator"), str(AGENTS)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def meet(agents: Agents) -> None:
    deadline = time.monotonic() + MEETING
    while agents.running() < AGENTS:
        if time.monotonic() > deadline:
            raise CannotRun(f"{agents.running()} of {AGENTS} agents were told to start; "
                            f"{agents.problem()}")  # fmt: skip
        await asyncio.sleep(0.05)


async def watch(pid: int, address: dict[str, str]) -> dict[str, float]:
    url = urlsplit(address["url"])
    token = Path(address["token_file"]).read_text(encoding="utf-8").strip()
    agents = Agents(AGENTS)
    begin, cpu = time.monotonic(), cpu_seconds(pid)
    await agents.connect(str(url.hostname), int(url.port or 0), token)
    await meet(agents)
    result = {"met": time.monotonic() - begin, "met_cpu": cpu_seconds(pid) - cpu}
    await asyncio.sleep(SETTLE)
    begin, cpu, beats = time.monotonic(), cpu_seconds(pid), agents.heartbeats
    await asyncio.sleep(WATCH)
    seconds = time.monotonic() - begin
    result |= {"percent": 100 * (cpu_seconds(pid) - cpu) / seconds,
               "beats": (agents.heartbeats - beats) / seconds,
               "resident": resident_mib(pid)}  # fmt: skip
    if problem := agents.problem():
        raise CannotRun(f"an agent was not answered well: {problem}")
    agents.close()
    return result


def one_round(context: Context) -> dict[str, float]:
    with coordinator(context) as (process, address):
        try:
            result = asyncio.run(watch(process.pid, address))
        finally:
            assert process.stdin is not None
            process.stdin.close()
    print(f"  {AGENTS} agents: {result}", flush=True)
    return result


def reconcile_rows(context: Context) -> list[Row]:
    program = context.program("muster_job_benchmark")
    done = run([program, "--benchmark_format=json", f"--benchmark_repetitions={context.rounds}"])
    found: list[dict[str, Any]] = json.loads(done.output[done.output.index("{") :])["benchmarks"]
    rows = []
    for name, what in PASSES.items():
        times = Series(tuple(
            one["cpu_time"] / 1e6 for one in found
            if one["name"].startswith(name + "/") and one["run_type"] == "iteration"
        ))  # fmt: skip
        rows.append(Row(f"Reconcile: {what}", times, goal=PASS_MS, form=milliseconds))
    return rows


def measure(context: Context, name: str) -> Report:
    rounds = [one_round(context) for _ in range(context.rounds)]

    def series(key: str, scale: float = 1.0) -> Series:
        return Series(tuple(one[key] * scale for one in rounds))

    return Report(
        name=name,
        title="The coordinator of a large job",
        method=METHOD,
        peer="",
        unit="absolute figures",
        rows=[
            Row(f"{AGENTS} agents that run, of one core", series("percent"), goal=CORE_PERCENT,
                form=percent),
            Row("heartbeats a second, all together", series("beats"), form=plain),
            Row("resident", series("resident"), form=mebibytes),
            Row(f"{AGENTS} agents meet", series("met", 1000), form=whole_milliseconds),
            Row("... the coordinator's CPU time", series("met_cpu", 1000), form=whole_milliseconds),
            *reconcile_rows(context),
        ],
    )  # fmt: skip
