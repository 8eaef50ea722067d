"""muster train --ps: parameter servers in a job of this machine, deaths, and what TensorFlow reads."""

from __future__ import annotations

import json
import re
import signal

import numpy as np
import pytest
import tensorflow as tf

from testbed.drills import interrupt_training, kill_in_training
from testbed.trainings import SPEC, Trainings


EPOCHS = 100  # so that a task is killed in the midst of them
SYNCHRONOUS = ("--workers", 2, "--ps", 2, "--strategy", "ps-sync", "--epochs", EPOCHS, "--save-steps", 500)
# The weights of trainings that nobody disturbed, by how they clip gradients.
UNBROKEN: dict[str, dict[str, np.ndarray]] = {}


def tensors(trainings: Trainings, model_dir: str) -> dict[str, np.ndarray]:
    loaded = tf.train.load_checkpoint(trainings.newest(model_dir))
    names = loaded.get_variable_to_shape_map()
    return {name: loaded.get_tensor(name) for name in names if not name.startswith("muster/")}


def auc(trainings: Trainings, model_dir: str) -> float:
    said = trainings.jobs.ok("evaluate", "--model-dir", model_dir, "--data", "train.csv", "--json")
    value = json.loads(said.splitlines()[-1])["auc"]
    assert isinstance(value, float)
    return value


def assert_counted(said: str, trained: int, repeats: bool | None) -> None:
    """What the last line says of records; None: they may be repeated."""
    found = re.search(r"(\d+) trained, (\d+) dropped, (\d+) repeated", said)
    assert found, said
    assert (int(found[1]), int(found[2])) == (trained, 0)
    assert repeats is None or (int(found[3]) > 0) == repeats, said


def unbroken(trainings: Trainings, how: str = "") -> dict[str, np.ndarray]:
    """The weights of a synchronous training, which is the same for all tests."""
    if how not in UNBROKEN:
        trainings.ok("unbroken", *SYNCHRONOUS)
        UNBROKEN[how] = tensors(trainings, "unbroken")
    return UNBROKEN[how]


def assert_same_bytes(trainings: Trainings, model_dir: str, wanted: dict[str, np.ndarray]) -> None:
    got = tensors(trainings, model_dir)
    for name, value in wanted.items():
        assert np.array_equal(got[name], value), name


def test_asynchronous_job_trains_evaluates_and_exports(trainings: Trainings) -> None:
    trainings.ok("alone", "--epochs", 8)
    flags = ("--workers", 2, "--ps", 2, "--epochs", 8, "--eval", "train.csv")
    output = trainings.ok("model", *flags, "--exporter", "final")
    # 1,500 rows each in batches of 32, 8 times.
    assert re.search(r"[Tt]rained at step 752", output)
    served, alone = tensors(trainings, "model"), tensors(trainings, "alone")
    assert {name: value.shape for name, value in served.items()} == {
        name: value.shape for name, value in alone.items()
    }
    assert served["global_step"] == 752
    # How stale its gradients are depends on the machine's load.
    assert auc(trainings, "model") > auc(trainings, "alone") - 0.1
    exported = next((trainings.jobs.folder / "model/export/final").iterdir())
    assert "serving_default" in tf.saved_model.load(str(exported)).signatures


def test_synchronous_job_is_all_reduce_and_others_go_on_from_it(trainings: Trainings) -> None:
    trainings.ok("allreduce", "--workers", 2, "--max-steps", 60)
    trainings.ok("served", "--workers", 2, "--ps", 2, "--strategy", "ps-sync", "--max-steps", 30)
    trainings.ok("served", "--workers", 2, "--ps", 1, "--strategy", "ps-sync", "--max-steps", 40)
    trainings.ok("served", "--workers", 2, "--max-steps", 60)
    served = tensors(trainings, "served")
    for name, value in tensors(trainings, "allreduce").items():
        difference = np.abs(served[name] - value).max()
        assert difference <= 1e-5 * np.abs(value).max(), name


def clip(trainings: Trainings, how: str) -> None:
    spec = trainings.jobs.folder / "spec.yaml"
    kind = "  type: wide_deep\n"
    spec.write_text(SPEC.replace(kind, f"{kind}  clip_gradients: {{{how}}}\n"))


@pytest.mark.parametrize("how", ["norm: 0.05", "global_norm: 0.1"])
def test_sums_are_clipped_by_a_norm_as_by_all_reduce(trainings: Trainings, how: str) -> None:
    flags = ("--workers", 3, "--max-steps", 30)
    trainings.ok("unclipped", *flags)
    clip(trainings, how)
    trainings.ok("allreduce", *flags)
    trainings.ok("served", *flags, "--ps", 2, "--strategy", "ps-sync")
    served, unclipped = tensors(trainings, "served"), tensors(trainings, "unclipped")
    for name, value in tensors(trainings, "allreduce").items():
        difference = np.abs(served[name] - value).max()
        assert difference <= 1e-6 * np.abs(value).max(), name
    assert any(not np.allclose(served[name], value, 1e-3) for name, value in unclipped.items())


