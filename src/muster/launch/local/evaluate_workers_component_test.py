"""muster evaluate --workers: parts by processes that die, against one process."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from testbed.jobs import Jobs
from testbed.processor import has_bf16, needs_bf16
from testbed.trainings import SPEC, write_rows

ROWS = 100_000
# Means of numbers that were added up in another order; all others are the same to the bit.
SUMMED = {"average_loss", "calibration", "loss", "prediction/mean"}


class Evaluations:
    """A trained model and data in three files, which are one file too."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        folder = jobs.folder
        (folder / "spec.yaml").write_text(SPEC)
        write_rows(folder / "all.csv", ROWS)
        header, *lines = (folder / "all.csv").read_text().splitlines(keepends=True)
        for i, (begin, end) in enumerate([(0, 777), (777, 60_000), (60_000, ROWS)]):
            (folder / f"data-{i}.csv").write_text(header + "".join(lines[begin:end]))
        self.train(50)

    def train(self, steps: int, *flags: object) -> None:
        place = ("--train", "all.csv", "--model-dir", "model")
        self.jobs.ok("train", "spec.yaml", *place, "--max-steps", steps, *flags)

    def flags(self, *flags: object, data: str = "all.csv") -> list[object]:
        return ["evaluate", "--model-dir", "model", "--data", data, *flags]

    def result(self, *flags: object, data: str = "all.csv") -> dict[str, float]:
        lines = self.jobs.ok(*self.flags("--json", *flags, data=data)).splitlines()
        assert len(lines) == 1, lines  # whatever the workers say
        found = json.loads(lines[0])
        assert found.pop("event") == "evaluated"
        return found

    def fail(self, *flags: object, data: str = "all.csv") -> str:
        result = self.jobs.call(*self.flags(*flags, data=data))
        assert result.returncode in (1, 2), result.stdout
        return result.stderr

    def parts(self) -> list[pathlib.Path]:
        return sorted((self.jobs.folder / "model").glob("eval*/parts-*/part-*"))

    def check(self, got: dict[str, float], expected: dict[str, float]) -> None:
        assert list(got) == list(expected)
        for name, value in expected.items():
            near = pytest.approx(value, rel=1e-12) if name in SUMMED else value
            assert got[name] == near, name
        assert not list((self.jobs.folder / "model").glob("eval*/parts-*"))
        assert not list((self.jobs.folder / "model").glob("*.lease-*"))


@pytest.fixture
def evaluations(jobs: Jobs) -> Evaluations:
    return Evaluations(jobs)


@pytest.mark.parametrize(
    ("data", "flags"),
    [
        ("all.csv", ("--workers", 3)),
        ("data-*.csv", ("--workers", 2, "--thresholds", "0.3,0.7", "--calibration-buckets", 5)),
        ("data-*.csv", ("--workers", 4, "--batch-size", 100)),
        ("data-*.csv", ("--workers", 1)),
    ],
)
def test_the_result_is_that_of_one_process(
    evaluations: Evaluations, data: str, flags: tuple[object, ...]
) -> None:
    expected = evaluations.result(*flags[2:], data=data)
    events = set((evaluations.jobs.folder / "model/eval").iterdir())
    evaluations.check(evaluations.result(*flags, data=data), expected)
    assert len(set((evaluations.jobs.folder / "model/eval").iterdir()) - events) == 1


def test_the_result_of_bf16_is_that_of_one_process(evaluations: Evaluations) -> None:
    needs_bf16()
    expected = evaluations.result("--precision", "bf16")
    evaluations.check(evaluations.result("--precision", "bf16", "--workers", 4), expected)


def test_other_heads(evaluations: Evaluations) -> None:
    folder = evaluations.jobs.folder
    rows = (folder / "all.csv").read_text().splitlines()
    three = [rows[0]] + [f"{row[:-1]}{i % 3}" for i, row in enumerate(rows[1:])]
    (folder / "three.csv").write_text("\n".join(three) + "\n")
    for head in ("{multi_class: 3}", "regression"):
        (folder / "other.yaml").write_text(SPEC + f"head: {head}\n")
        place = ("--train", "three.csv", "--model-dir", head[1:6])
        evaluations.jobs.ok("train", "other.yaml", *place, "--max-steps", 20)
        place = ("evaluate", "--model-dir", head[1:6], "--data", "three.csv", "--json")
        expected, got = (
            json.loads(evaluations.jobs.ok(*place, *flags)) for flags in ((), ("--workers", 2))
        )
        assert list(got) == list(expected)
        for name, value in expected.items():
            assert got[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-12))


