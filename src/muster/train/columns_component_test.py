"""Columns of lists, weights, sequences and shared tables: training in step with TensorFlow.

Muster and TensorFlow start from the same weights and see the same rows in the same order, among
them rows without a value, with unknown words and with one value twice.
"""

from __future__ import annotations

import csv
import pathlib
import random
from typing import Any

import numpy as np
import pytest
import yaml

SEED = 20261121
ROWS, BATCH = 480, 16  # 30 steps
WORDS = ["red", "green", "blue", "cyan"]

INPUTS = {
    "tags": {"type": "string", "list": True},
    "scores": {"type": "float", "list": True},  # one for each tag
    "counts": {"type": "int", "list": True},  # one for each tag
    "clicks": {"type": "string", "list": True},
    "codes": {"type": "int", "list": True},
    "pixels": {"type": "float", "list": True},  # always 3
    "levels": {"type": "int", "list": True},  # always 2
    "track": {"type": "float", "list": True},  # pairs
    "city": "string",
    "share": "float",
    "y": "int",
}

TAGS = {
    "tag": {"vocabulary": "tags", "words": WORDS},
    "tag_oov": {"vocabulary": "tags", "words": WORDS, "oov_buckets": 3},
    "tag_hash": {"hash": "tags", "buckets": 7},
    "click": {"hash": "clicks", "buckets": 7},
    "code": {"identity": "codes", "buckets": 5, "default": 4},
    "city": {"hash": "city", "buckets": 9},
    "scored": {"weighted": "tag", "weights": "scores"},
    "counted": {"weighted": "tag_hash", "weights": "counts"},
    "city_share": {"weighted": "city", "weights": "share"},
}


def embedding(column: str, **options: Any) -> dict[str, Any]:
    return {"embedding": column, "dimension": 3, **options}


POOLINGS = ["sum", "mean", "sqrtn", "max", "last"]

# NAME: (columns besides TAGS, those of the linear part, those of the dnn part)
Case = tuple[dict[str, Any], list[str], list[str]]
CASES: dict[str, Case] = {
    "multivalent": (
        {
            "tag_x_code": {"cross": ["tags", "codes"], "buckets": 11},
            "tag_x_code_x_city": {"cross": ["tag_oov", "city", "codes"], "buckets": 50},
            "tag_hot": {"indicator": "tag_oov"},
            "cross_hot": {"indicator": "tag_x_code"},
            "tag_mean": embedding("tag"),
            "tag_sum": embedding("tag_hash", combiner="sum"),
            "code_sqrtn": embedding("code", combiner="sqrtn"),
            "cross_mean": embedding("tag_x_code_x_city"),
        },
        ["tag", "tag_oov", "tag_hash", "code", "tag_x_code", "tag_x_code_x_city", "tag_hot"],
        ["tag_hot", "cross_hot", "tag_mean", "tag_sum", "code_sqrtn", "cross_mean"],
    ),
    "weighted": (
        {
            "scored_hot": {"indicator": "scored"},
            "counted_hot": {"indicator": "counted"},
            "scored_mean": embedding("scored"),
            "scored_sum": embedding("scored", combiner="sum"),
            "scored_sqrtn": embedding("scored", combiner="sqrtn"),
            "counted_mean": embedding("counted"),
            "city_sqrtn": embedding("city_share", combiner="sqrtn"),
            "city_sum": embedding("city_share", combiner="sum"),
        },
        ["scored", "counted", "city_share", "scored_hot"],
        ["scored_hot", "counted_hot", "scored_mean", "scored_sum", "scored_sqrtn", "counted_mean",
         "city_sqrtn", "city_sum"],
    ),
    "shared": (
        {
            "tag_e": embedding("tag_hash", shared="topics"),
            "click_e": embedding("click", shared="topics"),
            "counted_e": embedding("counted", shared="topics", combiner="sum"),
            "last_e": embedding("click", shared="topics", pooling="last"),
            "own_e": embedding("click"),
        },
        ["tag_hash", "click"],
        ["tag_e", "own_e", "click_e", "counted_e", "last_e"],
    ),
    "max_norm": (
        {
            "tag_e": embedding("tag_hash", max_norm=0.4),
            "scored_e": embedding("scored", max_norm=0.5, combiner="sqrtn"),
            "city_e": embedding("city", max_norm=0.5),
            "click_e": embedding("click", shared="t", max_norm=0.3),
            "click_max": embedding("click", shared="t", max_norm=0.3, pooling="max"),
        },
        ["tag"],
        ["tag_e", "scored_e", "city_e", "click_e", "click_max"],
    ),
    "shape": (
        {
            "pixels": {"numeric": "pixels", "shape": 3, "mean": 0.5, "stddev": 2},
            "levels": {"numeric": "levels", "shape": 2},
            "pixel_bucket": {"bucketized": "pixels", "boundaries": [-1, 0, 1.5], "shape": 3},
            "level_bucket": {"bucketized": "levels", "boundaries": [1, 2], "shape": 2},
            "pixel_hot": {"indicator": "pixel_bucket"},
            "pixel_e": embedding("pixel_bucket", combiner="sqrtn"),
            "pixel_x_city": {"cross": ["pixel_bucket", "city", "level_bucket"], "buckets": 100},
        },
        ["pixels", "pixel_bucket", "level_bucket", "pixel_x_city"],
        ["pixels", "levels", "pixel_hot", "pixel_e"],
    ),
    "sequence": (
        {
            **{f"tag_{p}": embedding("tag", pooling=p) for p in POOLINGS},
            **{f"code_{p}": embedding("code", pooling=p) for p in ("max", "last")},
            **{
                f"track_{p}": {"sequence_numeric": "track", "pooling": p, "shape": 2, "mean": 0.25}
                for p in POOLINGS
            },
            "scores_max": {"sequence_numeric": "scores", "pooling": "max", "stddev": 3},
        },
        ["tag", "track_last", "scores_max"],
        [*(f"{c}_{p}" for c in ("tag", "track") for p in POOLINGS), "code_max", "code_last",
         "scores_max"],
    ),
}


