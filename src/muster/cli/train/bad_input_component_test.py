"""Bad input: a clear error, exit code 1, nothing half-written, under 64 MB."""

from __future__ import annotations

import os
import pathlib
import struct
import subprocess

import pytest

from testbed import small_disk
from testbed.measure import run_measured

MEMORY_LIMIT = 64 << 20

SPEC = """
inputs: {id: int, age: {type: int, default: -1}, pay: float, job: string, y: int}
label: y
key: id
columns:
  age: {bucketized: age, boundaries: [30, 50]}
  pay: {numeric: pay}
  job: {hash: job, buckets: 10}
  e: {embedding: job, dimension: 4}
model:
  type: wide_deep
  linear: {columns: [age, job]}
  dnn: {columns: [pay, e], hidden_units: [8]}
train: {batch_size: 4}
"""
HEADER = "id,age,pay,job,y\n"
GOOD = HEADER + "".join(f"{i},{20 + i},{i}.5,job{i % 3},{i % 2}\n" for i in range(40))


class Workplace:
    """A folder with a spec and good data, and a way to run muster in it and look at its memory."""

    def __init__(self, binary: str, folder: pathlib.Path):
        self.binary = binary
        self.folder = folder
        self.write("spec.yaml", SPEC)
        self.write("good.csv", GOOD)

    def write(self, name: str, content: str | bytes) -> None:
        data = content.encode() if isinstance(content, str) else content
        (self.folder / name).write_bytes(data)

    def run(self, *arguments: str) -> tuple[int, str, int]:
        """Exit code, stderr, peak memory in bytes."""
        return run_measured([self.binary, *arguments], cwd=self.folder)

    def files(self) -> set[str]:
        return {str(p.relative_to(self.folder)) for p in self.folder.rglob("*") if p.is_file()}

    def fail(self, *arguments: str) -> str:
        before = self.files()
        code, errors, memory = self.run(*arguments)
        assert code == 1, f"exit code {code}: {errors}"
        assert errors.startswith("muster: "), errors
        assert memory < MEMORY_LIMIT, f"{memory >> 20} MB"
        made = {f for f in self.files() - before if not f.startswith("model/")}
        assert not made, f"left behind: {made}"
        return errors

    def ok(self, *arguments: str) -> None:
        code, errors, _ = self.run(*arguments)
        assert code == 0, errors


CONVERT = ("records", "from-csv", "bad.csv", "--spec", "spec.yaml", "--out", "out", "--shards", "2")


def train(data: str, *more: str) -> tuple[str, ...]:
    return ("train", "spec.yaml", "--train", data, "--model-dir", "model", "--quiet", *more)


@pytest.fixture()
def place(muster, tmp_path) -> Workplace:
    return Workplace(muster.binary, tmp_path)


@pytest.mark.parametrize(
    "content, words",
    [
        (HEADER + "1,30,1.5,a,1\n2,old,1.5,a,0\n", ["bad.csv:3", "'age'", "'old'"]),
        (HEADER + "1,30,,a,1\n", ["bad.csv:2", "'pay'", "no default"]),
        ("id,age,job,y\n1,2,a,0\n", ["bad.csv", "'pay'"]),
        ("id,age,pey,job,y\n1,2,3,a,0\n", ["'pay'", "did you mean 'pey'"]),
        (HEADER + "1,30,1.5,a,1\n2,30,1.5,a\n", ["bad.csv:3", "4", "5"]),
        (HEADER + '1,30,1.5,a,1\n2,30,1.5,"a,0\n3,1,1,b,1\n', ["bad.csv:3", "quote"]),
        ("", ["bad.csv", "empty"]),
    ],
    ids=["type", "missing value", "column", "misspelt column", "ragged", "quote", "empty"],
)
def test_bad_csv(content, words, place):
    place.write("bad.csv", content)
    for arguments in (CONVERT, train("bad.csv")):
        errors = place.fail(*arguments)
        for word in words:
            assert word in errors, f"{word!r} is not in {errors!r}"


def test_a_bad_row_names_the_flag_that_leaves_it_out(place):
    place.ok("train", "spec.yaml", "trained", "--train", "good.csv", "--quiet")
    place.write("bad.csv", HEADER + "1,30,1.5,a,1\n2,30,1.5,a\n")
    place.write("worse.csv", HEADER + "1,30,1.5,a,1\n2,old,1.5,a,0\n")
    says = "; to leave out up to N such records and continue, give --max-bad-records N"
    for bad in ("bad.csv", "worse.csv"):
        errors = place.fail(*train(bad))
        assert f"{bad}:3" in errors and errors.endswith(f"{says}\n"), errors
        errors = place.fail("predict", "trained", "--data", bad, "--out", "p.csv", "--quiet")
        assert errors.endswith(f"{says}, and --rejects FILE to keep them\n")
    assert says in place.fail("init", "bad.csv", "--label", "y", "--out", "new.yaml")
    assert says in place.fail(*CONVERT)
    assert "--max-bad" not in place.fail("records", "verify", "bad.csv")  # it has no such flag
    assert "--max-bad" not in place.fail(*train("none.csv"))
    place.ok(*train("bad.csv", "--max-bad-records", "1"))


