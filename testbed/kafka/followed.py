"""Trainings that follow a topic in the background."""

from __future__ import annotations

import contextlib
import json
import pathlib
import shutil
import signal
import subprocess
from typing import Any, Iterator

import pytest

from testbed.kafka.clicks import train
from testbed.waiting import wait

FOLLOW = ("--follow", "--follow-secs", 3)


class Followed:
    """A training in the background, with the progress that it has told as JSON, of a job after its chief's name."""

    def __init__(self, process: subprocess.Popen[bytes], errors: pathlib.Path):
        self.process, self.errors = process, errors

    def text(self) -> str:
        return self.errors.read_text()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, dict[str, Any]]:
        """The exit code, and what the training says at its end."""
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=120)
        ends = [json.loads(line[line.index(b"{") :]) for line in out.splitlines() if b'"trained"' in line]
        return self.process.returncode, ends[0] if ends else {}

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(120)


@pytest.fixture
def follow(muster, local, tmp_path) -> Iterator[Any]:
    """Begins trainings, which end with the test."""
    with contextlib.ExitStack() as ends:

        def begin(model: str, name: object, *flags: object) -> Followed:
            errors = tmp_path / f"errors-{len(list(tmp_path.glob('errors-*')))}"
            command = train(local, tmp_path / model, name, *FOLLOW, "--json", *flags)
            process = subprocess.Popen([muster.binary, *map(str, command)], stdout=subprocess.PIPE,
                                       stderr=open(errors, "wb"))  # fmt: skip
            ends.callback(process.wait)
            ends.callback(process.kill)
            return Followed(process, errors)

        yield begin


def segments(model: pathlib.Path) -> list[list[str]]:
    record = model / "stream" / "segments-000000.json"
    return json.loads(record.read_text()) if record.exists() else []


def offsets(segment: list[str]) -> int:
    """The offsets of a segment of one topic."""
    ranges = segment[0].partition("ranges=")[2].partition("&")[0].split(",")
    bounds = [each.partition(":")[2].split("-") for each in ranges]
    return sum(int(end) - int(begin) for begin, end in bounds)


def wait_for_segments(run: Followed, model: pathlib.Path, count: int) -> None:
    def have_begun() -> bool:
        assert run.process.poll() is None, run.text()
        return len(segments(model)) >= count

    wait(have_begun, f"segment {count}: {run.text()}")


def has_saved(model: pathlib.Path, step: int) -> bool:
    """Whether a checkpoint has at least this step."""
    return any(int(path.stem.rpartition("-")[2]) >= step for path in model.glob("model.ckpt-*.index"))


def copy_segments(model: pathlib.Path, other: pathlib.Path) -> None:
    """Another training, which has not begun, will have the same segments."""
    (other / "stream").mkdir(parents=True)
    shutil.copy(model / "stream" / "segments-000000.json", other / "stream")


def wait_for_step(run: Followed, model: pathlib.Path, step: int) -> None:
    """Until a checkpoint has at least this step."""

    def is_saved() -> bool:
        assert run.process.poll() is None, run.text()
        return has_saved(model, step)

    wait(is_saved, f"step {step}: {run.text()}")