def write_rows(path: pathlib.Path, rng: random.Random) -> None:
    def number() -> str:
        return str(np.float32(rng.choice([-1.5, 0, 0.25, 1, rng.gauss(0, 1)])))

    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(INPUTS)
        for _ in range(ROWS):
            tags = [rng.choice([*WORDS, "pink", "gold"]) for _ in range(rng.randrange(5))]
            lists = [
                tags,
                [number() for _ in tags],
                [str(rng.randrange(-1, 4)) for _ in tags],
                [rng.choice("abcdefgh") for _ in range(rng.randrange(4))],
                [str(rng.randrange(-1, 8)) for _ in range(rng.randrange(3))],
                [number() for _ in range(3)],
                [str(rng.randrange(4)) for _ in range(2)],
                [number() for _ in range(2 * rng.randrange(4))],
            ]
            label = int(("red" in tags) + rng.random() > 0.8)
            city = rng.choice(["Rome", "Oslo", "Bonn"])
            # TensorFlow drops a weight of 0 from a dense tensor, and then the weights do not fit.
            share = str(np.float32(rng.choice([-1, 0.5, 2])))
            writer.writerow(["|".join(values) for values in lists] + [city, share, label])


def write_spec(path: pathlib.Path, case: Case, adagrad: dict[str, float], **of_dnn: float) -> None:
    columns, linear, dnn = case
    spec = {
        "inputs": INPUTS,
        "label": "y",
        "columns": {**TAGS, **columns},
        "model": {
            "type": "wide_deep",
            "linear": {"columns": linear, "optimizer": {"ftrl": {"learning_rate": 0.1}}},
            "dnn": {
                "columns": dnn,
                "hidden_units": [8],
                "activation": "tanh",
                "optimizer": {"adagrad": adagrad},
                **of_dnn,
            },
        },
    }
    path.write_text(yaml.safe_dump(spec, sort_keys=False))


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    write_rows(path, random.Random(SEED))
    return path


def assert_close(folder: pathlib.Path, expected: dict[str, np.ndarray]) -> None:
    import tensorflow as tf

    ours = tf.train.load_checkpoint(str(folder))
    for name, value in expected.items():
        got = ours.get_tensor(name).reshape(value.shape)
        np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_in_step_with_keras(case, threads, rows, muster, tmp_path) -> None:
    check_in_step(case, threads, rows, muster, tmp_path)


@pytest.mark.parametrize("case", ["shared", "max_norm"])
def test_regularised_tables_in_step_with_keras(case, rows, muster, tmp_path) -> None:
    check_in_step(case, 2, rows, muster, tmp_path, embedding_l1=0.003, embedding_l2=0.01)