def test_a_huge_unclosed_quote_takes_no_memory(place):
    place.write("bad.csv", HEADER + '1,30,1.5,"' + "a" * (100 << 20))
    assert "bad.csv:2" in place.fail(*CONVERT)


@pytest.fixture()
def shard(place) -> str:
    place.ok("records", "from-csv", "good.csv", "--spec", "spec.yaml", "--out", "data", "--shards", "1")
    (path,) = (place.folder / "data").glob("part-*.tfrecord")
    return str(path.relative_to(place.folder))


def damage(data: bytearray, how: str) -> bytearray:
    if how == "cut":
        return data[:-5]
    if how == "flipped bit":
        data[30] ^= 4
    elif how == "length of 2^62":
        data[0:8] = struct.pack("<Q", 1 << 62)
    return data


@pytest.mark.parametrize("how", ["cut", "flipped bit", "length of 2^62"])
def test_bad_tfrecord(how, place, shard):
    path = place.folder / shard
    path.write_bytes(damage(bytearray(path.read_bytes()), how))
    for arguments in (train(shard), ("records", "verify", shard), ("records", "inspect", shard)):
        errors = place.fail(*arguments)
        assert shard.split("/")[-1] in errors and "byte" in errors, errors


def test_max_bad_records_skips_and_counts(place, shard, muster):
    path = place.folder / shard
    path.write_bytes(damage(bytearray(path.read_bytes()), "flipped bit"))
    place.ok(*train(shard, "--max-bad-records", "1"))
    place.write("bad.csv", GOOD + "41,x,1,a,1\n42,1,2\n")
    assert "bad.csv:42" in place.fail(*CONVERT)
    place.fail(*CONVERT, "--max-bad-records", "1")
    place.ok(*CONVERT, "--max-bad-records", "2")
    inspected = muster.json("records", "inspect", *sorted(map(str, place.folder.glob("out/part-*.tfrecord"))))
    assert len(inspected) == 40


def test_bad_label(place):
    place.write("bad.csv", HEADER + "1,30,1.5,a,1\n2,30,1.5,a,2\n")
    errors = place.fail(*train("bad.csv"))
    assert "bad.csv:3" in errors and "'y'" in errors and "0 or 1" in errors


LENIENT = ("--max-bad-records", "4")


@pytest.mark.parametrize("batch", ["1", "2"])
@pytest.mark.parametrize("job", [(), ("--workers", "2"), ("--workers", "2", "--ps", "1")])
def test_a_batch_of_bad_labels_is_no_step(batch, job, muster, place, monkeypatch):
    """At the beginning, in the midst and at the end of a replica's share."""
    monkeypatch.setenv("MUSTER_HOME", str(place.folder / "home"))
    labels = "9910999101109990"
    place.write("bad.csv", HEADER + "".join(f"{i},30,1.5,a,{y}\n" for i, y in enumerate(labels)))
    place.ok(*train("bad.csv", *LENIENT[:1], "8", "--batch-size", batch, "--no-shuffle", *job))
    place.write("bad.csv", HEADER + "".join(f"{i},30,1.5,a,{y}\n" for i, y in enumerate("0199")))
    evaluate = ("evaluate", "--model-dir", place.folder / "model", "--data", place.folder / "bad.csv",
                *LENIENT, "--batch-size", batch)  # fmt: skip
    for workers in ((), ("--workers", "2")):
        assert muster.event("evaluated", *evaluate, *workers)["bad_records"] == 2


@pytest.mark.parametrize("job", [(), ("--workers", "2", "--evaluator", "--restarts", "0")])
def test_data_of_evaluations_may_have_bad_records(job, place, monkeypatch):
    monkeypatch.setenv("MUSTER_HOME", str(place.folder / "home"))
    place.write("bad.csv", GOOD + "41,x,1,a,1\n42,30,1.5,a,9\n")
    place.ok(*train("good.csv", "--eval", "bad.csv", "--max-bad-records", "2", *job))


def test_progress_ends_with_the_steps_that_were_taken(place):
    """The rows that were left out are no steps that are still to come."""
    place.write("bad.csv", GOOD + "41,x,1,a,1\n" * 20)
    arguments = [each for each in train("bad.csv", "--max-bad-records", "20") if each != "--quiet"]
    code, errors, _ = place.run(*arguments)
    assert code == 0 and "train  step 10/10 " in errors, errors


