"""`muster records` and `muster init` with topics: what is written, and what is found in them."""

from __future__ import annotations

import json
import pathlib
import subprocess
import time

import pytest

from testbed.kafka.clicks import PARTITIONS, ROWS, fill, train, values
from testbed.kafka.cluster import Kafka
from testbed.muster import Muster


def pipe(muster: Muster, rows: bytes, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    """Runs `muster records to-kafka -` with these bytes on standard input."""
    command = [muster.binary, "records", "to-kafka", "-", *map(str, arguments)]
    return subprocess.run(command, input=rows, capture_output=True, timeout=120, check=False)


def written(done: subprocess.CompletedProcess[bytes]) -> dict:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_lines_of_standard_input_are_written_to_one_partition_of_a_new_topic(muster, kafka, topic, local, kind) -> None:
    rows = values(local, kind, 0)
    flags = ("--to", kafka.url(topic), "--partition", 2, "--create", "--partitions", PARTITIONS, "--json")
    said = written(pipe(muster, b"\n".join(rows) + b"\n", *flags))
    assert (said["records"], said["partitions"]) == (len(rows), 1)
    assert said["ranges"] == [{"partition": 2, "begin": 0, "end": len(rows)}]
    assert [kafka.read(topic, part) for part in range(PARTITIONS)] == [[], [], rows]
    said = written(pipe(muster, b"\n".join(rows[:10]), *flags))
    begin = len(rows) + 1  # after the mark of the first transaction
    assert said["name"] == kafka.url(topic, f"?ranges=2:{begin}-{begin + 10}")
    shown = muster.run("records", "cat", said["name"])
    assert shown.encode().splitlines() == rows[:10]


def test_batches_of_standard_input_become_examples(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic, PARTITIONS)
    columns = json.dumps({"label": "int", "C1": "string"})
    batches = subprocess.run(
        [muster.binary, "records", "cat", local / "part-0.jsonl", "--limit", "9", "--batches", columns],
        capture_output=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    said = written(pipe(muster, batches, "--to", kafka.url(topic), "--json"))
    assert said["records"] == 9
    assert said["ranges"] == [{"partition": part, "begin": 0, "end": 3} for part in range(PARTITIONS)]
    rows = [json.loads(row) for row in values(local, "jsonl", 0)[:9:PARTITIONS]]
    shown = [json.loads(row) for row in muster.run("records", "cat", kafka.url(topic, "?ranges=0:0-3")).splitlines()]
    assert [(row["label"], row["C1"]) for row in shown] == [
        ([int(row["label"])], [row["C1"]] if row["C1"] else []) for row in rows]  # fmt: skip


def test_what_cannot_be_written(muster, kafka, topic, local) -> None:
    kafka.create(topic)
    to = ("--to", kafka.url(topic))
    assert b"topic" in pipe(muster, b"1,2\n", *to, "--partition", 1).stderr
    assert b"has the partitions 0 to 0" in pipe(muster, b"1,2\n", *to, "--partition", 1).stderr
    assert b"settings are of reading" in pipe(muster, b"1,2\n", "--to", kafka.url(topic, "?key=k")).stderr
    assert "give it alone" in muster.fail("records", "to-kafka", "-", local / "part-0.jsonl", *to)
    cut = pipe(muster, b'1,"2\n3', *to)
    assert cut.returncode == 1 and b"/dev/stdin:1" in cut.stderr
    assert kafka.read(topic) == []  # nothing of a broken input is committed
    assert written(pipe(muster, b"", *to, "--json"))["ranges"] == []


@pytest.mark.parametrize("kind", ["csv", "jsonl", "tfrecord"])
def test_init_inspect_and_verify_of_a_topic(muster, kafka, topic, local, tmp_path, kind) -> None:
    fill(kafka, topic, local, kind)
    name = kafka.url(topic)
    header = (local / "train.csv").read_text().splitlines()[0]
    flags = ("--columns", header) if kind == "csv" else ()
    said = json.loads(muster.run("init", name, "--label", "label", "--out", tmp_path / "m.yaml", "--json", *flags))
    assert (said["rows"], said["label"]["task"]) == (ROWS, "binary")
    assert said["next"].startswith(f"muster train {tmp_path}/m.yaml --train {name} ")
    muster.run("train", tmp_path / "m.yaml", "--train", name, "--model-dir", tmp_path / "m", "--max-steps", 5)
    (shown,) = muster.json("records", "inspect", name, "--limit", 1, *flags)
    assert (shown["file"], shown["offset"]) == (f"{topic}/0", 0)
    assert shown["features"]["label"]["values"] in ([0], [1], ["0"], ["1"])
    assert muster.json("records", "verify", name, *flags) == [{"file": name, "records": ROWS}]
    stats = json.loads(muster.run("records", "stats", name, "--json", *flags))
    assert stats["rows"] == ROWS


def test_verify_names_the_record_that_is_bad(muster, kafka, topic, local) -> None:
    rows = values(local, "jsonl", 0)[:1500]
    kafka.create(topic)
    kafka.send(topic, [*rows, b'{"label": 1'])
    assert f"{topic}/0: offset 1500: not a JSON object" in muster.fail("records", "verify", kafka.url(topic))
    spec = ("--spec", local / "model.yaml")
    assert f"{topic}/0: offset 1500: " in muster.fail("records", "verify", kafka.url(topic), *spec)
    assert "1,500 records, sound" in muster.run("records", "verify", kafka.url(topic, "?ranges=0:0-1500"), *spec)


def test_cells_of_a_topic_need_names(muster, kafka, topic, local, tmp_path) -> None:
    fill(kafka, topic, local, "csv")
    for command in (("init", kafka.url(topic), "--label", "label", "--out", tmp_path / "m.yaml"),
                    ("records", "inspect", kafka.url(topic))):  # fmt: skip
        assert "name its cells with --columns" in muster.fail(*command)


def test_init_knows_the_columns_of_messages(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic)
    rows, now = enumerate(values(local, "jsonl", 0)[:500]), int(time.time())
    kafka.send_messages(
        topic, ({"value": row, "key": f"user-{i % 9}", "timestamp": (now - i) * 1000} for i, row in rows)
    )
    name = kafka.url(topic, "?key=user&timestamp=at")
    said = json.loads(muster.run("init", name, "--label", "label", "--out", tmp_path / "m.yaml", "--json"))
    found = {column["name"]: column for column in said["columns"]}
    assert (found["user"]["distinct"], found["at"]["min"]) == (9, now - 499), found
    muster.run(*train(local, tmp_path / "m", name, "--max-steps", 5))
