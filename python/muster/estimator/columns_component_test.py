"""Weighted, shared, sequence and shaped columns written in Python train as the equal model file."""

from __future__ import annotations

import collections
import csv
import json
import random

import numpy as np
import pytest

from muster import estimator
from muster import feature_column as fc

SEED = 17
ROWS, BATCH = 128, 16
WORDS = ["red", "green", "blue", "cyan"]
Ragged = collections.namedtuple("Ragged", "values row_splits")

# The features in a model file. Lists are ragged in Python, except pixels, which are an array.
INPUTS = {
    "tags": {"type": "string", "list": True},
    "scores": {"type": "float", "list": True},  # one score for each tag
    "clicks": {"type": "string", "list": True},
    "shown": "string",
    "pixels": {"type": "float", "list": True},  # always 3 values
    "track": {"type": "float", "list": True},  # pairs of numbers
    "y": "int",
}


def make_rows() -> list:
    draw = random.Random(SEED)

    def number() -> float:
        return float(np.float32(draw.gauss(0, 1)))

    rows = []
    for _ in range(ROWS):
        tags = [draw.choice([*WORDS, "pink"]) for _ in range(draw.randrange(4))]
        row = {
            "tags": tags,
            "scores": [number() for _ in tags],
            "clicks": [draw.choice("abcdefgh") for _ in range(draw.randrange(1, 4))],
            "shown": draw.choice("abcdefgh"),
            "pixels": [number() for _ in range(3)],
            "track": [number() for _ in range(2 * draw.randrange(1, 4))],
        }
        rows.append({**row, "y": int(("red" in tags) + 0.5 * row["pixels"][0] > 0.3)})
    return rows


DATA = make_rows()


def column_of(part: list, name: str):
    values = [row[name] for row in part]
    if name == "pixels":
        return np.array(values, np.float32)
    if name == "shown":
        return values
    splits = np.cumsum([0, *map(len, values)])
    return Ragged(np.array([x for row in values for x in row], object if name in ("tags", "clicks")
                           else np.float32), splits)  # fmt: skip


def batches(features):
    for start in range(0, ROWS, BATCH):
        part = DATA[start : start + BATCH]
        yield {name: column_of(part, name) for name in features}, [row["y"] for row in part]


def write_csv(path) -> None:
    def cell(value) -> str:
        return "|".join(map(str, value)) if isinstance(value, list) else str(value)

    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(INPUTS)
        writer.writerows([[cell(row[name]) for name in INPUTS] for row in DATA])


TAG = fc.categorical_column_with_vocabulary_list("tags", WORDS, num_oov_buckets=2)
CLICK = fc.categorical_column_with_hash_bucket("clicks", 50)
CLICKS_IN_ORDER = fc.sequence_categorical_column_with_hash_bucket("clicks", 50)
SHOWN = fc.categorical_column_with_hash_bucket("shown", 50)
SCORED = fc.weighted_categorical_column(TAG, "scores")
PIXELS = fc.numeric_column("pixels", shape=(3,), normalizer_fn=lambda x: (x - 0.5) / 2)
TAG_ENTRY = {"vocabulary": "tags", "words": WORDS, "oov_buckets": 2}

# NAME: (features, linear columns, dnn columns), then (columns, linear, dnn) of the model file.
CASES = {
    "weighted": (
        (["tags", "scores"], [SCORED],
         [fc.embedding_column(SCORED, 4, combiner="sqrtn"), fc.indicator_column(SCORED)]),
        ({"tags": TAG_ENTRY,
          "tags_weighted_by_scores": {"weighted": "tags", "weights": "scores"},
          "tags_weighted_by_scores_embedding":
              {"embedding": "tags_weighted_by_scores", "dimension": 4, "combiner": "sqrtn"},
          "tags_weighted_by_scores_indicator": {"indicator": "tags_weighted_by_scores"}},
         ["tags_weighted_by_scores"],
         ["tags_weighted_by_scores_embedding", "tags_weighted_by_scores_indicator"]),
    ),
    "shared": (
        (["clicks", "shown"], [SHOWN],
         fc.shared_embeddings([CLICK, SHOWN], 4, "sum", max_norm=0.7,
                              shared_embedding_collection_name="videos")),
        ({"clicks": {"hash": "clicks", "buckets": 50},
          "shown": {"hash": "shown", "buckets": 50},
          "clicks_shared_embedding": {"embedding": "clicks", "dimension": 4, "combiner": "sum",
                                      "max_norm": 0.7, "shared": "videos"},
          "shown_shared_embedding": {"embedding": "shown", "dimension": 4, "combiner": "sum",
                                     "max_norm": 0.7, "shared": "videos"}},
         ["shown"], ["clicks_shared_embedding", "shown_shared_embedding"]),
    ),
    "sequence": (
        (["clicks", "shown", "track"], [SHOWN],
         [fc.embedding_column(CLICKS_IN_ORDER, 4, pooling="last"),
          fc.sequence_numeric_column("track", shape=2, pooling="max")]),
        ({"shown": {"hash": "shown", "buckets": 50},
          "clicks": {"hash": "clicks", "buckets": 50},
          "clicks_embedding": {"embedding": "clicks", "dimension": 4, "pooling": "last"},
          "track": {"sequence_numeric": "track", "shape": 2, "pooling": "max"}},
         ["shown"], ["clicks_embedding", "track"]),
    ),
    "shaped": (
        (["pixels"], [PIXELS, fc.bucketized_column(fc.numeric_column("pixels", 3), [-0.5, 0.5])],
         [PIXELS]),
        ({"pixels": {"numeric": "pixels", "shape": 3, "mean": 0.5, "stddev": 2},
          "pixels_bucketized": {"bucketized": "pixels", "boundaries": [-0.5, 0.5], "shape": 3}},
         ["pixels", "pixels_bucketized"], ["pixels"]),
    ),
}  # fmt: skip


