"""Does harm to a training while it runs, however short it is."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from typing import Any, Callable

from testbed.jobs import DEADLINE
from testbed.trainings import Trainings

TRIES = 10


class Drill:
    """A training into the folder `broken`, as the job `name`."""

    def __init__(self, trainings: Trainings, name: str, flags: tuple[object, ...]) -> None:
        self._trainings = trainings
        self.name = name
        self.process = trainings.jobs.start(*trainings.flags("broken", *flags, "--job", name))

    def wait(self, what: Callable[[], object], why: str) -> None:
        """Waits until `what` returns something true, or the training is over."""
        self._trainings.jobs.wait(lambda: self.process.poll() is not None or what(), why)

    def wait_step(self, step: int) -> None:
        """Waits until there is a checkpoint of that step or a later one."""
        self.wait(lambda: self._trainings.step("broken") >= step, f"for step {step}")

    def send(self, task: str, how: signal.Signals) -> None:
        """Sends the signal as soon as the task runs."""
        self.wait(lambda: self._pid(task), f"for {task} to run")
        with contextlib.suppress(ProcessLookupError):
            if pid := self._pid(task):
                os.kill(pid, how)

    def task(self, name: str) -> dict[str, Any]:
        """Returns the task in `muster status`; empty before the job is known."""
        journal = self._trainings.jobs.home / "jobs" / self.name / "journal"
        if not journal.exists() or journal.stat().st_size == 0:
            return {}
        return self._trainings.jobs.task(self.name, name)

    def _pid(self, task: str) -> int:
        """Returns 0 if the task does not run."""
        found = self.task(task)
        return int(found.get("pid", 0)) if found.get("phase") == "running" else 0


def break_training(
    trainings: Trainings, flags: tuple[object, ...], harm: Callable[[Drill], None], sign: str
) -> tuple[int, str]:
    """Returns exit code and output of a training that `harm` has hit, as `sign` in its output
    shows.

    A training that was over before is ignored, and another one begins.
    """
    for attempt in range(TRIES):
        drill = Drill(trainings, f"broken-{attempt}", flags)
        harm(drill)
        output, errors = drill.process.communicate(timeout=2 * DEADLINE)
        if sign in output + errors:
            return drill.process.returncode, output + errors
        assert drill.process.returncode == 0, errors
        for path in (trainings.jobs.folder / "broken").iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    raise AssertionError(f"{TRIES} trainings ended without {sign!r}; the last one said:\n{errors}")


def kill_in_training(
    trainings: Trainings, flags: tuple[object, ...], victim: str, step: int = -1,
    how: signal.Signals = signal.SIGKILL,
) -> str:  # fmt: skip
    """Returns the output of a training into `broken` that succeeded although `victim` got the
    signal."""

    def harm(drill: Drill) -> None:
        drill.wait_step(step)
        drill.send(victim, how)

    code, said = break_training(trainings, flags, harm, f"{victim} failed: ")
    assert code == 0, said
    return said


def interrupt_training(trainings: Trainings, flags: tuple[object, ...]) -> None:
    """Interrupts a training into `broken` with Ctrl-C."""

    def interrupt(drill: Drill) -> None:
        drill.wait_step(0)
        drill.process.send_signal(signal.SIGINT)

    code, said = break_training(trainings, flags, interrupt, "stopped by Ctrl-C")
    assert code == 1, said
