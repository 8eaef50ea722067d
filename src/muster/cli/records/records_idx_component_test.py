"""`muster records from-idx`: TensorFlow reads what numpy finds in the files."""

from __future__ import annotations

import gzip
import json
import pathlib
import struct
import subprocess

import numpy as np
import pytest

TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def write_idx(path: pathlib.Path, kind: int, array: np.ndarray) -> pathlib.Path:
    head = struct.pack(f">4B{array.ndim}I", 0, 0, kind, array.ndim, *array.shape)
    content = head + array.astype(TYPES[kind]).tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def read_idx(path: pathlib.Path) -> np.ndarray:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    kind, rank = content[2], content[3]
    shape = struct.unpack_from(f">{rank}I", content, 4)
    return np.frombuffer(content, TYPES[kind], offset=4 + 4 * rank).reshape(shape)


def run(muster, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([muster.binary, "records", "from-idx", *map(str, arguments)],
                          capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == code, done.stderr
    return done


def records(folder: pathlib.Path, shards: int, ending: str = "", compression: str = "") -> list:
    """The features of all records, in the order in which they were dealt."""
    import tensorflow as tf

    paths = [folder / f"part-{i:05d}-of-{shards:05d}.tfrecord{ending}" for i in range(shards)]
    assert sorted(folder.glob("part-*")) == paths
    parts = [
        [
            tf.train.Example.FromString(record.numpy()).features.feature
            for record in tf.data.TFRecordDataset(str(path), compression_type=compression)
        ]
        for path in paths
    ]
    return [parts[i % shards][i // shards] for i in range(sum(map(len, parts)))]


@pytest.mark.parametrize("kind", TYPES)
def test_values_of_every_type_are_raw_bytes(kind, muster, tmp_path) -> None:
    random = np.random.default_rng(kind)
    images = random.integers(-100, 100, (7, 3, 2)).astype(TYPES[kind])
    labels = random.integers(0, 10, 7)
    write_idx(tmp_path / "images.gz", kind, images)
    write_idx(tmp_path / "labels", 8, labels)
    run(muster, tmp_path / "images.gz", tmp_path / "labels", "--out", tmp_path / "out", "--shards", 2)
    found = records(tmp_path / "out", 2)
    little = np.dtype(TYPES[kind]).newbyteorder("<")
    for record, image, label in zip(found, images, labels, strict=True):
        assert sorted(record) == ["image", "label"]
        values = np.frombuffer(record["image"].bytes_list.value[0], little).reshape(image.shape)
        np.testing.assert_array_equal(values, image)
        assert list(record["label"].int64_list.value) == [label]


def test_names_compression_and_json(muster, tmp_path) -> None:
    images = write_idx(tmp_path / "images", 8, np.arange(12).reshape(3, 4))
    done = run(muster, images, "--out", tmp_path / "out", "--image", "pixels", "--compression", "gzip",
               "--json", "--quiet")  # fmt: skip
    said = json.loads(done.stdout)
    assert (said["event"], said["rows"], said["shards"]) == ("converted", 3, 1)
    assert said["bytes"] == sum(p.stat().st_size for p in (tmp_path / "out").glob("part-*"))
    found = records(tmp_path / "out", 1, ".gz", "GZIP")
    assert [sorted(record) for record in found] == [["pixels"]] * 3
    labels = write_idx(tmp_path / "labels", 12, np.array([-1, 70000, 2]))
    run(muster, images, labels, "--out", tmp_path / "named", "--label", "digit")
    found = records(tmp_path / "named", 1)
    assert [record["digit"].int64_list.value[0] for record in found] == [-1, 70000, 2]


def test_errors_name_the_file_and_leave_nothing(muster, tmp_path) -> None:
    images = write_idx(tmp_path / "images", 8, np.zeros((3, 4)))
    labels = write_idx(tmp_path / "labels", 8, np.zeros(2))
    out = tmp_path / "out"
    said = run(muster, images, labels, "--out", out, code=1).stderr
    assert f"{labels} has 2 labels, {images} 3 images" in said
    images.write_bytes(images.read_bytes()[:-1])
    said = run(muster, images, "--out", out, code=1).stderr
    assert f"{images}: it is cut at byte 23, in item 2 of 3" in said
    # A head that claims 2^32 - 1 images of 64 MiB takes no memory for them.
    images.write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, 2**32 - 1, 2**13, 2**13) + b"few")
    assert "it is cut at byte 19" in run(muster, images, "--out", out, code=1).stderr
    assert not out.exists() or not list(out.iterdir())
    run(muster, "--out", out, code=2)


def test_mnist(muster, real_data, tmp_path) -> None:
    images = real_data("mnist/t10k-images-idx3-ubyte.gz")
    labels = real_data("mnist/t10k-labels-idx1-ubyte.gz")
    said = run(muster, images, labels, "--out", tmp_path / "mnist", "--shards", 5).stdout
    assert "Converted 10,000 images" in said and "to 5 part files" in said
    found = records(tmp_path / "mnist", 5)
    pixels = np.stack([np.frombuffer(r["image"].bytes_list.value[0], np.uint8) for r in found])
    np.testing.assert_array_equal(pixels.reshape(-1, 28, 28), read_idx(images))
    digits = [r["label"].int64_list.value[0] for r in found]
    np.testing.assert_array_equal(digits, read_idx(labels))