def check_in_step(case, threads, rows, muster, tmp_path, **of_dnn) -> None:
    import tensorflow as tf

    from testbed.tensorflow_peer import model as twin
    from testbed.tensorflow_peer import spec as peer_spec

    spec_path, model_dir = tmp_path / "spec.yaml", tmp_path / "model"
    write_spec(spec_path, CASES[case], {"learning_rate": 0.05}, **of_dnn)
    spec = peer_spec.load(spec_path)
    table = peer_spec.read_csv(spec, rows)
    tf.keras.utils.set_random_seed(7)
    model = twin.TwinModel(spec)
    model(next(twin.batches(table, spec, BATCH))[0])
    before = {name: variable.numpy() for name, (variable, _) in model.named().items()}
    twin.save_for_muster(model, model_dir)

    step = twin.make_step(model)
    losses = [float(step(*batch)) for batch in twin.batches(table, spec, BATCH)]
    flags = ["--model-dir", model_dir, "--no-shuffle", "--batch-size", BATCH, "--epochs", 1]
    trained = muster.event("trained", "train", spec_path, "--train", rows, *flags, "--threads", threads)
    assert trained["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    after = {name: variable.numpy() for name, (variable, _) in model.named().items()}
    for name, value in after.items():
        assert np.abs(value - before[name]).max() > 1e-3, f"{name} was not trained"
    assert_close(model_dir, after)


def input_fn(spec: dict[str, Any], path: pathlib.Path):
    """An Estimator's input_fn that gives the rows in order. Call it outside of graphs."""
    import tensorflow as tf

    from testbed.tensorflow_peer import model as twin
    from testbed.tensorflow_peer import spec as peer_spec

    def constant(tensor):
        if not isinstance(tensor, tf.SparseTensor):
            return tensor.numpy()
        parts = (tensor.indices, tensor.values, tensor.dense_shape)
        return [part.numpy() for part in parts]

    whole, labels = next(twin.batches(peer_spec.read_csv(spec, path), spec, ROWS))
    values = {name: constant(tensor) for name, tensor in whole.items()}
    labels = labels.numpy()[:, np.newaxis]

    def give() -> tf.data.Dataset:
        features = {n: tf.SparseTensor(*v) if isinstance(v, list) else v for n, v in values.items()}
        return tf.data.Dataset.from_tensor_slices((features, labels)).batch(BATCH)

    return give


def test_in_step_with_the_estimator(rows, muster, tmp_path) -> None:
    """tf.estimator itself, with tf.feature_column.shared_embeddings and its names of variables."""
    import tensorflow as tf

    from testbed.tensorflow_peer import columns as peer
    from testbed.tensorflow_peer import model as twin
    from testbed.tensorflow_peer import spec as peer_spec

    v1, fc = tf.compat.v1, tf.feature_column
    spec_path, model_dir = tmp_path / "spec.yaml", tmp_path / "model"
    columns = {
        "tag_hash_e": embedding("tag_hash", shared="topics", max_norm=0.6),
        "click_e": embedding("click", shared="topics", max_norm=0.6),
        "tags_weighted_by_scores_embedding": embedding("scored", combiner="sqrtn"),
        "pixels": {"numeric": "pixels", "shape": 3},
    }
    # In the Estimator's order, which is that of TensorFlow's names.
    dnn = ["click_e", "pixels", "tag_hash_e", "tags_weighted_by_scores_embedding"]
    case = (columns, ["scored", "tag_hash", "code"], dnn)
    write_spec(spec_path, case, {"learning_rate": 0.05, "epsilon": 0})
    spec = peer_spec.load(spec_path)
    given = input_fn(spec, rows)
    with tf.Graph().as_default():
        of = {name: peer.feature_column(spec, name) for name in spec["columns"] if "_e" not in name}
        shared = fc.shared_embeddings(
            [of["click"], of["tag_hash"]], 3, shared_embedding_collection_name="topics", max_norm=0.6
        )
        deep = [*shared, of["pixels"], fc.embedding_column(of["scored"], 3, "sqrtn")]
        wide = [of["scored"], of["tag_hash"], of["code"]]
        config = tf.estimator.RunConfig(save_checkpoints_steps=10**6, tf_random_seed=3)
        estimator = v1.estimator.DNNLinearCombinedClassifier(
            model_dir=str(tmp_path / "estimator"),
            config=config,
            linear_feature_columns=wide,
            linear_optimizer=v1.train.FtrlOptimizer(0.1),
            dnn_feature_columns=deep,
            dnn_hidden_units=[8],
            dnn_activation_fn=tf.nn.tanh,
            dnn_optimizer=v1.train.AdagradOptimizer(0.05, 0.1),
            loss_reduction=v1.losses.Reduction.SUM_OVER_BATCH_SIZE,
        )
        estimator.train(given)
    names = {
        "dnn/input_from_feature_columns/topics": "topics",
        "linear/linear_model/tags_weighted_by_scores/weights": "linear/linear_model/scored/weights",
        "linear/linear_model/tags/weights": "linear/linear_model/tag_hash/weights",
        "linear/linear_model/codes/weights": "linear/linear_model/code/weights",
    }

    def weights(step: int) -> dict[str, np.ndarray]:
        reader = tf.train.load_checkpoint(str(tmp_path / "estimator" / f"model.ckpt-{step}"))
        return {
            names.get(name, name): reader.get_tensor(name)
            for name in reader.get_variable_to_shape_map()
            if name != "global_step" and name.split("/")[-1] not in ("Adagrad", "Ftrl", "Ftrl_1")
        }

    start = weights(0)
    groups = {name: "linear" if name.startswith("linear/") else "dnn" for name in start}
    twin.save_values(spec, {n: (v, groups[n]) for n, v in start.items()}, model_dir)
    flags = ["--model-dir", model_dir, "--no-shuffle", "--batch-size", BATCH, "--epochs", 1]
    muster.run("train", spec_path, "--train", rows, *flags)
    assert_close(model_dir, weights(ROWS // BATCH))