@pytest.mark.parametrize("victim", ["worker-0", "chief-0", "ps-0", "ps-1"])
def test_killed_tasks_change_no_byte_of_what_is_clipped(trainings: Trainings, victim: str) -> None:
    clip(trainings, "global_norm: 0.1")
    kill_in_training(trainings, SYNCHRONOUS, victim, step=500)
    assert_same_bytes(trainings, "broken", unbroken(trainings, "global_norm: 0.1"))


@pytest.mark.parametrize("victim", ["worker-0", "chief-0", "ps-0", "ps-1"])
def test_killed_tasks_change_no_byte_in_synchronous_training(
    trainings: Trainings, victim: str
) -> None:
    said = kill_in_training(trainings, SYNCHRONOUS, victim, step=500)
    assert f"{victim} failed: killed by SIGKILL" in said
    assert_same_bytes(trainings, "broken", unbroken(trainings))
    assert_counted(said, 3000 * EPOCHS, repeats=victim.startswith("ps"))


def make_large(trainings: Trainings) -> None:
    """Tables of more than 1 MiB, which servers save and load by themselves."""
    spec = trainings.jobs.folder / "spec.yaml"
    spec.write_text(SPEC.replace("buckets: 50", "buckets: 300000"))


def test_tables_that_servers_save_are_read_by_tensorflow_and_by_others(trainings: Trainings) -> None:
    make_large(trainings)
    trainings.ok("allreduce", "--workers", 2, "--max-steps", 60)
    trainings.ok("served", "--workers", 2, "--ps", 2, "--strategy", "ps-sync", "--max-steps", 30)
    trainings.ok("served", "--workers", 2, "--ps", 3, "--strategy", "ps-sync", "--max-steps", 60)
    folder = trainings.jobs.folder / "served"
    files = sorted(path.name for path in folder.glob("model.ckpt-60.data-*"))
    assert files == [f"model.ckpt-60.data-0000{i}-of-00004" for i in range(4)]
    # The servers' files have the rows, and the chief's what is left.
    assert (folder / files[0]).stat().st_size < 100_000 < (folder / files[1]).stat().st_size
    served = tensors(trainings, "served")
    for name, value in tensors(trainings, "allreduce").items():
        difference = np.abs(served[name] - value).max()
        assert difference <= 1e-5 * np.abs(value).max(), name
    assert auc(trainings, "served") == pytest.approx(auc(trainings, "allreduce"), abs=1e-5)
    trainings.jobs.ok("export", "--model-dir", "served", "--out", "out")
    exported = tf.train.load_checkpoint(str(trainings.jobs.folder / "out/variables/variables"))
    shapes = exported.get_variable_to_shape_map()
    (name,) = (name for name, shape in shapes.items() if shape == [300000, 4])
    written = exported.get_tensor(name)
    assert any(np.array_equal(value, written) for value in served.values())
    # A process that trains alone goes on from there.
    trainings.ok("served", "--max-steps", 70, "--fresh-data")


@pytest.mark.parametrize("victim", ["chief-0", "ps-1"])
def test_killed_tasks_change_no_byte_of_tables_that_servers_save(
    trainings: Trainings, victim: str
) -> None:
    make_large(trainings)
    flags = ("--workers", 2, "--ps", 2, "--strategy", "ps-sync", "--epochs", 40, "--save-steps", 500)
    kill_in_training(trainings, flags, victim, step=500)
    if "large" not in UNBROKEN:
        trainings.ok("unbroken", *flags)
        UNBROKEN["large"] = tensors(trainings, "unbroken")
    assert_same_bytes(trainings, "broken", UNBROKEN["large"])
    left = [path.name for path in (trainings.jobs.folder / "broken").iterdir() if ".tmp-" in path.name]
    assert left == []


def test_a_stopped_server_is_replaced_and_changes_no_byte(trainings: Trainings) -> None:
    said = kill_in_training(trainings, SYNCHRONOUS, "ps-1", step=500, how=signal.SIGSTOP)
    assert "ps-1 failed: was stopped (SIGSTOP)" in said
    assert_same_bytes(trainings, "broken", unbroken(trainings))


