"""How long a training stands still when one of its tasks is killed."""

import json
import os
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.context import Context, prepare_adult
from bench.measure import CommandFailed, Series, run
from bench.report import Report, Row, in_unit

RESUMES_MS = 3000.0
TELL = 20  # steps between two lines
SETTLED, AT_MOST = 0.5, 1.0  # seconds from the first line to the kill: at least, and more by chance
DEADLINE = 60.0
STEP = re.compile(rb"step (\d+): loss")
STRATEGIES = {
    "all-reduce, 3 replicas": (("--workers", "3"), ("worker-0", "chief-0")),
    "ps-sync, 2 replicas, 2 servers": (
        ("--workers", "2", "--ps", "2", "--strategy", "ps-sync"),
        ("worker-0", "chief-0", "ps-0", "ps-1"),
    ),
    "ps-async, 2 replicas, 2 servers": (("--workers", "2", "--ps", "2"), ("chief-0", "ps-0")),
}
METHOD = f"""
A training of `examples/adult/adult.yaml` at batch 512 a replica as `muster train --workers` starts it,
which tells each {TELL}th step and saves each second. Some {SETTLED} to {SETTLED + AT_MOST:g} seconds after
its first line a task gets kill -9, and is replaced. "Stands still": from the kill to the next step told,
which also after the loss of a server is that of a step trained on by all (the steps since the checkpoint
are done again). "Since its replacement was started": to the same line, from when the new process began
(/proc, in hundredths of a second). All tasks share the machine's cores.
"""

milliseconds = in_unit("ms")


class Training:
    """A job that tells its steps; killed when left."""

    def __init__(self, words: Sequence[str], home: str):
        self._environment = {**os.environ, "MUSTER_HOME": home}
        self._muster = words[0]
        self._process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=self._environment,
        )  # fmt: skip
        self._said = b""
        self._told: list[float] = []  # when each line about a step came
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> "Training":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._said += line
                if STEP.search(line):
                    self._told.append(time.monotonic())
                self._changed.notify_all()

    def told_after(self, moment: float) -> float:
        """When the first step was told after that moment."""

        def found() -> float | None:
            return next((at for at in self._told if at > moment), None)

        with self._changed:
            self._changed.wait_for(lambda: found() or self._process.poll() is not None, DEADLINE)
            if (at := found()) is None:
                said = self._said.decode(errors="replace")[-3000:]
                raise CommandFailed(f"no step was told in {DEADLINE:g} seconds:\n{said}")
            return at

    def task(self, name: str) -> dict[str, Any]:
        told = run([self._muster, "status", "recovery", "--json"], **self._environment)
        return next(t for t in json.loads(told.output)["tasks"] if t["task"] == name)


def seconds_since_start(pid: int) -> float:
    """Of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    began = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began


def kill(training: Training, victim: str, chance: random.Random) -> tuple[float, float]:
    """Milliseconds that the training stood still, and of them since the replacement was started."""
    training.told_after(time.monotonic())
    time.sleep(SETTLED + chance.uniform(0, AT_MOST))
    before = training.task(victim)
    os.kill(before["pid"], signal.SIGKILL)
    killed = time.monotonic()
    # A line that was on its way was told before.
    resumed = training.told_after(killed + 0.02)
    after = training.task(victim)
    if after["pid"] == before["pid"]:
        raise CommandFailed(f"{victim} has the process that was killed: {after}")
    since = seconds_since_start(after["pid"]) - (time.monotonic() - resumed)
    return (resumed - killed) * 1000, since * 1000


def measure(context: Context, name: str) -> Report:
    adult = prepare_adult(context)
    chance = random.Random(1)
    report = Report(name=name, title="A killed task", method=METHOD, peer="", unit="milliseconds")
    for what, (flags, victims) in STRATEGIES.items():
        for victim in victims:
            figures = [
                once(context, [*flags], adult.train, victim, chance) for _ in range(context.rounds)
            ]
            whole, since = (Series(tuple(each)) for each in zip(*figures, strict=True))
            print(f"  {what}, {victim}: {whole.text(milliseconds)}", flush=True)
            report.rows += [
                Row(f"{what}: {victim} killed, stands still", whole, form=milliseconds),
                Row("since its replacement was started", since, goal=RESUMES_MS, form=milliseconds),
            ]
    return report


def once(
    context: Context, flags: list[str], train: Path, victim: str, chance: random.Random
) -> tuple[float, float]:
    folder = context.fresh_folder("recovery")
    words = [context.muster, "train", context.root / "examples/adult/adult.yaml", "--train", train,
             "--model-dir", folder / "model", "--batch-size", "512", "--epochs", "100000",
             "--log-steps", TELL, "--save-secs", "1", "--job", "recovery", *flags]  # fmt: skip
    with Training([str(word) for word in words], str(folder / "home")) as training:
        return kill(training, victim, chance)
