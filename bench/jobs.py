"""From `muster run` to all children started, beside torchrun; and the memory of agents."""

import json
import subprocess
import time
from pathlib import Path

from bench.context import CannotRun, Context
from bench.job_children import Children, Started
from bench.measure import Series, interleave, run
from bench.report import Report, Row, in_unit

FEW, MANY, WATCHED = 4, 200, 20
ROUNDS_OF_FEW = 21
FEW_MS, MANY_MS, TIMES, PSS_MIB = 100.0, 5000.0, 20.0, 8.0
METHOD = f"""
Started: wall time from exec of `muster run --workers N -- child.sh` until the last of its children
has said, through a FIFO, that it runs; they end when all have said so. The child is the same script
of /bin/sh on both sides. Muster starts an agent beside each child, writes its journal to disk, and
starts the children when the ports of all are known, for TF_CONFIG; the peer is
`torchrun --standalone --nproc-per-node {FEW} --no-python child.sh`. Memory: Pss (smaps_rollup) of
the agents of a job of {WATCHED} tasks that run, without their children; a page that several
processes map counts by its share.
"""


milliseconds = in_unit("ms")
mebibytes = in_unit("MiB", 1)


def peer_command(context: Context, children: Children) -> list[str | Path]:
    python = context.peer_python("pytorch")
    return [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(FEW),
            "--no-python", children.script]  # fmt: skip


class Jobs:
    """`muster run` with a home of its own."""

    def __init__(self, context: Context):
        self.muster = context.muster
        folder = context.fresh_folder("jobs")
        self.home = str(folder / "home")
        self.children = Children(folder)

    def start(self, count: int, *flags: str) -> Started:
        command = [self.muster, "run", "--workers", str(count), *flags, "--", self.children.script]
        return Started(self.children, command, count, MUSTER_HOME=self.home)

    def start_ms(self, count: int) -> float:
        started = self.start(count)
        started.finish()
        return started.seconds * 1000

    def agents(self, name: str, count: int) -> list[int]:
        """The pids of the agents, once all say that their tasks run."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            output = run([self.muster, "status", name, "--json"], MUSTER_HOME=self.home).output
            tasks = json.loads(output)["tasks"]
            pids = [task["agent_pid"] for task in tasks if task.get("phase") == "running"]
            if len(pids) == count:
                return pids
            time.sleep(0.1)
        raise CannotRun(f"of job {name} not all {count} tasks run")

    def agents_pss(self) -> list[float]:
        """In MiB, of each agent."""
        started = self.start(WATCHED, "--name", "watched")
        sizes = [pss_mib(pid) for pid in self.agents("watched", WATCHED)]
        started.finish()
        return sizes


def pss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
        if line.startswith("Pss:"):
            return float(line.split()[1]) / 1024
    raise CannotRun(f"process {pid} has no Pss")


def peer_version(context: Context) -> str:
    words = [context.peer_python("pytorch"), "-c", "import torch; print(torch.__version__)"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def measure(context: Context, name: str) -> Report:
    jobs = Jobs(context)

    def peer_ms() -> float:
        started = Started(jobs.children, peer_command(context, jobs.children), FEW,
                          OMP_NUM_THREADS="1")  # fmt: skip
        started.finish()
        return started.seconds * 1000

    jobs.start_ms(FEW)  # what is read from disk for the first time
    peer_ms()
    few = interleave({"muster": lambda: jobs.start_ms(FEW), "torchrun": peer_ms}, ROUNDS_OF_FEW)
    many = interleave({f"{MANY} tasks": lambda: jobs.start_ms(MANY)}, context.rounds)
    pss = [jobs.agents_pss() for _ in range(context.rounds)]
    largest = Series(tuple(map(max, pss)))
    jobs.children.close()
    return Report(
        name=name,
        title="Starting jobs on one machine, against torchrun",
        method=METHOD,
        peer=f"torchrun of PyTorch {peer_version(context)}",
        unit="absolute figures",
        rows=[
            Row(f"{FEW} children started", few["muster"], few["torchrun"], TIMES, milliseconds,
                less_is_better=True),
            Row(f"{FEW} children started", few["muster"], goal=FEW_MS, form=milliseconds),
            Row(f"{MANY} tasks started", many[f"{MANY} tasks"], goal=MANY_MS, form=milliseconds),
            Row(f"Pss of the largest of {WATCHED} agents", largest, goal=PSS_MIB, form=mebibytes),
            Row(f"Pss of an agent, mean of {WATCHED}",
                Series(tuple(sum(each) / WATCHED for each in pss)), form=mebibytes),
        ],
        same=[f"The start of {FEW} was measured {ROUNDS_OF_FEW} times.",
              "Both sides ran the same script; every job ended with exit code 0."],
    )  # fmt: skip
