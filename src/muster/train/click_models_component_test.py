"""Factorization machine, DeepFM, DCN-v2 and two towers beside TensorFlow: the same weights and rows step
by step, quality on clicks, exports, and cuts that change no byte."""

from __future__ import annotations

import json
import pathlib
import random
import sys
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from testbed import kept
from testbed.click_models import click_spec, two_tower_spec

ROWS, BATCH, STEPS = 12_800, 256, 50
# kind and rank of the cross layers' matrices
MODELS = [("fm", 0), ("deepfm", 0), ("dcn", 0), ("dcn", 4), ("dcn-parallel", 0), ("dcn-parallel", 4)]
TOPICS = 8


@pytest.fixture(scope="module")
def clicks(muster, tmp_path_factory) -> tuple[pathlib.Path, pathlib.Path, float]:
    """Rows to train on, others to test with, and the best AUC that these allow."""
    folder = tmp_path_factory.mktemp("clicks")
    train, test = folder / "train.csv", folder / "test.csv"
    muster.run("sample", "clicks", "--rows", 100_000, "--seed", 1, "--out", train)
    sampled = muster.json("sample", "clicks", "--rows", 20_000, "--seed", 2, "--out", test)[-1]
    return train, test, sampled["best_auc"]


@pytest.fixture(scope="module")
def few_clicks(muster, tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("clicks") / "clicks.csv"
    muster.run("sample", "clicks", "--rows", ROWS, "--seed", 3, "--out", path)
    return path


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> pathlib.Path:
    """Pairs of users and items: who likes an item's topic clicks it. Popular items come more often."""
    rng = random.Random(20261124)
    path = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    popularity = [1 / (1 + i % 40) for i in range(200)]
    whole = sum(popularity)
    lines = ["user,age,item,topic,price,share,clicked"]
    for _ in range(12_000):
        user, item = rng.randrange(40), rng.choices(range(200), popularity)[0]
        clicked = int(rng.random() < (0.9 if user % TOPICS == item % TOPICS else 0.05))
        lines.append(
            f"u{user},{20 + user % 50},i{item},t{item % TOPICS},{1 + item % 7},"
            f"{popularity[item] / whole:.6g},{clicked}"
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def train(muster, spec: pathlib.Path, data: pathlib.Path, model: pathlib.Path, *flags: object) -> Any:
    events = muster.json("train", spec, "--train", data, "--model-dir", model, *flags)
    return next(event for event in events if event["event"] == "trained")


def assert_same_weights(model_dir: pathlib.Path, wanted: dict[str, np.ndarray]) -> None:
    import tensorflow as tf

    ours = tf.train.load_checkpoint(str(model_dir))
    for name, value in wanted.items():
        got = ours.get_tensor(name).reshape(value.shape)
        np.testing.assert_allclose(got, value, 1e-4, 2e-6, err_msg=name)


@pytest.mark.parametrize("kind, rank", MODELS)
def test_steps_from_the_same_weights(kind, rank, few_clicks, muster, tmp_path) -> None:
    import tensorflow as tf

    from testbed.tensorflow_peer import model as twin
    from testbed.tensorflow_peer import spec as peer_spec

    path = tmp_path / "spec.yaml"
    # With relu one value that rounding turns over would part the two.
    path.write_text(click_spec(kind, rank=rank, activation="tanh"))
    spec = peer_spec.load(path)
    table = peer_spec.read_csv(spec, few_clicks)
    tf.keras.utils.set_random_seed(7)
    model = twin.TwinModel(spec)
    batches = list(twin.batches(table, spec, BATCH))[:STEPS]
    model(batches[0][0])
    begin_as_muster(model, 0.05)
    twin.save_for_muster(model, tmp_path / "model")
    step = twin.make_step(model)
    losses = [float(step(*batch)) for batch in batches]
    flags = ("--no-shuffle", "--batch-size", BATCH, "--max-steps", STEPS)
    trained = train(muster, path, few_clicks, tmp_path / "model", *flags)
    assert trained["loss"] == pytest.approx(np.mean(losses), rel=2e-6)
    wanted = {name: variable.numpy() for name, (variable, _) in model.named().items()}
    assert_same_weights(tmp_path / "model", wanted)


def test_what_models_reach_on_clicks(clicks, muster, tmp_path) -> None:
    """Each is near what can be reached."""
    train_csv, test_csv, best = clicks
    aucs = {
        kind: auc_of(muster, kind, train_csv, test_csv, tmp_path, epochs=2)
        for kind in ("fm", "deepfm", "dcn")
    }
    for kind, away in (("fm", 0.02), ("deepfm", 0.02), ("dcn", 0.035)):
        assert aucs[kind] > best - away, (aucs, best)


def test_tensorflow_reaches_no_more_from_weights_of_its_own(clicks, muster, tmp_path) -> None:
    """From the same weights both take the same steps (above); here each begins as it does by itself."""
    kind = "deepfm"
    train_csv, test_csv, _ = clicks
    half = tmp_path / "half.csv"
    half.write_text("".join(train_csv.read_text().splitlines(keepends=True)[:50_001]))
    auc = auc_of(muster, kind, half, test_csv, tmp_path, epochs=1)
    files = (tmp_path / f"{kind}.yaml", half, test_csv)
    made = kept.folder(
        tmp_path / "tensorflow", sys.executable,
        *(sha256(f.read_bytes()).hexdigest() for f in files),
        make=lambda folder: write_tensorflows_auc(folder / "auc", *files),
    )  # fmt: skip
    theirs = float((made / "auc").read_text())
    assert theirs - 0.006 < auc < theirs + 0.02, (auc, theirs)


def auc_of(
    muster, kind: str, data: pathlib.Path, test: pathlib.Path, folder: pathlib.Path, epochs: int
) -> float:
    path, model = folder / f"{kind}.yaml", folder / kind
    path.write_text(click_spec(kind, epochs=epochs))
    train(muster, path, data, model)
    found = muster.event("evaluated", "evaluate", "--model-dir", model, "--data", test)
    return float(found["auc"])


def write_tensorflows_auc(
    out: pathlib.Path, spec_path: pathlib.Path, train_csv: pathlib.Path, test_csv: pathlib.Path
) -> bool:
    import tensorflow as tf

    from testbed.tensorflow_peer import model as twin
    from testbed.tensorflow_peer import spec as peer_spec

    spec = peer_spec.load(spec_path)
    table, test = (peer_spec.read_csv(spec, path) for path in (train_csv, test_csv))
    tf.keras.utils.set_random_seed(3)
    model, order = twin.TwinModel(spec), np.random.default_rng(3)
    model(next(twin.batches(table, spec, BATCH))[0])
    begin_as_muster(model, 0.01)
    step = twin.make_step(model)
    for batch in twin.batches(table, spec, BATCH, order.permutation(len(table[""]))):
        step(*batch)
    auc = tf.keras.metrics.AUC(num_thresholds=20_000)
    auc.update_state(test[""], twin.predict(model, test))
    out.write_text(repr(float(auc.result())))
    return True


def begin_as_muster(model: Any, deviation: float) -> None:
    """The vectors of a factorization machine begin near 0; TensorFlow's defaults are for other models."""
    import tensorflow as tf

    for i, (variable, group) in enumerate(model.named().values()):
        if group == "fm":
            variable.assign(tf.random.stateless_truncated_normal(variable.shape, [1, i], 0, deviation))


class Towers:
    """The two-tower model of two_tower_spec in plain TensorFlow."""

    def __init__(self, data: pathlib.Path, corrected: bool):
        import tensorflow as tf

        rows = [line.split(",") for line in data.read_text().splitlines()[1:]]
        user, age, item, topic, price, share, clicked = (np.array(column) for column in zip(*rows))
        hashed = {n: tf.strings.to_hash_bucket_fast(v, 500).numpy() for n, v in (("u", user), ("i", item))}
        self.columns = {
            "user": hashed["u"], "age": (age.astype(np.float32) - 40) / 12, "item": hashed["i"],
            "topic": np.array([int(word[1:]) for word in topic]),
            "price": np.log1p(price.astype(np.float32)), "share": share.astype(np.float32),
            "clicked": clicked.astype(np.float32),
        }  # fmt: skip
        self.corrected = corrected
        rng, folder = np.random.default_rng(5), "dnn/input_from_feature_columns/input_layer"
        shapes = {
            f"{folder}/user_vector/embedding_weights": (500, 8),
            f"{folder}/item_vector/embedding_weights": (500, 8),
            f"{folder}/topic_vector/embedding_weights": (8, 4),
            "query/hiddenlayer_0/kernel": (9, 16), "query/hiddenlayer_0/bias": (16,),
            "query/vector/kernel": (16, 8), "query/vector/bias": (8,),
            "item/hiddenlayer_0/kernel": (13, 16), "item/hiddenlayer_0/bias": (16,),
            "item/vector/kernel": (16, 8), "item/vector/bias": (8,),
        }  # fmt: skip
        self.tables = [f"{folder}/{name}_vector/embedding_weights" for name in ("user", "item", "topic")]
        self.variables = {
            name: tf.Variable(rng.normal(0, 0.3, shape).astype(np.float32)) for name, shape in shapes.items()
        }
        self.optimizer = tf.keras.optimizers.legacy.Adagrad(0.1, 0.1, epsilon=1e-7)

    def vectors(self, part: slice) -> tuple[Any, Any]:
        import tensorflow as tf

        def column(name: str) -> Any:
            return self.columns[name][part]

        def tower(name: str, x: Any) -> Any:
            v = self.variables
            x = tf.nn.relu(x @ v[f"{name}/hiddenlayer_0/kernel"] + v[f"{name}/hiddenlayer_0/bias"])
            return tf.math.l2_normalize(x @ v[f"{name}/vector/kernel"] + v[f"{name}/vector/bias"], axis=1)

        users, items, topics = (
            tf.gather(self.variables[table], column(name))
            for table, name in zip(self.tables, ("user", "item", "topic"))
        )
        query = tower("query", tf.concat([users, column("age")[:, None]], 1))
        return query, tower("item", tf.concat([items, topics, column("price")[:, None]], 1))

    def step(self, part: slice) -> float:
        import tensorflow as tf

        reward = self.columns["clicked"][part]
        with tf.GradientTape() as tape:
            query, item = self.vectors(part)
            scores = query @ tf.transpose(item) / 0.1
            if self.corrected:
                scores -= tf.math.log(self.columns["share"][part])[None, :]
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(np.arange(len(reward)), scores)
            loss = tf.reduce_mean(reward * each)
        variables = list(self.variables.values())
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return float(loss)


@pytest.mark.parametrize("corrected", [False, True])
def test_two_towers_from_the_same_weights(corrected, pairs, muster, tmp_path) -> None:
    from testbed.tensorflow_peer import model as twin
    from testbed.tensorflow_peer import spec as peer_spec

    path, size = tmp_path / "spec.yaml", 128
    path.write_text(two_tower_spec(corrected))
    peer = Towers(pairs, corrected)
    values = {
        name: (variable.numpy(), "item" if name.startswith("item") or "item_" in name or "topic" in name
               else "query")
        for name, variable in peer.variables.items()
    }  # fmt: skip
    twin.save_values(peer_spec.load(path), values, tmp_path / "model")
    losses = [peer.step(slice(i * size, (i + 1) * size)) for i in range(STEPS)]
    trained = train(muster, path, pairs, tmp_path / "model", "--no-shuffle", "--max-steps", STEPS)
    assert trained["loss"] == pytest.approx(np.mean(losses), rel=2e-6)
    assert_same_weights(tmp_path / "model", {n: v.numpy() for n, v in peer.variables.items()})

    # The metrics of one batch, by their definition.
    first = tmp_path / "first.csv"
    first.write_text("".join(pairs.read_text().splitlines(keepends=True)[: size + 1]))
    found = muster.event("evaluated", "evaluate", "--model-dir", tmp_path / "model", "--data", first,
                         "--batch-size", size)  # fmt: skip
    query, item = (vectors.numpy() for vectors in peer.vectors(slice(0, size)))
    scores, reward = query @ item.T, peer.columns["clicked"][:size]
    # The same item in another row ties exactly or by rounding: both bounds hold.
    own = np.diag(scores)[:, None]
    others = ~np.eye(size, dtype=bool)
    least, most = ((others & (scores > own + e)).sum(1) for e in (1e-5, -1e-5))
    for name, k in (("accuracy", 1), ("recall/top_5", 5)):
        bounds = [np.average(rank < k, weights=reward) for rank in (most, least)]
        assert bounds[0] - 1e-6 <= found[name] <= bounds[1] + 1e-6, name


def test_two_towers_learn_whose_topic_is_whose(pairs, muster, tmp_path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(two_tower_spec())
    model, lines = tmp_path / "model", pairs.read_text().splitlines()
    train_csv, test_csv = tmp_path / "train.csv", tmp_path / "test.csv"
    train_csv.write_text("\n".join(lines[:9001]) + "\n")
    test_csv.write_text("\n".join([lines[0], *lines[9001:]]) + "\n")
    evaluate = ["evaluate", "--model-dir", model, "--data", test_csv, "--batch-size", 128]
    train(muster, path, train_csv, model, "--max-steps", 1)
    before = muster.event("evaluated", *evaluate)
    train(muster, path, train_csv, model, "--epochs", 15)
    after = muster.event("evaluated", *evaluate)
    assert before["recall/top_5"] < 0.1
    # About 16 items of a batch have the user's topic, so that who knows no more finds 5 of 16 of those.
    assert after["recall/top_5"] > 0.18
    assert after["loss"] < before["loss"] - 0.1
    assert after["accuracy"] <= after["recall/top_5"]


@pytest.mark.parametrize("kind", ["fm", "deepfm", "dcn", "dcn-parallel", "two_tower"])
def test_tensorflow_computes_the_export(kind, few_clicks, pairs, muster, tmp_path) -> None:
    import tensorflow as tf

    path, data = tmp_path / "spec.yaml", pairs if kind == "two_tower" else few_clicks
    path.write_text(two_tower_spec() if kind == "two_tower" else click_spec(kind, rank=4))
    model, saved, out = (tmp_path / name for name in ("model", "saved", "predictions.jsonl"))
    train(muster, path, data, model, "--max-steps", 40)
    muster.run("export", "--model-dir", model, "--out", saved)
    muster.run("predict", "--model-dir", model, "--data", data, "--out", out)
    predictions = [json.loads(line) for line in out.read_text().splitlines()]
    signatures = tf.saved_model.load(str(saved)).signatures

    names, *rows = (line.split(",") for line in data.read_text().splitlines())
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}

    def feed(signature: Any) -> dict[str, Any]:
        tensors = {}
        for name, tensor in signature.structured_input_signature[1].items():
            values = columns[name]
            if tensor.dtype == tf.string:
                tensors[name] = tf.constant([value or "none" for value in values])
            else:
                tensors[name] = tf.constant([float(value or 0) for value in values], tensor.dtype)
        return tensors

    outputs = signatures["serving_default"](**feed(signatures["serving_default"]))
    expected = ["score", "query", "item"] if kind == "two_tower" else ["logits", "logistic"]
    for name in expected:
        wanted = np.array([prediction[name] for prediction in predictions])
        np.testing.assert_allclose(outputs[name].numpy(), wanted, 1e-5, 1e-5, err_msg=name)
    if kind == "two_tower":
        for tower, inputs in (("query", {"user", "age"}), ("item", {"item", "topic", "price"})):
            fed = feed(signatures[tower])
            assert set(fed) == inputs, "each tower is computed from its own inputs"
            np.testing.assert_array_equal(signatures[tower](**fed)[tower], outputs[tower])


@pytest.mark.parametrize("kind", ["deepfm", "dcn", "two_tower"])
@pytest.mark.parametrize("threads", [1, 3])
def test_stopped_trainings_go_on_to_the_same_bytes(
    kind, threads, few_clicks, pairs, muster, tmp_path
) -> None:
    path, data = tmp_path / "spec.yaml", pairs if kind == "two_tower" else few_clicks
    path.write_text(two_tower_spec() if kind == "two_tower" else click_spec(kind, rank=4))
    flags = ("--threads", threads, "--epochs", 2)
    for folder, stops in (("whole", [60]), ("again", [60]), ("parts", [7, 23, 60])):
        for stop in stops:
            train(muster, path, data, tmp_path / folder, *flags, "--max-steps", stop)
    weights = [
        (tmp_path / folder / "model.ckpt-60.data-00000-of-00001").read_bytes()
        for folder in ("whole", "again", "parts")
    ]
    assert weights[0] == weights[1] == weights[2]


def test_inspect_and_messages(few_clicks, muster, tmp_path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(click_spec("deepfm"))
    train(muster, path, few_clicks, tmp_path / "model", "--max-steps", 2)
    assert "fm/n1/kernel" in muster.run("inspect", "--model-dir", tmp_path / "model")
    path.write_text(click_spec("deepfm").replace("type: deepfm", "type: deepmf"))
    refused = muster.fail("train", path, "--train", few_clicks, "--model-dir", tmp_path / "other")
    assert "unknown model 'deepmf' (did you mean 'deepfm'?)" in refused
    path.write_text(click_spec("deepfm").replace("label: label", "label: label\nhead: in_batch_softmax"))
    refused = muster.fail("train", path, "--train", few_clicks, "--model-dir", tmp_path / "other")
    assert "vectors of a two_tower model" in refused
