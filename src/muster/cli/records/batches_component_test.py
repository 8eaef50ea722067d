"""Streams of batches out of the program: records cat --batches, records from-batches, predict."""

from __future__ import annotations

import io
import json
import pathlib
import subprocess
import threading
from typing import Any

import pyarrow
import pytest

from muster.arrow_stream import StreamWriter, read_stream
from testbed.muster import Muster

CLICKS = "examples/clicks/clicks.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    made, muster = tmp_path_factory.mktemp("batches"), Muster()
    muster.run("sample", "clicks", "--rows", 5000, "--out", made / "clicks.csv")
    muster.run("records", "from-csv", made / "clicks.csv", "--spec", CLICKS, "--out", made / "data")
    muster.run("train", CLICKS, "--train", f"{made}/data/part-*", "--model-dir", made / "model",
               "--max-steps", 5)  # fmt: skip
    return made


def columns(muster: Muster) -> str:
    inputs = json.loads(muster.run("inspect", CLICKS, "--inputs", "--json"))["inputs"]
    return json.dumps({column["name"]: column["type"] for column in inputs})


def cat(muster: Muster, *arguments: object) -> bytes:
    command = [muster.binary, "records", "cat", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=True).stdout


def test_records_go_out_and_come_back_as_the_same_bytes(
    muster: Muster, folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (part,) = (folder / "data").glob("part-*")
    stream = cat(muster, part, "--batches", columns(muster))
    subprocess.run([muster.binary, "records", "from-batches", "-", "--out", tmp_path / "again"],
                   input=stream, check=True, capture_output=True)  # fmt: skip
    (again,) = (tmp_path / "again").glob("part-*")
    assert again.read_bytes() == part.read_bytes()
    (tmp_path / "rows.batches").write_bytes(stream)
    done = muster.event("converted", "records", "from-batches", tmp_path / "rows.batches", "--out",
                        tmp_path / "third", "--shards", 3)  # fmt: skip
    assert done["rows"] == 5000 and len(list((tmp_path / "third").glob("part-*"))) == 3


def test_a_limit_and_chosen_columns(muster: Muster, folder: pathlib.Path) -> None:
    stream = cat(muster, f"{folder}/data/part-*", "--batches", '{"label": "int", "C1": "string"}', "--limit", 2050)
    batches = list(read_stream(io.BytesIO(stream).read))
    assert [len(batch["label"][1]) for batch in batches] == [0, 2048, 2]
    assert sorted(batches[0]) == ["C1", "label"]


@pytest.mark.parametrize("given", ["x", "[]", "{}", '{"a": "bytes"}', '{"a": 1}'])
def test_columns_that_are_none(given: str, muster: Muster, folder: pathlib.Path) -> None:
    said = muster.fail("records", "cat", f"{folder}/data/part-*", "--batches", given)
    assert "a JSON object of columns is wanted" in said


def test_a_stream_that_is_cut_writes_nothing(
    muster: Muster, folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    stream = cat(muster, f"{folder}/data/part-*", "--batches", columns(muster))
    done = subprocess.run([muster.binary, "records", "from-batches", "-", "--out", tmp_path / "out"],
                          input=stream[:-16], capture_output=True, text=False)  # fmt: skip
    assert done.returncode == 1 and b"ends before its end marker" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_predictions_as_batches_are_those_of_json(muster: Muster, folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    arguments: list[Any] = ["predict", folder / "model", "--data", f"{folder}/data/part-*", "--out"]
    muster.run(*arguments, tmp_path / "p.jsonl")
    muster.run(*arguments, tmp_path / "p.batches")
    wanted = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    found: dict[str, list[Any]] = {}
    for batch in read_stream(io.BytesIO((tmp_path / "p.batches").read_bytes()).read):
        for name, (values, _) in batch.items():
            found.setdefault(name, []).extend(values.to_pylist())
    assert sorted(found) == sorted(wanted[0])
    assert found["row"] == [row["row"] for row in wanted]
    assert found["logits"] == pytest.approx([row["logits"][0] for row in wanted], rel=1e-6)
    assert found["classes"] == [row["classes"][0].encode() for row in wanted]
    assert found["probabilities"] == pytest.approx([p for row in wanted for p in row["probabilities"]], rel=1e-6)


def test_each_batch_is_answered_before_the_next_one(muster: Muster, folder: pathlib.Path) -> None:
    (said,) = muster.json("inspect", folder / "model", "--inputs")
    inputs = [column for column in said["inputs"] if column["name"] != said["label"]]
    values = {"float": [0.0, 1.0, 2.0], "string": ["a", "b", "c"]}
    rows = pyarrow.RecordBatch.from_pydict({column["name"]: values[column["type"]] for column in inputs})
    command = [muster.binary, "predict", folder / "model", "--data", "-", "--out", "-", "--format", "batches"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as scorer:
        limit = threading.Timer(60, scorer.kill)  # for a batch without an answer
        limit.start()
        assert scorer.stdin is not None and scorer.stdout is not None
        pipe = scorer.stdin

        def write(parts: list[Any]) -> None:
            pipe.writelines(parts)
            pipe.flush()

        writer, answers = StreamWriter(write, inputs, "rows"), read_stream(scorer.stdout.read)
        found = [len(next(answers)["row"][0])]
        for _ in range(3):
            writer.write(rows, {})
            found.append(len(next(answers)["row"][0]))
        writer.end()
        assert list(answers) == []
        limit.cancel()
    assert found == [0, 3, 3, 3] and scorer.returncode == 0


def test_files_of_this_machine_are_moved(muster: Muster, tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").write_text("a")
    muster.run("fs", "mkdir", tmp_path / "folder")
    muster.run("fs", "mv", tmp_path / "a", tmp_path / "folder")
    muster.run("fs", "mv", tmp_path / "folder", tmp_path / "other")
    assert (tmp_path / "other/a").read_text() == "a"
    assert "no file" in muster.fail("fs", "mv", tmp_path / "nothing", tmp_path / "x")
