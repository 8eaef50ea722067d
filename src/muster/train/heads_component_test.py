"""Every head with every model against tf.estimator's head on the same rows and weights: the loss of
each step and the weights after an epoch, the metrics, the predictions and the exported model."""

from __future__ import annotations

import csv
import json
import pathlib

import numpy as np
import pytest
import yaml

SEED = 20261121
BATCH = 32
COLORS = ["red", "green", "blue", "black"]
WORDS = ["ant", "bee", "cat"]

MODELS = {
    "baseline": {"type": "baseline"},
    "linear": {"type": "linear", "linear": {"columns": ["color", "tag", "x", "color_counts"]}},
    "dnn": {
        "type": "dnn",
        "dnn": {"columns": ["x", "z", "tag_embedding"], "hidden_units": ["8", "5"], "activation": "tanh"},
    },
    "wide_deep": {
        "type": "wide_deep",
        "linear": {"columns": ["color", "tag"], "optimizer": {"ftrl": {"learning_rate": "0.1"}}},
        "dnn": {
            "columns": ["x", "z", "tag_embedding"],
            "hidden_units": ["8"],
            "activation": "tanh",
            "optimizer": {"adagrad": {"learning_rate": "0.05"}},
        },
    },
}

# Name -> head, label, the label's input, a cell of a row whose hidden score is s.
HEADS = {
    "binary": ("binary", "y", "int", lambda rng, s: int(s > rng.normal())),
    "multi_class": (
        "multi_class",
        {"input": "y", "words": WORDS},
        "string",
        lambda rng, s: WORDS[int(np.clip(s + rng.normal() + 1.5, 0, 2))],
    ),
    "multi_class_numbers": (
        {"multi_class": {"classes": "4"}},
        "y",
        "int",
        lambda rng, s: int(np.clip(s + rng.normal() + 2, 0, 3)),
    ),
    "multi_label": (
        "multi_label",
        {"input": "y", "words": WORDS},
        {"type": "string", "list": "true"},
        lambda rng, s: "|".join(w for i, w in enumerate(WORDS) if s + rng.normal() > i - 1),
    ),
    "multi_label_vector": (
        {"multi_label": "3"},
        "y",
        {"type": "int", "list": "true"},
        lambda rng, s: "|".join(str(int(s + rng.normal() > i - 1)) for i in range(3)),
    ),
    "regression": ("regression", "y", "float", lambda rng, s: round(2 * s + rng.normal(), 4)),
    "regression_of_two": (
        {"regression": {"label_dimension": "2"}},
        "y",
        {"type": "float", "list": "true"},
        lambda rng, s: f"{s + rng.normal():.4f}|{1 - s:.4f}",
    ),
    "poisson": ({"regression": "poisson"}, "y", "int", lambda rng, s: rng.poisson(np.exp(s / 2))),
    "log_normal": (
        {"regression": "log_normal"},
        "y",
        "float",
        lambda rng, s: round(float(np.exp(s + rng.normal() / 2)), 5),
    ),
    "logistic": (
        {"regression": "logistic"},
        "y",
        "float",
        lambda rng, s: round(float(1 / (1 + np.exp(-s - rng.normal()))), 4),
    ),
}

CASES = [(head, "wide_deep", "w") for head in HEADS]
CASES += [(head, kind, "") for head in ("binary", "multi_class", "poisson") for kind in MODELS]
CASES += [("multi_label", "linear", "w"), ("regression", "dnn", "w"), ("regression", "baseline", "w")]


def write_rows(path: pathlib.Path, head: str, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cell = HEADS[head][3]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "z", "color", "tag", "w", "y"])
        for _ in range(rows):
            x, z = (round(float(v), 3) for v in rng.normal(size=2))
            color, tag = rng.integers(len(COLORS)), rng.integers(40)
            score = x + 0.5 * z * x + (color - 1.5) / 2
            weight = rng.choice([0, 0.5, 1, 2.25])
            writer.writerow([x, z, COLORS[color], f"tag{tag}", weight, cell(rng, score)])


