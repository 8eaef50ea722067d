"""muster predict --workers: parts by processes that die, against one process."""

from __future__ import annotations

import os
import pathlib
import signal

import pytest

from testbed.jobs import Jobs
from testbed.trainings import SPEC, write_rows

ROWS = 300_000


class Predictions:
    """A trained model and data in four files, which are one file too."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        folder = jobs.folder
        (folder / "spec.yaml").write_text(SPEC.replace("inputs: {", "key: id\ninputs: {id: int, "))
        write_rows(folder / "all.csv", ROWS, with_id=True)
        header, *lines = (folder / "all.csv").read_text().splitlines(keepends=True)
        for i in range(4):
            part = lines[i * ROWS // 4 : (i + 1) * ROWS // 4]
            (folder / f"data-{i}.csv").write_text(header + "".join(part))
        flags = ("--train", "all.csv", "--max-steps", 50)
        jobs.ok("train", "spec.yaml", *flags, "--model-dir", "model")

    def flags(self, data: str, out: str, *flags: object) -> list[object]:
        return ["predict", "--model-dir", "model", "--data", data, "--out", out, *flags]

    def ok(self, data: str, out: str, *flags: object) -> str:
        return self.jobs.ok(*self.flags(data, out, *flags))

    def one(self) -> list[str]:
        """By one process: the header, then a line a row."""
        self.ok("all.csv", "one.csv")
        return (self.jobs.folder / "one.csv").read_text().splitlines()

    def parts(self, out: str) -> list[pathlib.Path]:
        return sorted((self.jobs.folder / out).glob("part-*"))

    def check(self, out: str, count: int) -> None:
        """Its parts are what one process makes: every row once, in its order."""
        header, *expected = self.one()
        rows = []
        for part in self.parts(out):
            first, *lines = part.read_text().splitlines()
            assert first == header
            rows += lines
        assert [path.name for path in self.parts(out)] == [
            f"part-{i:05}-of-{count:05}.csv" for i in range(count)
        ]
        assert rows == expected
        assert not list((self.jobs.folder / out).glob(".*"))


@pytest.fixture
def predictions(jobs: Jobs) -> Predictions:
    return Predictions(jobs)


@pytest.mark.parametrize(("data", "workers", "parts"), [("data-*.csv", 2, 4), ("all.csv", 3, 3)])
def test_parts_are_what_one_process_makes(
    predictions: Predictions, data: str, workers: int, parts: int
) -> None:
    predictions.ok(data, "out", "--workers", workers)
    predictions.check("out", parts)


def kill_worker_1(jobs: Jobs) -> None:
    """If it runs."""
    for pid in jobs.processes():
        try:
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"\0predict\0--task\x001\0" in command:
                os.kill(pid, signal.SIGKILL)
        except OSError:
            pass  # it has just ended


def killed_in_its_part(predictions: Predictions, out: str) -> bool:
    """Whether worker-1 could be killed before its part was ready."""
    jobs = predictions.jobs
    running = jobs.start(*predictions.flags("all.csv", out, "--workers", 2, "--job", out))
    part = ".part-00001-of-00002.csv.tmp-*"
    jobs.wait(lambda: running.poll() is not None or list((jobs.folder / out).glob(part)), part)
    kill_worker_1(jobs)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 0, said
    return "worker-1 failed: killed by SIGKILL" in said


def test_a_worker_that_is_killed_goes_on(predictions: Predictions) -> None:
    tries = (f"out-{i}" for i in range(50))  # a part is made in a tenth of a second
    out = next(out for out in tries if killed_in_its_part(predictions, out))
    predictions.check(out, 2)


def test_the_same_command_makes_what_is_missing(predictions: Predictions) -> None:
    flags = ("--workers", 2)
    predictions.ok("data-*.csv", "out", *flags)
    before = {path.name: path.stat().st_mtime_ns for path in predictions.parts("out")}
    (predictions.jobs.folder / "out/part-00002-of-00004.csv").unlink()
    predictions.ok("data-*.csv", "out", "--workers", 3)
    predictions.check("out", 4)
    after = {path.name: path.stat().st_mtime_ns for path in predictions.parts("out")}
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"part-00002-of-00004.csv"}


def test_one_worker_needs_no_job(predictions: Predictions) -> None:
    predictions.ok("all.csv", "out", "--workers", 1)
    predictions.check("out", 1)


def test_a_launcher_of_ones_own(predictions: Predictions) -> None:
    for task in (1, 0):
        predictions.ok("data-*.csv", "out", "--workers", 2, "--task", task)
    predictions.check("out", 4)


def test_another_model_is_refused(predictions: Predictions) -> None:
    predictions.ok("data-*.csv", "out", "--workers", 2)
    flags = ("--train", "all.csv", "--max-steps", 60)
    predictions.jobs.ok("train", "spec.yaml", *flags, "--model-dir", "model")
    result = predictions.jobs.call(*predictions.flags("data-*.csv", "out", "--workers", 2))
    assert result.returncode == 1
    assert "--checkpoint model/model.ckpt-50" in result.stderr
    predictions.ok("data-*.csv", "out", "--workers", 2, "--checkpoint", "model/model.ckpt-50")


@pytest.mark.parametrize(
    ("data", "out", "flags", "words"),
    [
        ("-", "out", ("--workers", 2), "files"),
        ("all.csv", "-", ("--workers", 2), "folder"),
        ("all.csv", "out", ("--workers", 2, "--task", 2), "--task 2"),
        ("none-*.csv", "out", ("--workers", 2), "none-*.csv"),
        ("all.csv", "out.csv", ("--job", "x"), "--workers"),
    ],
)
def test_wrong_use_is_said_before_anything_starts(
    predictions: Predictions, data: str, out: str, flags: tuple[object, ...], words: str
) -> None:
    result = predictions.jobs.call(*predictions.flags(data, out, *flags))
    assert result.returncode in (1, 2)
    assert words in result.stderr
    assert not (predictions.jobs.folder / out).exists()
