"""muster.keras.write: TensorFlow reads its files, `muster train` trains on them, and rows that do
not fit are reported."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import warnings
from typing import Any, Callable

import keras
import muster.keras
import numpy as np
import tensorflow as tf

ROWS = 40
IDS = 5
CITIES = ["Bonn", "Köln"]


_EXPORTED: dict[str, pathlib.Path] = {}  # an export takes long; checks only read it


def _export(folder: pathlib.Path, **options: Any) -> pathlib.Path:
    """Exports a model of a number, a word, ids of a table, a list of words of any length, and a
    picture."""
    if str(options) in _EXPORTED:
        return _EXPORTED[str(options)]
    _EXPORTED[str(options)] = folder / "export"
    age = keras.Input((), name="age")
    city = keras.Input((), name="city", dtype="string")
    seen = keras.Input((3,), name="seen", dtype="int32")
    tags = keras.Input((None,), name="tags", dtype="string")
    face = keras.Input((4, 4, 1), name="face", dtype="uint8")
    lookup = keras.layers.StringLookup(vocabulary=CITIES, output_mode="one_hot")
    counts = keras.layers.StringLookup(vocabulary=["a", "b"], output_mode="count")
    parts = [
        keras.layers.Reshape((1,))(age),
        lookup(city),
        keras.layers.Flatten()(keras.layers.Embedding(IDS, 2)(seen)),
        counts(tags),
        keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(face)),
    ]
    output = keras.layers.Dense(1, "sigmoid")(keras.layers.Concatenate()(parts))
    model = keras.Model([age, city, seen, tags, face], output)
    options.setdefault("sample_weight", "weight")
    options.setdefault("key", "name")
    inputs = {"face": muster.keras.Field("picture", "uint8", (4, 4, 1), "png")}
    muster.keras.export(model, "adam", "binary_crossentropy", folder / "export", inputs=inputs,
                        label="clicked", **options)  # fmt: skip
    return folder / "export"


def _columns() -> dict[str, Any]:
    random = np.random.default_rng(3)
    return {
        "age": random.integers(18, 90, ROWS),
        "city": random.choice(CITIES, ROWS),
        "seen": random.integers(0, IDS, (ROWS, 3)),
        "tags": [["a", "b", "a"][: i % 3 + 1] for i in range(ROWS)],
        "picture": random.integers(0, 256, (ROWS, 4, 4, 1), dtype=np.uint8),
        "clicked": np.arange(ROWS) % 4 == 0,
        "weight": random.random(ROWS),
        "name": [f"row {i}" for i in range(ROWS)],
        "unused": ["x"] * ROWS,
    }


def _read(*paths: Any) -> list[dict[str, Any]]:
    """Reads files with TensorFlow, in the types of the manifest."""
    wanted = {
        "age": tf.io.FixedLenFeature([], tf.float32),
        "city": tf.io.FixedLenFeature([], tf.string),
        "seen": tf.io.FixedLenFeature([3], tf.int64),
        "tags": tf.io.VarLenFeature(tf.string),
        "picture": tf.io.FixedLenFeature([], tf.string),
        "clicked": tf.io.FixedLenFeature([], tf.float32, -1.0),
        "weight": tf.io.FixedLenFeature([], tf.float32, -1.0),
        "name": tf.io.FixedLenFeature([], tf.string, ""),
    }
    rows = []
    for record in tf.data.TFRecordDataset([str(path) for path in paths]):
        names = set(tf.train.Example.FromString(record.numpy()).features.feature)
        assert names <= set(wanted), names
        row = tf.io.parse_single_example(record, wanted)
        row["tags"] = row["tags"].values
        row["picture"] = tf.io.decode_png(row["picture"])
        rows.append({name: value.numpy() for name, value in row.items()})
    return rows


def _same(got: list[dict[str, Any]], columns: dict[str, Any]) -> None:
    assert len(got) == ROWS
    for i, row in enumerate(got):
        assert row["age"] == columns["age"][i]
        assert row["city"].decode() == columns["city"][i]
        assert row["seen"].tolist() == columns["seen"][i].tolist()
        assert [tag.decode() for tag in row["tags"]] == columns["tags"][i]
        assert (row["picture"] == columns["picture"][i]).all()
        assert row["clicked"] == columns["clicked"][i]
        assert row["weight"] == np.float32(columns["weight"][i])
        assert row["name"].decode() == columns["name"][i]


def _refusal(write: Callable[[], Any], folder: pathlib.Path) -> str:
    before = sorted(folder.iterdir())
    try:
        write()
    except ValueError as error:
        assert sorted(folder.iterdir()) == before, "it leaves files"
        return str(error)
    raise AssertionError("it was accepted")


def _muster(*arguments: Any) -> str:
    environment = {**os.environ, "MUSTER_TENSORFLOW": sys.executable}
    done = subprocess.run([os.environ["MUSTER_BINARY"], *map(str, arguments)], env=environment,
                          capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_columns_are_read_by_tensorflow_and_trained_on(folder: pathlib.Path) -> None:
    export, columns = _export(folder), _columns()
    assert muster.keras.write(columns, export, folder / "data.tfrecord") == ROWS
    _same(_read(folder / "data.tfrecord"), columns)
    _muster("train", export, "--train", folder / "data.tfrecord", "--model-dir", folder / "m",
            "--batch-size", 8, "--eval", folder / "data.tfrecord", "--quiet")  # fmt: skip
    scored = {key: columns[key] for key in ("age", "city", "seen", "tags", "picture", "name")}
    muster.keras.write(scored, export, folder / "scored.tfrecord", for_training=False)
    _muster("predict", "--model-dir", folder / "m", "--data", folder / "scored.tfrecord", "--out",
            folder / "p.jsonl")  # fmt: skip
    rows = [json.loads(line) for line in (folder / "p.jsonl").read_text().splitlines()]
    assert len(rows) == ROWS and "row 3" in rows[3].values()


def check_shards_get_rows_in_turn(folder: pathlib.Path) -> None:
    export, columns = _export(folder), _columns()
    muster.keras.write(columns, export, folder / "data", shards=3)
    paths = sorted(folder.glob("data-*"))
    assert [path.name for path in paths] == [f"data-0000{i}-of-00003" for i in range(3)]
    for i, path in enumerate(paths):
        assert [row["name"].decode() for row in _read(path)] == columns["name"][i::3]


class Frame:
    """The part of a pandas DataFrame that is used; this environment has no pandas."""

    iloc = None

    class Series:
        def __init__(self, values: Any):
            self.values = values

        def to_numpy(self) -> Any:
            return self.values

    def __init__(self, columns: dict[str, Any]):
        self.columns, self._values = list(columns), columns

    def __getitem__(self, name: str) -> Any:
        return self.Series(self._values[name])


def check_a_frame(folder: pathlib.Path) -> None:
    """Writes a frame alone, and as the inputs of a tuple."""
    export, columns = _export(folder), _columns()
    muster.keras.write(Frame(columns), export, folder / "alone")
    _same(_read(folder / "alone"), columns)
    given = (Frame(columns), columns["clicked"], columns["weight"])
    muster.keras.write(given, export, folder / "tuple")
    _same(_read(folder / "tuple"), columns)


def check_a_dataset_of_batches_and_of_rows(folder: pathlib.Path) -> None:
    export, columns = _export(folder), _columns()
    columns["tags"] = [["a", "b"]] * ROWS
    rows = tf.data.Dataset.from_tensor_slices(columns)
    for name, dataset in (("rows", rows), ("batches", rows.batch(7))):
        assert muster.keras.write(dataset, export, folder / name) == ROWS
        _same(_read(folder / name), columns)


def check_ragged_tensors_of_a_dataset(folder: pathlib.Path) -> None:
    export, columns = _export(folder), _columns()
    ragged = {**columns, "tags": tf.ragged.constant(columns["tags"])}
    dataset = tf.data.Dataset.from_tensor_slices(ragged).batch(7)
    muster.keras.write(dataset, export, folder / "data.tfrecord")
    _same(_read(folder / "data.tfrecord"), columns)


def check_a_tuple_as_fit_takes_it(folder: pathlib.Path) -> None:
    """Inputs come by name or in a list, labels are [rows, 1], there are no weights; class_weight
    multiplies."""
    export, columns = _export(folder, key=None), _columns()
    inputs = [columns[name] for name in ("age", "city", "seen", "tags", "picture")]
    by_name = dict(zip(("age", "city", "seen", "tags", "face"), inputs))
    labels = columns["clicked"].astype(np.float64)[:, None]
    for name, given in (("list", inputs), ("dict", by_name)):
        muster.keras.write((given, labels), export, folder / name)
        rows = _read(folder / name)
        assert [row["clicked"] for row in rows] == labels[:, 0].tolist()
        assert [row["weight"] for row in rows] == [1] * ROWS
    muster.keras.write((inputs, labels, columns["weight"]), export, folder / "weighed",
                       class_weight={1: 4.0})  # fmt: skip
    want = columns["weight"].astype(np.float32) * np.where(columns["clicked"], 4, 1)
    assert np.allclose([row["weight"] for row in _read(folder / "weighed")], want)


def check_labels_that_binary_crossentropy_does_not_know(folder: pathlib.Path) -> None:
    """There is one warning per file, whatever the row; labels between 0 and 1 are accepted."""
    export, columns = _export(folder), _columns()
    columns["clicked"] = np.linspace(0, 1, ROWS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        muster.keras.write(columns, export, folder / "soft.tfrecord")
        assert not caught, caught
        columns["clicked"] = np.arange(ROWS) % 2 + 1
        muster.keras.write(columns, export, folder / "data.tfrecord")
    (warning,) = caught
    assert "row 1 has 2.0, and the loss binary_crossentropy is for labels" in str(warning.message)
    assert warning.filename == __file__


def check_class_weights_train_as_keras_fit_has_them(folder: pathlib.Path) -> None:
    """With one full batch and SGD, a step of `fit(class_weight=...)` and of Muster give the same
    weights."""
    X = np.random.default_rng(3).normal(size=(ROWS, 4)).astype(np.float32)
    y = (np.arange(ROWS) % 4 == 0).astype(np.int64)
    model = keras.Sequential([keras.Input((4,), name="x"), keras.layers.Dense(1, "sigmoid")])
    muster.keras.export(model, keras.optimizers.SGD(0.5), "binary_crossentropy", folder / "export",
                        label="y", sample_weight="weight")  # fmt: skip
    muster.keras.write((X, y), folder / "export", folder / "data", class_weight={0: 0.5, 1: 3.0})
    _muster("train", folder / "export", "--train", folder / "data", "--model-dir", folder / "m",
            "--batch-size", ROWS, "--epochs", 3, "--no-shuffle", "--quiet")  # fmt: skip
    model.compile(keras.optimizers.SGD(0.5), "binary_crossentropy")
    model.fit(X, y, ROWS, 3, verbose=0, shuffle=False, class_weight={0: 0.5, 1: 3.0})
    want = [value.copy() for value in model.get_weights()]
    muster.keras.load(folder / "m", model)
    for got, value in zip(model.get_weights(), want):
        assert np.abs(got - value).max() < 1e-5, (got, value)


def check_what_does_not_fit_is_named(folder: pathlib.Path) -> None:
    export = _export(folder)
    for change, *messages in (
        ({"age": ["old"] * ROWS}, "column 'age' (the model's input 'age') wants float32 of shape ()",
         "row 0 has ['old']"),
        ({"age": [1.0] * 3 + [float("nan")] * (ROWS - 3)}, "row 3 has nan: fill what is missing"),
        ({"city": [7] * ROWS}, "column 'city' (the model's input 'city') wants string", "has 7"),
        ({"city": [None] * ROWS}, "row 0 has no value"),
        ({"seen": np.zeros((ROWS, 4), int)}, "'seen'", "int32 of shape (3)", "has shape (4,)"),
        ({"seen": np.full((ROWS, 3), 0.5)}, "row 0 has the fraction 0.5"),
        ({"seen": np.full((ROWS, 3), IDS)}, "has 5, which is not in [0, 4], the ids of a table of 5"),
        ({"picture": np.zeros((ROWS, 4, 4, 3))}, "(the model's input 'face') wants uint8 of shape "
         "(4, 4, 1) as png"),
        ({"age": [1.0] * 3}, "columns have different numbers of rows: {'age': 3"),
        ({"clicked": None}, "column 'clicked' is missing: it is the model's label"),
    ):  # fmt: skip
        columns = {k: v for k, v in {**_columns(), **change}.items() if v is not None}
        said = _refusal(lambda: muster.keras.write(columns, export, folder / "data"), folder)
        for message in messages:
            assert message in said, said
    said = _refusal(lambda: muster.keras.write([1, 2], export, folder / "data"), folder)
    assert "a dict of columns, a DataFrame, a tuple" in said and "not list" in said, said
    said = _refusal(lambda: muster.keras.write(_columns(), export, folder / "d", shards=0), folder)
    assert "shards=0: at least 1" in said, said
    (folder / "other").mkdir()
    other = _export(folder / "other", sample_weight=None)
    said = _refusal(
        lambda: muster.keras.write(_columns(), other, folder / "d", class_weight={1: 2.0}), folder
    )
    assert "class_weight: the model was exported without" in said, said