def write_spec(path: pathlib.Path, head: str, model: str, weight: str) -> None:
    head_spec, label, label_input, _ = HEADS[head]
    spec = {
        "inputs": {
            "x": "float", "z": "float", "color": "string", "tag": "string", "w": "float", "y": label_input,
        },
        "label": label,
        "columns": {
            "x": {"numeric": "x"},
            "z": {"numeric": "z"},
            "color": {"vocabulary": "color", "words": COLORS},
            "color_counts": {"indicator": "color"},
            "tag": {"hash": "tag", "buckets": "30"},
            "tag_embedding": {"embedding": "tag", "dimension": "4"},
        },
        "model": MODELS[model],
        "head": head_spec,
    }
    if weight:
        spec["weight"] = weight
    path.write_text(yaml.safe_dump(spec, sort_keys=False))


class Trained:
    """A model trained by muster and by TensorFlow from the same weights, row for row."""

    def __init__(self, muster, folder: pathlib.Path, head: str, model: str, weight: str):
        import tensorflow as tf

        from testbed.tensorflow_peer import model as twin
        from testbed.tensorflow_peer import spec as peer_spec

        self.train_csv, self.test_csv = folder / "train.csv", folder / "test.csv"
        write_rows(self.train_csv, head, 500, SEED)
        write_rows(self.test_csv, head, 150, SEED + 1)
        spec_path = folder / "spec.yaml"
        write_spec(spec_path, head, model, weight)
        self.spec = peer_spec.load(spec_path)
        train = peer_spec.read_csv(self.spec, self.train_csv)
        self.test = peer_spec.read_csv(self.spec, self.test_csv)

        tf.keras.utils.set_random_seed(SEED)
        self.twin = twin.TwinModel(self.spec)
        self.twin(next(twin.batches(train, self.spec, BATCH))[0])
        self.model_dir = folder / "model"
        twin.save_for_muster(self.twin, self.model_dir)
        step = twin.make_step(self.twin)
        total = 0.0
        for features, labels in twin.batches(train, self.spec, BATCH):
            total += float(step(features, labels)) * len(labels)
        self.their_loss = total / len(train[""])
        flags = ["train", spec_path, "--train", self.train_csv, "--model-dir", self.model_dir]
        self.our_loss = muster.event(
            "trained", *flags, "--no-shuffle", "--batch-size", BATCH, "--epochs", 1
        )["loss"]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(filter(None, case)))
def trained(request, muster, tmp_path_factory) -> Trained:
    return Trained(muster, tmp_path_factory.mktemp("heads"), *request.param)


def test_loss_and_weights_after_an_epoch(trained) -> None:
    import tensorflow as tf

    assert trained.our_loss == pytest.approx(trained.their_loss, rel=1e-5)
    ours = tf.train.load_checkpoint(str(trained.model_dir))
    for name, (variable, _) in trained.twin.named().items():
        np.testing.assert_allclose(
            ours.get_tensor(name), variable.numpy(), rtol=1e-4, atol=2e-5, err_msg=name
        )


def test_metrics(trained, muster) -> None:
    from testbed.tensorflow_peer import model as twin

    theirs = twin.evaluate(trained.twin, trained.test, 64)
    flags = ["evaluate", "--model-dir", trained.model_dir, "--data", trained.test_csv]
    ours = muster.event("evaluated", *flags, "--batch-size", 64)
    for name, value in theirs.items():
        name = {"auc": "auc_interpolated"}.get(name, name)
        assert ours[name] == pytest.approx(value, rel=1e-4, abs=1e-5), name


def read_events(folder: pathlib.Path) -> dict[str, float]:
    import tensorflow as tf

    values = {}
    for file in folder.glob("events*"):
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            values |= {value.tag: value.simple_value for value in event.summary.value}
    return values


def test_metrics_are_in_events(trained, muster) -> None:
    flags = ["evaluate", "--model-dir", trained.model_dir, "--data", trained.test_csv, "--name", "more"]
    ours = muster.event("evaluated", *flags)
    events = read_events(trained.model_dir / "eval_more")
    for name in set(ours) - {"event", "global_step", "checkpoint", "bad_records"}:
        if ours[name] is not None:
            assert events[name] == pytest.approx(ours[name], rel=1e-5), name