def test_events_are_those_of_one_process(evaluations: Evaluations) -> None:
    tf = pytest.importorskip("tensorflow")
    for name, flags in (("one", ()), ("two", ("--workers", 2))):
        evaluations.result("--name", name, *flags)
    values = []
    for name in ("one", "two"):
        (path,) = (evaluations.jobs.folder / f"model/eval_{name}").iterdir()
        values.append(
            {
                (event.step, value.tag): value.simple_value
                for event in tf.compat.v1.train.summary_iterator(str(path))
                for value in event.summary.value
            }
        )
    assert len(values[0]) > 5
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def task_pid(jobs: Jobs, task: int) -> int:
    """0 where it does not run."""
    for pid in jobs.processes():
        try:
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue  # it has just ended
        if f"\0evaluate\0--task\0{task}\0".encode() in command and b"agent" not in command:
            return pid
    return 0


def kill(pid: int) -> None:
    """If it runs; 0 would be this process and all of its group."""
    if pid == 0:
        return
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def killed_at_work(evaluations: Evaluations, job: str) -> str:
    """What the command printed whose worker-1 could be killed before it was done, else ""."""
    jobs = evaluations.jobs
    running = jobs.start(*evaluations.flags("--json", "--workers", 2, "--job", job))
    jobs.wait(lambda: running.poll() is not None or task_pid(jobs, 1), "for worker-1")
    kill(task_pid(jobs, 1))
    out, said = running.communicate(timeout=120)
    assert running.returncode == 0, said
    return out if "worker-1 failed: killed by SIGKILL" in said else ""


def test_a_worker_that_is_killed_goes_on(evaluations: Evaluations) -> None:
    expected = evaluations.result()
    out = next(filter(None, (killed_at_work(evaluations, f"try-{i}") for i in range(50))))
    got = json.loads(out)
    assert got.pop("event") == "evaluated"
    evaluations.check(got, expected)


def killed_altogether(evaluations: Evaluations) -> bool:
    """Whether everything could be killed when some parts, and not all, were there."""
    jobs = evaluations.jobs
    running = jobs.start(*evaluations.flags("--workers", 3, "--json"))
    jobs.wait(lambda: running.poll() is not None or evaluations.parts(), "for a part")
    kill(running.pid)
    for pid in jobs.processes():
        kill(pid)
    running.communicate(timeout=120)
    jobs.wait_nothing_runs()
    return 0 < len(evaluations.parts()) < 3


def test_the_same_command_goes_on_when_all_were_killed(evaluations: Evaluations) -> None:
    expected = evaluations.result()
    for _ in range(10):
        if killed_altogether(evaluations):
            break
        evaluations.result("--workers", 3)
    else:  # it was too quick for that: one of three alone leaves the same files
        evaluations.jobs.ok(*evaluations.flags("--workers", 3, "--task", 1))
    before = {path.name: path.stat().st_mtime_ns for path in evaluations.parts()}
    assert before
    for lease in (evaluations.jobs.folder / "model").glob("*.lease-*"):
        lease.unlink()  # of those that were killed; a training removes them
    running = evaluations.jobs.call(*evaluations.flags("--json", "--workers", 2))
    assert f"has {len(before)} of 3 parts; they stay" in running.stderr
    got = json.loads(running.stdout)
    assert got.pop("event") == "evaluated"
    evaluations.check(got, expected)


def test_a_launcher_of_ones_own(evaluations: Evaluations) -> None:
    expected = evaluations.result()
    for task in (1, 0):
        said = evaluations.jobs.ok(*evaluations.flags("--workers", 2, "--task", task))
        assert f"part {task}" in said and "auc" not in said
    assert len(evaluations.parts()) == 2
    # Nothing is left to be done, and no job is needed to say what there is.
    result = evaluations.jobs.call(*evaluations.flags("--json", "--workers", 2))
    assert "has 2 of 2 parts" in result.stderr and "job " not in result.stderr
    got = json.loads(result.stdout)
    assert got.pop("event") == "evaluated"
    evaluations.check(got, expected)


def test_more_workers_than_records(evaluations: Evaluations) -> None:
    rows = (evaluations.jobs.folder / "all.csv").read_text().splitlines()
    (evaluations.jobs.folder / "few.csv").write_text("\n".join(rows[:6]) + "\n")
    expected = evaluations.result("--batch-size", 2, data="few.csv")
    got = evaluations.result("--batch-size", 2, "--workers", 7, data="few.csv")
    evaluations.check(got, expected)


