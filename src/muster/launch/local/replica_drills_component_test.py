"""Replicas and chiefs that are stopped, replaced and woken; two trainings of one model folder; a
full disk."""

from __future__ import annotations

import contextlib
import hashlib
import pathlib
import random
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from testbed import small_disk
from testbed.drills import Drill, break_training, kill_in_training
from testbed.jobs import DEADLINE
from testbed.trainings import Trainings


@pytest.mark.parametrize("victim", ["worker-0", "chief-0"])
def test_a_stopped_replica_is_replaced_and_changes_no_byte(
    trainings: Trainings, victim: str
) -> None:
    flags = ("--workers", 3, "--epochs", 150, "--save-secs", 0)
    trainings.ok("unbroken", *flags)
    said = kill_in_training(trainings, flags, victim, how=signal.SIGSTOP)
    assert f"{victim} failed: was stopped (SIGSTOP) for 10s, and was killed" in said
    assert trainings.weights("broken") == trainings.weights("unbroken")


@pytest.mark.parametrize("victim", ["worker-0", "chief-0"])
def test_a_killed_replica_changes_no_byte_where_features_are_compiled(
    trainings: Trainings, victim: str
) -> None:
    flags = ("--workers", 3, "--epochs", 150, "--save-secs", 0)
    trainings.ok("unbroken", *flags)
    cache = trainings.jobs.folder / "cache"
    kill_in_training(trainings, (*flags, "--cache", cache), victim)
    assert trainings.weights("broken") == trainings.weights("unbroken")
    assert any(file.suffix == ".features" for file in cache.iterdir())


class Sleeper:
    """A chief that a launcher starts a second time while the first sleeps."""

    def __init__(self, trainings: Trainings) -> None:
        self.trainings = trainings
        self.model = trainings.jobs.folder / "model"

    def start(self, incarnation: int, *flags: object) -> subprocess.Popen[str]:
        environment = self.trainings.jobs.environment
        environment |= {"MUSTER_JOB": "drill", "MUSTER_INCARNATION": str(incarnation)}
        endless = ("--epochs", 1_000_000, "--save-steps", 100)
        return self.trainings.jobs.start(*self.trainings.flags("model", *endless, *flags))

    def events(self) -> set[pathlib.Path]:
        return set(self.model.glob("events.out.*"))

    def files(self, but: set[pathlib.Path]) -> dict[pathlib.Path, str]:
        return {
            path: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.model.rglob("*")
            if path.is_file() and path not in but
        }


def test_a_chief_that_slept_finds_itself_fenced_and_changes_nothing(trainings: Trainings) -> None:
    sleeper = Sleeper(trainings)
    seed = random.SystemRandom().randrange(1000)
    print(f"seed {seed}")
    first = sleeper.start(1)
    trainings.jobs.wait((sleeper.model / "checkpoint").exists, "for a checkpoint")
    time.sleep(random.Random(seed).uniform(0, 0.2))  # Stopped at any moment, in a save too.
    first.send_signal(signal.SIGSTOP)
    # One write into its own event file that it was just about to do may still come.
    own = sleeper.events()
    second = sleeper.start(2, "--max-steps", 20_000)
    _, said = second.communicate(timeout=DEADLINE)
    assert second.returncode == 0, said
    before = sleeper.files(but=own)
    first.send_signal(signal.SIGCONT)
    _, said = first.communicate(timeout=DEADLINE)
    assert first.returncode == 1, said
    assert "was removed while this process trained" in said
    assert sleeper.files(but=own) == before


def test_a_chief_that_slept_is_told_who_has_its_place(trainings: Trainings) -> None:
    sleeper = Sleeper(trainings)
    first = sleeper.start(1)
    trainings.jobs.wait((sleeper.model / "checkpoint").exists, "for a checkpoint")
    first.send_signal(signal.SIGSTOP)
    second = sleeper.start(2)
    lease = sleeper.model / "muster.lease"
    trainings.jobs.wait(lambda: '"incarnation":2' in lease.read_text(), "for the second")
    second.send_signal(signal.SIGSTOP)
    first.send_signal(signal.SIGCONT)
    _, said = first.communicate(timeout=DEADLINE)
    assert first.returncode == 1, said
    assert "this process was replaced" in said
    assert "two tasks were started under one name" in said
    assert f"now worker-0 of job 'drill' (incarnation 2), process {second.pid}" in said
    second.send_signal(signal.SIGTERM)
    second.send_signal(signal.SIGCONT)
    _, said = second.communicate(timeout=DEADLINE)
    assert "the same command continues" in said
    assert not lease.exists()


def test_a_model_folder_that_another_trains_is_refused_and_the_other_named(
    trainings: Trainings,
) -> None:
    first = trainings.jobs.start(*trainings.flags("model", "--epochs", 100000))
    lease = trainings.jobs.folder / "model/muster.lease"
    trainings.jobs.wait(lease.exists, "for the first")
    second = trainings.run("model", "--workers", 2, "--restarts", 0)
    assert second.returncode == 1
    assert f"is being trained by process {first.pid}" in second.stdout + second.stderr
    assert "stop that one first, or give another --model-dir" in second.stdout + second.stderr
    first.kill()
    first.communicate(timeout=DEADLINE)
    # What kill -9 has left is nobody's.
    trainings.ok("model", "--max-steps", 100)
    assert not lease.exists()


@pytest.mark.parametrize(
    ("task", "how"),
    [
        ("worker-0", ("--workers", 3, "--epochs", 1500)),
        ("chief-0", ("--workers", 3, "--epochs", 1500)),
        ("chief-0", ("--workers", 2, "--ps", 1, "--strategy", "ps-sync", "--epochs", 400)),
    ],
)
def test_a_signal_for_one_task_stops_all_and_their_next_ones_train_on(
    trainings: Trainings, task: str, how: tuple[object, ...]
) -> None:
    flags = (*how, "--restarts", 3)
    trainings.ok("unbroken", *flags)
    # Some of the next ones arrive while the chief still ends, and must not take that for the end.
    kill_in_training(trainings, flags, task, how=signal.SIGINT)
    assert trainings.weights("broken") == trainings.weights("unbroken")


@pytest.fixture
def disk(trainings: Trainings) -> Iterator[pathlib.Path]:
    """A model folder on a file system of 512 KiB."""
    with small_disk.mounted(trainings.jobs.folder / "small", "512k") as folder:
        yield folder


def test_a_full_disk_ends_the_job_with_its_cause_and_room_lets_it_go_on(
    trainings: Trainings, disk: pathlib.Path
) -> None:
    flags = ("--workers", 2, "--epochs", 400, "--save-steps", 500, "--keep-checkpoints", 2)
    trainings.ok("unbroken", *flags)
    (trainings.jobs.folder / "broken").symlink_to(disk)
    other = disk / "other"

    def fill(drill: Drill) -> None:
        drill.wait_step(0)
        with contextlib.suppress(OSError), other.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass

    code, said = break_training(trainings, (*flags, "--restarts", 1), fill, "No space left")
    assert code == 1 and "chief-0" in said
    assert not list(disk.glob(".*.tmp-*"))
    other.unlink()
    trainings.ok("broken", *flags)
    assert trainings.weights("broken") == trainings.weights("unbroken")
