"""What the membership of 1,000 replicas costs the chief."""

from typing import Any

from bench.context import CannotRun, Context
from bench.measure import Series, run
from bench.report import Report, Row, in_unit

MEMBERS = (100, 1000)
WATCH = 10  # seconds
GOAL = 5.0
METHOD = f"""
A process hosts the membership as a chief does (`bench/membership`). Another one has all members, each with its own
connection over a unix socket and its own thread, as a replica has: it connects, joins, gets its view, and then asks for
news. Once all have their views: CPU time of the host's process, all its threads, over {WATCH} seconds. Joining is the
time from the first connection to the last view, with both processes on this machine.
"""


def measure(context: Context, name: str) -> Report:
    program = context.root / "build/release/bench/membership/membership_load"
    if not program.exists():
        raise CannotRun(f"{program} is not there: build with -DMUSTER_BENCHMARKS=ON")
    percent, seconds = in_unit("%", 2), in_unit("s", 2)
    rows: list[Row] = []
    for members in MEMBERS:
        taken: dict[str, list[float]] = {"core": [], "join": []}
        for _ in range(context.rounds):
            done = run([program, str(members), str(WATCH), context.fresh_folder("membership")])
            said: dict[str, Any] = done.events()
            taken["core"].append(said["core_percent"])
            taken["join"].append(said["join_seconds"])
        goal = GOAL if members == max(MEMBERS) else None
        rows += [
            Row(f"{members} members, of one core", Series(tuple(taken["core"])), goal=goal, form=percent),
            Row("... joining", Series(tuple(taken["join"])), form=seconds),
        ]
    return Report(name=name, title="Membership of many replicas", method=METHOD, peer="", unit="absolute figures", rows=rows)