def test_other_work_has_another_folder(evaluations: Evaluations) -> None:
    task = ("--workers", 2, "--task", 0)
    evaluations.jobs.ok(*evaluations.flags(*task))
    others: list[tuple[tuple[object, ...], str]] = [
        (("--batch-size", 7), "all.csv"),
        ((), "data-*.csv"),
    ]
    if has_bf16():
        others.append((("--precision", "bf16"), "all.csv"))
    for flags, data in others:
        evaluations.jobs.ok(*evaluations.flags(*task, *flags, data=data))
    evaluations.train(60)
    evaluations.jobs.ok(*evaluations.flags(*task))
    folders = {path.parent for path in evaluations.parts()}
    assert len(evaluations.parts()) == len(folders) == len(others) + 2
    # And each is gone on with by itself.
    first = ("--workers", 2, "--checkpoint", "model/model.ckpt-50")
    assert evaluations.result(*first)["global_step"] == 50
    assert len(evaluations.parts()) == len(others) + 1


def test_a_part_that_is_broken_is_named(evaluations: Evaluations) -> None:
    for task in (0, 1):
        evaluations.jobs.ok(*evaluations.flags("--workers", 2, "--task", task))
    part = evaluations.parts()[1]
    broken = bytearray(part.read_bytes())
    broken[-20] ^= 1
    part.write_bytes(broken)
    said = evaluations.fail("--workers", 2)
    assert part.name in said and "checksum" in said and "remove it" in said
    part.unlink()
    evaluations.check(evaluations.result("--workers", 2), evaluations.result())


def test_parts_without_a_plan_are_nobodys(evaluations: Evaluations) -> None:
    evaluations.jobs.ok(*evaluations.flags("--workers", 2, "--task", 0))
    (part,) = evaluations.parts()
    (part.parent / "_parts.json").unlink()
    said = evaluations.fail("--workers", 2)
    assert part.name in said and "_parts.json" in said


@pytest.mark.parametrize(
    ("data", "flags", "words"),
    [
        ("-", ("--workers", 2), "files"),
        ("all.csv", ("--workers", 2, "--steps", 3), "--steps"),
        ("all.csv", ("--workers", 2, "--task", 2), "--task 2"),
        ("none-*.csv", ("--workers", 2), "none-*.csv"),
        ("all.csv", ("--job", "x"), "--workers"),
        ("all.csv", ("--workers", 2, "--top-k", 2), "top_k"),
        ("all.csv", ("--workers", 2, "--checkpoint", "model/model.ckpt-9"), "model.ckpt-9"),
    ],
)
def test_wrong_use_is_said(
    evaluations: Evaluations, data: str, flags: tuple[object, ...], words: str
) -> None:
    said = evaluations.fail(*flags, data=data)
    assert words in said
    assert "muster: job " not in said, "before anything starts"
    assert not evaluations.parts()


@pytest.mark.parametrize("verb", ["predict", "evaluate"])
def test_a_training_leaves_what_is_read(evaluations: Evaluations, verb: str) -> None:
    jobs = evaluations.jobs
    out = ("--out", "-") if verb == "predict" else ()
    command = [jobs.binary, verb, "--model-dir", "model", "--data", "-", *out]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=jobs.environment, cwd=jobs.folder, text=True,
    ) as reader:  # fmt: skip
        # It waits for its data.
        lease = jobs.folder / "model"
        jobs.wait(lambda: list(lease.glob("model.ckpt-50.lease-reader-*")), "for its lease")
        evaluations.train(70, "--keep-checkpoints", 1, "--save-steps", 5)
        steps = {int(re.findall(r"\d+", p.name)[0]) for p in lease.glob("model.ckpt-*.index")}
        assert steps == {50, 70}
        reader.communicate(timeout=60)
    assert not list(lease.glob("*.lease-*"))
    evaluations.train(80, "--keep-checkpoints", 1)
    assert not list(lease.glob("model.ckpt-50.index")), "nobody reads it any more"


def test_a_job_leaves_the_checkpoint_to_no_training(evaluations: Evaluations) -> None:
    jobs = evaluations.jobs
    running = jobs.start(*evaluations.flags("--workers", 2, "--json"))
    jobs.wait(lambda: task_pid(jobs, 1) or running.poll() is not None, "for worker-1")
    evaluations.train(70, "--keep-checkpoints", 1, "--save-steps", 5)
    out, said = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert json.loads(out)["global_step"] == 50