def test_label_that_is_no_class(place):
    place.write("spec.yaml", SPEC + "head: {multi_class: 3}\n")
    place.write("bad.csv", HEADER + "1,30,1.5,a,2\n2,30,1.5,a,3\n")
    errors = place.fail(*train("bad.csv"))
    assert "bad.csv:3" in errors and "'y'" in errors and "of 3 classes" in errors


def test_negative_weight(place):
    place.write("spec.yaml", SPEC + "weight: pay\n")
    place.write("bad.csv", HEADER + "1,30,1.5,a,1\n2,30,-1.5,a,1\n")
    errors = place.fail(*train("bad.csv"))
    assert "bad.csv:3" in errors and "weight 'pay'" in errors and "-1.5" in errors


def test_nan_loss_names_the_step(place):
    spec = SPEC.replace("hidden_units: [8]", "hidden_units: [8], optimizer: {adagrad: {learning_rate: 1e30}}")
    place.write("spec.yaml", spec)
    errors = place.fail(*train("good.csv", "--epochs", "50"))
    assert "at step" in errors


def test_unknown_key(place):
    place.write("spec.yaml", SPEC.replace("boundaries", "boundries"))
    errors = place.fail(*train("good.csv"))
    assert "spec.yaml:6" in errors and "'boundaries'" in errors


def test_checkpoint_of_another_spec(place):
    place.ok(*train("good.csv"))
    before = place.files()
    place.write("spec.yaml", SPEC.replace("dimension: 4", "dimension: 5"))
    errors = place.fail(*train("good.csv"))
    assert "another spec" in errors and "--model-dir" in errors
    assert place.files() == before


def test_unwritable_folder(place):
    place.write("file", "not a folder")
    for folder in ("file", "file/model"):
        errors = place.fail("train", "spec.yaml", folder, "--train", "good.csv", "--quiet")
        assert f"--model-dir {folder}: file is a file, and no folder; give another folder" in errors
    assert "file is a file" in place.fail("train", "spec.yaml", "file", "--train", "good.csv", "--workers", "2")
    place.write("bad.csv", GOOD)
    assert "file" in place.fail(*CONVERT[:5], "--out", "file/out", "--shards", "2")


def test_missing_files(place):
    assert "none*" in place.fail(*train("none*.csv"))
    assert "none.yaml" in place.fail("train", "none.yaml", "--train", "good.csv", "--model-dir", "m")
    assert "muster train" in place.fail("evaluate", "--model-dir", "m", "--data", "good.csv")


@pytest.fixture()
def disk(tmp_path):
    with small_disk.mounted(tmp_path / "disk", "64k") as folder:
        yield folder


def test_full_disk(place, disk):
    rows = "".join(f"{i},30,1.5,job{i % 100},{i % 2}\n" for i in range(5000))
    place.write("bad.csv", HEADER + rows)
    place.write("good.csv", HEADER + rows)
    place.write("spec.yaml", SPEC.replace("buckets: 10", "buckets: 5000"))
    for arguments in (
        (*CONVERT[:5], "--out", "disk/out", "--shards", "2"),
        ("train", "spec.yaml", "--train", "good.csv", "--model-dir", "disk/model", "--quiet"),
    ):
        errors = place.fail(*arguments) if "out" in arguments[6] else place.run(*arguments)[1]
        assert "No space left" in errors and "disk/" in errors
    assert not list(disk.rglob("*.tfrecord"))
    assert not list(disk.rglob("model.ckpt-*.index"))


@pytest.mark.parametrize("arguments", [("--json",), ()])
def test_results_that_cannot_be_printed_are_a_failure(place, arguments):
    """A reader of the output would take none, or half of it, for all of it."""
    train = ("train", "spec.yaml", "--train", "good.csv", "--model-dir", "m", "--quiet", "--json")
    evaluate = ("evaluate", "--model-dir", "m", "--data", "good.csv", "--quiet", *arguments)
    for command in (train, evaluate):
        with open("/dev/full", "w") as full:
            result = subprocess.run(
                [place.binary, *command], cwd=place.folder, stdout=full, stderr=subprocess.PIPE,
                text=True, check=False,
            )  # fmt: skip
        assert result.returncode == 1
        assert "muster: writing to standard output: No space left on device" in result.stderr


def test_wrong_use_is_exit_code_two(place):
    assert place.run("train")[0] == 2
    assert place.run("train", "spec.yaml", "--train", "good.csv", "--model-dir", "m", "--epoch", "1")[0] == 2
    assert place.run("trian")[0] == 2
    assert place.run()[0] == 0, "it shows the verbs"
