"""Trainings of the click model from files and from topics with the same records."""

from __future__ import annotations

import json
import pathlib

import pytest

from testbed.click_training import MODEL
from testbed.kafka.cluster import Kafka
from testbed.muster import Muster

ROWS, PARTITIONS = 12_000, 3
IN_ORDER = ("--no-shuffle", "--epochs", 2)


@pytest.fixture(scope="module")
def local(muster: Muster, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with the model file and the same rows as three files of each format."""
    folder = pathlib.Path(tmp_path_factory.mktemp("local"))
    (folder / "model.yaml").write_text(MODEL)
    muster.run("sample", "clicks", "--rows", ROWS, "--out", folder / "train.csv")
    header, *rows = (folder / "train.csv").read_text().splitlines()
    names = header.split(",")
    for part in range(PARTITIONS):
        mine = rows[part::PARTITIONS]
        (folder / f"part-{part}.csv").write_text("\n".join([header, *mine]) + "\n")
        cells = (dict(zip(names, row.split(","))) for row in mine)
        (folder / f"part-{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in cells))
        muster.run("records", "from-csv", folder / f"part-{part}.csv", "--spec", folder / "model.yaml",
                   "--out", folder / f"records-{part}", "--shards", 1)  # fmt: skip
    return folder


def values(local: pathlib.Path, kind: str, part: int) -> list[bytes]:
    """The records of a file, as a topic has them."""
    if kind == "csv":
        return (local / f"part-{part}.csv").read_bytes().splitlines()[1:]
    if kind == "jsonl":
        return (local / f"part-{part}.jsonl").read_bytes().splitlines()
    from tensorflow import data

    (path,) = (local / f"records-{part}").glob("part-*")
    return [bytes(record.numpy()) for record in data.TFRecordDataset(str(path))]


def fill(kafka: Kafka, topic: str, local: pathlib.Path, kind: str) -> None:
    kafka.create(topic, PARTITIONS)
    for part in range(PARTITIONS):
        kafka.send(topic, values(local, kind, part), part)


def files(local: pathlib.Path, kind: str) -> list[str]:
    if kind == "tfrecord":
        return [f"{local}/records-{part}/part-*" for part in range(PARTITIONS)]
    return [f"{local}/part-{part}.{kind}" for part in range(PARTITIONS)]


def train(local: pathlib.Path, model: pathlib.Path, data: object, *flags: object) -> list[object]:
    patterns = data if isinstance(data, list) else [data]
    return ["train", local / "model.yaml", "--train", *patterns, "--model-dir", model, *flags]


def weights(model: pathlib.Path) -> dict[str, bytes]:
    """The bytes of all tensors of the newest checkpoint but the texts, one of which names the data."""
    from tensorflow import train as tf_train

    reader = tf_train.load_checkpoint(str(model))
    tensors = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    return {name: value.tobytes() for name, value in tensors.items() if not isinstance(value, bytes)}


def fail(muster: Muster, local: pathlib.Path, tmp_path: pathlib.Path, name: str, *flags: object) -> str:
    errors = muster.fail(*train(local, tmp_path / "m", name, "--max-steps", 5, *flags))
    assert len(errors.strip().splitlines()) == 1, errors
    return errors