def predictions_of(trained: Trained, muster, folder: pathlib.Path) -> dict[str, list]:
    out = folder / "predictions.jsonl"
    muster.run("predict", "--model-dir", trained.model_dir, "--data", trained.test_csv, "--out", out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    return {name: [row[name] for row in rows] for name in rows[0] if name != "row"}


def test_predictions(trained, muster, tmp_path) -> None:
    """tf.estimator's head makes the same of the twin's logits."""
    from testbed.tensorflow_peer import model as twin
    from testbed.tensorflow_peer.spec import head_of

    theirs = trained.twin.head.predictions(twin.logits_of(trained.twin, trained.test))
    ours = predictions_of(trained, muster, tmp_path)
    assert set(theirs) - set(ours) <= {"all_class_ids", "all_classes", "classes"}
    for name, values in ours.items():
        got = np.array(values)
        if name == "classes":
            words = trained.spec["label"].get("words") or [str(i) for i in range(10)]
            assert [[words[i] for i in row] for row in ours["class_ids"]] == values
        elif name == "class_ids":
            logits = np.array(ours["logits"])
            wide = np.concatenate([0 * logits, logits], 1) if head_of(trained.spec)["width"] == 1 else logits
            top = np.sort(wide, 1)
            sure = top[:, -1] - top[:, -2] > 1e-3
            np.testing.assert_array_equal(got[sure], theirs[name].numpy()[sure])
        else:
            np.testing.assert_allclose(got, theirs[name].numpy(), rtol=2e-3, atol=2e-4, err_msg=name)


def example_of(trained: Trained, row: int) -> bytes:
    import tensorflow as tf

    example = tf.train.Example()
    for name in ("x", "z"):
        example.features.feature[name].float_list.value.append(trained.test[name][row])
    for name in ("color", "tag"):
        example.features.feature[name].bytes_list.value.append(trained.test[name][row])
    return example.SerializeToString()


def test_exported_model(trained, muster, tmp_path) -> None:
    """Each signature gives what `muster predict` gives, with tf.estimator's keys."""
    import tensorflow as tf

    ours = predictions_of(trained, muster, tmp_path)
    muster.run("export", "--model-dir", trained.model_dir, "--out", tmp_path / "saved")
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    rows = len(trained.test[""])
    examples = tf.constant([example_of(trained, row) for row in range(rows)])
    raw = loaded.signatures["serving_default"]
    feed = {
        name: tf.constant(trained.test[name], tensor.dtype)
        for name, tensor in raw.structured_input_signature[1].items()
    }
    theirs = trained.twin.head.predictions(tf.zeros([rows, trained.twin.width]))
    for outputs in (raw(**feed), loaded.signatures["predict"](examples=examples)):
        assert set(outputs) == set(theirs)
        for name, tensor in outputs.items():
            assert tensor.dtype == theirs[name].dtype, name
            assert tensor.shape == theirs[name].shape, name
            if name in ("classes", "class_ids") or name not in ours:
                continue
            np.testing.assert_allclose(tensor, ours[name], rtol=1e-6, atol=1e-6, err_msg=name)
        if "all_class_ids" in theirs:
            np.testing.assert_array_equal(outputs["all_class_ids"], theirs["all_class_ids"])
            words = trained.spec["label"].get("words")
            expected = [w.encode() for w in words] if words else theirs["all_classes"][0].numpy()
            np.testing.assert_array_equal(outputs["all_classes"][rows - 1], expected)
        if "class_ids" in outputs:
            assert np.mean(outputs["class_ids"].numpy() == np.array(ours["class_ids"])) > 0.98
    regression = "predictions" in outputs
    expected = {"serving_default", "predict"} | ({"regression"} if regression else {"classification"})
    if "logistic" in outputs:
        expected.add("regression")
    assert set(loaded.signatures) == expected
    if "classification" in expected:
        classified = loaded.signatures["classification"](inputs=examples)
        np.testing.assert_allclose(classified["scores"], outputs["probabilities"], atol=1e-6)
        assert classified["classes"].shape == outputs["probabilities"].shape
    if "regression" in expected:
        value = outputs["predictions" if regression else "logistic"]
        np.testing.assert_allclose(
            loaded.signatures["regression"](inputs=examples)["outputs"], value, rtol=1e-6, atol=1e-6
        )