@pytest.mark.parametrize("victim", ["worker-0", "ps-0"])
def test_asynchronous_training_survives(trainings: Trainings, victim: str) -> None:
    flags = ("--workers", 3, "--ps", 2, "--epochs", EPOCHS, "--save-steps", 500)
    said = kill_in_training(trainings, flags, victim, step=500)
    assert f"{victim} failed: killed by SIGKILL" in said
    again = "steps are repeated" in said
    # A chief that was just saving is started again too, and knows of no steps before.
    unknown = victim == "ps-0" and "chief-0 failed" in said
    assert again == (victim == "ps-0") or unknown
    assert_counted(said, 3000 * EPOCHS, repeats=None if unknown else again)
    # 1,000 rows each in batches of 32, EPOCHS times: every batch counts once.
    assert tensors(trainings, "broken")["global_step"] == 3 * 32 * EPOCHS


def test_bounded_staleness_waits_for_a_stopped_worker_no_longer_than_its_lease(
    trainings: Trainings,
) -> None:
    flags = ("--workers", 3, "--ps", 2, "--staleness", 2, "--epochs", EPOCHS, "--save-steps", 500)
    said = kill_in_training(trainings, flags, "worker-1", step=500, how=signal.SIGSTOP)
    assert "worker-1 failed: was stopped (SIGSTOP)" in said
    # 1,000 rows each in batches of 32, EPOCHS times: every batch counts once.
    assert tensors(trainings, "broken")["global_step"] == 3 * 32 * EPOCHS


@pytest.mark.parametrize(
    ("victim", "how"),
    [
        ("worker-1", signal.SIGKILL),
        ("worker-1", signal.SIGSTOP),
        ("chief-0", signal.SIGKILL),
        ("ps-0", signal.SIGKILL),
        ("ps-1", signal.SIGKILL),
    ],
)
def test_with_backup_replicas_every_record_is_trained_once_or_dropped(
    trainings: Trainings, victim: str, how: signal.Signals
) -> None:
    backups = ("--strategy", "ps-sync", "--replicas-to-aggregate", 2)
    flags = ("--workers", 3, "--ps", 2, *backups, "--epochs", EPOCHS, "--save-steps", 500)
    said = kill_in_training(trainings, flags, victim, step=500, how=how)
    found = re.search(r"(\d+) trained, (\d+) dropped, (\d+) repeated", said)
    assert found, said
    trained, dropped, repeated = (int(group) for group in found.groups())
    assert trained + dropped == 3000 * EPOCHS
    back = re.search(r"(\d+) steps are repeated", said)  # 0: it died right after a checkpoint
    assert bool(back) == victim.startswith("ps"), said
    assert (repeated > 0) == bool(back and int(back[1]) > 0), said
    # A step has two batches of 32 rows but at the end.
    step = tensors(trainings, "broken")["global_step"]
    assert trained / 64 <= step <= trained / 32 + EPOCHS


def test_an_interrupted_job_goes_on_where_it_stood(trainings: Trainings) -> None:
    flags = ("--workers", 2, "--ps", 1, "--strategy", "ps-sync", "--epochs", 300, "--save-secs", 0)
    trainings.ok("unbroken", *flags)
    interrupt_training(trainings, flags)
    trainings.ok("broken", *flags)
    assert_same_bytes(trainings, "broken", tensors(trainings, "unbroken"))


def test_what_a_model_cannot_have_with_servers_is_said_before_anything_starts(
    trainings: Trainings,
) -> None:
    spec = trainings.jobs.folder / "spec.yaml"
    spec.write_text(SPEC.replace("batch_norm: true", "batch_norm: true, synchronized_batch_norm: true"))
    result = trainings.run("model", "--workers", 2, "--ps", 1)
    assert result.returncode == 1
    assert "--strategy allreduce" in result.stderr
    assert not trainings.jobs.home.exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--ps", 1), "--workers"),
        (("--workers", 2, "--strategy", "ps-sync"), "--ps"),
        (("--workers", 2, "--ps", 1, "--strategy", "allreduce"), "--strategy"),
        (("--workers", 2, "--ps", 1, "--strategy", "ps-sync", "--staleness", 1), "--staleness"),
        (("--workers", 2, "--ps", 1, "--replicas-to-aggregate", 1), "--strategy ps-sync"),
        (
            ("--workers", 2, "--ps", 1, "--strategy", "ps-sync", "--replicas-to-aggregate", 3),
            "more than the number of replicas, 2: give at most that many",
        ),
    ],
)
def test_wrong_use_is_said_before_anything_starts(
    trainings: Trainings, flags: tuple[object, ...], words: str
) -> None:
    result = trainings.run("model", *flags)
    assert result.returncode in (1, 2)
    assert words in result.stderr
    assert not (trainings.jobs.folder / "model").exists()
    assert not trainings.jobs.home.exists()

