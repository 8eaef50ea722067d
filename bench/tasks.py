"""The tasks of one training, each a process, and what they cost between two of its steps."""

import json
import os
import re
import secrets
import selectors
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measure import CommandFailed

DEADLINE = 300.0  # for a training, in seconds
TICKS = os.sysconf("SC_CLK_TCK")
STEP = re.compile(rb"step (\d+):")  # as --log-steps writes it, and the peer


@dataclass(frozen=True)
class Task:
    """`core`: where all its threads run; None for all cores."""

    name: str  # chief-0
    command: Sequence[str | Path]
    core: int | None = None
    serves: bool = False  # ends when it is told to, not by itself

    def words(self) -> list[str]:
        bound = [] if self.core is None else ["taskset", "-c", str(self.core)]
        return [*bound, *map(str, self.command)]


@dataclass(frozen=True)
class Mark:
    step: int
    seconds: float
    cpu_seconds: dict[str, float]  # by task


@dataclass(frozen=True)
class Cost:
    """Of all tasks together from one step to another."""

    steps: int
    seconds: float
    cpu_seconds: float
    peak_mib: dict[str, float]  # by task, from its start to the second step


def cluster_of(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """TF_CONFIG, and a key and a name of the job, for each of the tasks."""
    addresses: dict[str, list[str]] = {}
    sockets = []
    for name in names:
        one = socket.create_server(("127.0.0.1", 0))
        sockets.append(one)
        addresses.setdefault(name.split("-")[0], []).append(f"127.0.0.1:{one.getsockname()[1]}")
    for one in sockets:
        one.close()
    environments = {}
    for name in names:
        kind, _, index = name.partition("-")
        task = {"type": kind, "index": int(index)}
        environments[name] = {"TF_CONFIG": json.dumps({"cluster": addresses, "task": task})}
    return environments


def write_key(folder: Path) -> Path:
    path = folder / "key"
    path.write_text(secrets.token_hex(32), encoding="utf-8")
    path.chmod(0o600)
    return path


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS  # of all its threads


def peak_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) / 1024
    raise CommandFailed(f"process {pid} has no VmHWM")


class CameLate(CommandFailed):
    """The task that speaks started when the others had trained everything."""


class Training:
    """Runs the tasks; the first one says on stderr or stdout which step is done."""

    def __init__(self, folder: Path, tasks: Sequence[Task], **environment: str):
        self.folder, self.tasks = folder, tasks
        self.started = time.monotonic()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        several = cluster_of([task.name for task in tasks]) if len(tasks) > 1 else {}
        for task in tasks:
            with open(folder / f"{task.name}.log", "wb") as log:
                said = subprocess.PIPE if task is tasks[0] else log
                self.processes[task.name] = subprocess.Popen(
                    task.words(), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                    env={**os.environ, **environment, **several.get(task.name, {})},
                )  # fmt: skip

    def __enter__(self) -> "Training":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def cost(self, first: int, last: int) -> Cost:
        """Between the first marks at or after these steps; then waits for the end."""
        speaker = self.processes[self.tasks[0].name]
        assert speaker.stdout is not None and speaker.stderr is not None
        marks: list[Mark] = []
        peaks: dict[str, float] = {}
        tail = b""
        selector = selectors.DefaultSelector()
        for pipe in (speaker.stdout, speaker.stderr):
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ)
        end = time.monotonic() + DEADLINE
        while selector.get_map():
            ready = selector.select(end - time.monotonic())
            if not ready:
                raise self.failure(f"not at step {last} after {DEADLINE:.0f} s", tail)
            for key, _ in ready:
                pipe = key.fileobj
                said = os.read(key.fd, 65536)
                if not said:
                    selector.unregister(pipe)
                    continue
                tail = (tail + said)[-4000:]
                for found in STEP.finditer(said):
                    step = int(found[1])
                    wanted = (first, last)[len(marks)] if len(marks) < 2 else None
                    if wanted is not None and step >= wanted:
                        marks.append(self.mark(step))
                        if len(marks) == 2:
                            peaks = self.peaks()
        if len(marks) < 2:
            failure = self.failure(f"ended before step {last}", tail)
            raise CameLate(str(failure)) if b"Nothing left to do" in tail else failure
        self.finish(end, tail)
        begun, done = marks
        spent = sum(done.cpu_seconds.values()) - sum(begun.cpu_seconds.values())
        return Cost(done.step - begun.step, done.seconds - begun.seconds, spent, peaks)

    def seconds(self) -> float:
        """From the start to the end of the last task."""
        speaker = self.processes[self.tasks[0].name]
        out, err = speaker.communicate(timeout=DEADLINE)
        self.finish(self.started + DEADLINE, out + err)
        return time.monotonic() - self.started

    def mark(self, step: int) -> Mark:
        costs = {name: cpu_seconds(process.pid) for name, process in self.processes.items()}
        return Mark(step, time.monotonic(), costs)

    def peaks(self) -> dict[str, float]:
        return {name: peak_mib(process.pid) for name, process in self.processes.items()}

    def finish(self, end: float, tail: bytes) -> None:
        for task in self.tasks:
            process = self.processes[task.name]
            if task.serves:
                continue
            if process.wait(max(end - time.monotonic(), 1)) != 0:
                raise self.failure(f"{task.name}: exit code {process.returncode}", tail)

    def failure(self, what: str, tail: bytes) -> CommandFailed:
        texts = [what, tail.decode(errors="replace")]
        for task in self.tasks[1:]:
            log = (self.folder / f"{task.name}.log").read_text("utf-8", "replace")[-2000:]
            texts.append(f"--- {task.name}\n{log}")
        return CommandFailed("\n".join(texts))