def tensors(folder) -> dict:
    import tensorflow as tf

    reader = tf.train.load_checkpoint(str(folder))
    names = reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name) for name in names if not name.startswith("muster/")}


@pytest.mark.parametrize("case", CASES)
def test_python_columns_train_as_the_model_file(case, muster, tmp_path) -> None:
    (features, wide, deep), (columns, linear, dnn) = CASES[case]
    model = estimator.DNNLinearCombinedClassifier(
        model_dir=tmp_path / "python",
        linear_feature_columns=wide,
        linear_optimizer=estimator.optimizers.Ftrl(0.1),
        dnn_feature_columns=deep,
        dnn_optimizer=estimator.optimizers.Adagrad(0.05),
        dnn_hidden_units=[8],
    )
    model.train(lambda: batches(features))

    write_csv(tmp_path / "rows.csv")
    spec = {
        "inputs": {name: INPUTS[name] for name in [*features, "y"]},
        "label": "y",
        "columns": columns,
        "model": {
            "type": "wide_deep",
            "linear": {"columns": linear, "optimizer": {"ftrl": {"learning_rate": 0.1}}},
            "dnn": {
                "columns": dnn,
                "hidden_units": [8],
                "optimizer": {"adagrad": {"learning_rate": 0.05}},
            },
        },
    }
    path = tmp_path / "spec.yaml"
    path.write_text(json.dumps(spec), encoding="utf-8")
    flags = ["--model-dir", tmp_path / "yaml", "--no-shuffle", "--batch-size", BATCH]
    muster.run("train", path, "--train", tmp_path / "rows.csv", *flags)

    ours, theirs = tensors(tmp_path / "python"), tensors(tmp_path / "yaml")
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)
        if "weights" in name or name == "videos":
            assert np.abs(value).max() > 0, name

    predictions = tmp_path / "rows.jsonl"
    muster.run("predict", "--model-dir", tmp_path / "yaml", "--data", tmp_path / "rows.csv",
               "--out", predictions)  # fmt: skip
    rows = [json.loads(line) for line in predictions.read_text().splitlines()]
    said = list(model.predict(lambda: batches(features), predict_keys="logits"))
    np.testing.assert_allclose(
        [row["logits"][0] for row in said], [row["logits"][0] for row in rows], rtol=1e-6
    )


def test_a_bucketized_column_is_dense_as_tensorflows(tmp_path) -> None:
    import tensorflow as tf

    def make(api, columns, folder):
        height = columns.bucketized_column(columns.numeric_column("height"), [-0.5, 0.5])
        pixels = columns.bucketized_column(columns.numeric_column("pixels", 3), [-1.0, 0.0, 1.0])
        cross = columns.crossed_column([height, "shown"], 5)
        return api.DNNLinearCombinedClassifier(
            str(folder), linear_feature_columns=[height],
            dnn_feature_columns=[
                pixels, height, columns.indicator_column(cross), columns.numeric_column("height")
            ],
            dnn_hidden_units=[4],
        )  # fmt: skip

    def input_fn():
        features = {name: column_of(DATA, name) for name in ("pixels", "shown")}
        features["height"] = features["pixels"][:, 0] + 0.25
        labels = [row["y"] for row in DATA]
        return tf.data.Dataset.from_tensor_slices((features, labels)).batch(BATCH)

    kernel = "dnn/hiddenlayer_0/kernel"
    theirs = make(tf.estimator, tf.feature_column, tmp_path / "theirs").train(input_fn)
    assert theirs.get_variable_value(kernel).shape == (1 + 3 + 5 + 3 * 4, 4)
    read = make(estimator, fc, tmp_path / "theirs")  # TensorFlow's weights, in Muster's model
    np.testing.assert_allclose(
        [row["logits"] for row in read.predict(input_fn)],
        [row["logits"] for row in theirs.predict(input_fn)], rtol=1e-4, atol=1e-5,
    )  # fmt: skip

    trained = make(estimator, fc, tmp_path / "ours").train(input_fn)
    assert trained.get_variable_value(kernel).shape == (21, 4)
    linear = "linear/linear_model/height_bucketized/weights"
    for model in (theirs, trained):
        assert model.get_variable_value(linear).shape == (3, 1)
