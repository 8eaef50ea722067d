"""TFRecord and tf.Example against TensorFlow, in both directions."""

from __future__ import annotations

import csv
import gzip
import pathlib
import random
import struct
import zlib

import numpy as np
import pytest
import tensorflow as tf

from testbed.muster import Muster

# No name begins with another one: see docs/formats/example.md on the order of such names.
SPEC = """
inputs:
  number: int
  ratio: float
  text: string
  ids: {type: int, list: true}
  weights: {type: float, list: true}
  words: {type: string, list: true}
label: number
columns: {t: {hash: text, buckets: 10}}
model: {type: linear, linear: {columns: [t]}}
"""
COMPRESSIONS = ["", "GZIP", "ZLIB"]
INTS = [0, 1, 127, 128, 300, -1, -(2**63), 2**63 - 1]
FLOATS = [0.0, -0.0, 1.5, 0.1, 1e-45, 3.4028234663852886e38, -1e20]
TEXTS = ["", "a", "eight ch", "ä, \"€\"", "line\nbreak", "x" * 127, "y" * 20_000]


def plain(data: bytes, compression: str) -> bytes:
    if compression == "GZIP":
        return gzip.decompress(data)
    return zlib.decompress(data) if compression == "ZLIB" else data


def rows(seed: int) -> list[dict[str, object]]:
    print(f"seed {seed}")
    rng = random.Random(seed)

    def some(values: list, longest: int) -> list:
        return [rng.choice(values) for _ in range(rng.randrange(longest))]

    return [
        {
            "number": rng.choice(INTS),
            "ratio": rng.choice(FLOATS),
            "text": rng.choice(TEXTS),
            "ids": some(INTS, 4),
            "weights": some(FLOATS, 4),
            "words": [text for text in some(TEXTS, 4) if text],  # "" in a cell is no list
        }
        for _ in range(200)
    ]


def cell(value: object) -> str:
    if isinstance(value, list):
        return "|".join(map(cell, value))
    return repr(value) if isinstance(value, float) else str(value)


def feature(value: object, name: str) -> tf.train.Feature:
    values = value if isinstance(value, list) else [value]
    if name in ("number", "ids"):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    if name in ("ratio", "weights"):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    encoded = [text.encode() for text in values]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=encoded))


def example(row: dict[str, object]) -> tf.train.Example:
    features = {name: feature(value, name) for name, value in row.items()}
    return tf.train.Example(features=tf.train.Features(feature=features))


def write_with_tensorflow(path: pathlib.Path, records: list[bytes], compression: str) -> None:
    with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression)) as writer:
        for record in records:
            writer.write(record)


def shard(folder: pathlib.Path) -> pathlib.Path:
    (file,) = (path for path in folder.glob("part-*") if path.suffix != ".index")
    return file


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_tensorflow_would_write_the_same_bytes(muster: Muster, tmp_path, compression: str) -> None:
    table = rows(seed=1)
    with open(tmp_path / "in.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table[0])
        writer.writerows([map(cell, row.values()) for row in table])
    (tmp_path / "spec.yaml").write_text(SPEC)
    options = ["--compression", compression.lower()] if compression else []
    muster.run("records", "from-csv", tmp_path / "in.csv", "--spec", tmp_path / "spec.yaml",
               "--out", tmp_path / "out", "--shards", 1, *options)  # fmt: skip
    ours = shard(tmp_path / "out")

    expected = [example(row).SerializeToString(deterministic=True) for row in table]
    write_with_tensorflow(tmp_path / "theirs", expected, compression)
    theirs = plain((tmp_path / "theirs").read_bytes(), compression)
    assert plain(ours.read_bytes(), compression) == theirs

    read = tf.data.TFRecordDataset(str(ours), compression_type=compression)
    assert [record.numpy() for record in read] == expected


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


class OddForms:
    """tf.Examples in forms that protobuf allows and TensorFlow's writers do not choose."""

    NAMES = ["a", "b", "ab", "a name of more than eight bytes", ""]

    def __init__(self, seed: int):
        self.rng = random.Random(seed)

    def pieces(self, make, most: int) -> bytes:
        return b"".join(make() for _ in range(self.rng.randrange(most)))

    def unknown(self) -> bytes:
        number = self.rng.randrange(4, 3000)
        return self.rng.choice([
            b"", b"", b"",
            field(number, b"unknown"),
            varint(number << 3) + varint(self.rng.choice(INTS)),
            varint(number << 3 | 1) + b"8 bytes.",
            varint(number << 3 | 5) + b"4 b.",
            varint(number << 3 | 3) + field(1, b"in a group") + varint(number << 3 | 4),
        ])  # fmt: skip

    def ints(self) -> bytes:
        if self.rng.random() < 0.5:
            return varint(8) + varint(self.rng.choice(INTS))
        return field(1, self.pieces(lambda: varint(self.rng.choice(INTS)), 4))

    def floats(self) -> bytes:
        if self.rng.random() < 0.5:
            return varint(13) + struct.pack("<f", self.rng.choice(FLOATS))
        return field(1, self.pieces(lambda: struct.pack("<f", self.rng.choice(FLOATS)), 4))

    def texts(self) -> bytes:
        return field(1, self.rng.choice(TEXTS[:6]).encode())

    def kind(self) -> bytes:
        number, value = self.rng.choice([(1, self.texts), (2, self.floats), (3, self.ints)])
        content = self.pieces(lambda: self.unknown() + value(), 4)
        return self.unknown() + field(number, content)

    def entry(self) -> bytes:
        # No unknown fields directly in it: for these Python's protobuf ("upb") drops the entry,
        # which TensorFlow's C++ does not.
        parts = [field(1, self.rng.choice(self.NAMES).encode())] * self.rng.choice([0, 1, 1, 1, 2])
        parts += [field(2, self.pieces(self.kind, 4)) for _ in range(self.rng.choice([0, 1, 1, 1, 2]))]
        self.rng.shuffle(parts)
        return self.unknown() + field(1, b"".join(parts))

    def example(self) -> bytes:
        return self.pieces(lambda: self.unknown() + field(1, self.pieces(self.entry, 5)), 3)


def described(record: bytes) -> dict[str, tuple[str, list]]:
    """What protobuf makes of a record."""
    result = {}
    for name, value in tf.train.Example.FromString(record).features.feature.items():
        kind = value.WhichOneof("kind")
        values = list(getattr(value, kind).value) if kind else []
        if kind == "bytes_list":
            values = [text.decode() for text in values]
        result[name] = (kind.removesuffix("_list") if kind else "none", values)
    return result


def inspected(entry: dict[str, dict]) -> dict[str, tuple[str, list]]:
    def value_of(kind: str, value: object) -> object:
        return float(np.float32(value)) if kind == "float" else value

    return {
        name: (of["kind"], [value_of(of["kind"], value) for value in of["values"]])
        for name, of in entry.items()
    }


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_reads_every_form_as_protobuf_does(muster: Muster, tmp_path, compression: str) -> None:
    seed = 20261121
    print(f"seed {seed}")
    odd = OddForms(seed)
    records = [odd.example() for _ in range(300)]
    records += [example(row).SerializeToString() for row in rows(seed=2)[:50]]
    write_with_tensorflow(tmp_path / "file", records, compression)

    offset = 0
    found = muster.json("records", "inspect", tmp_path / "file")
    assert len(found) == len(records)
    for number, (record, entry) in enumerate(zip(records, found)):
        assert entry["offset"] == offset, number
        assert inspected(entry["features"]) == described(record), (number, record)
        offset += len(record) + 16
