"""Training against TensorFlow: same weights and rows, and free runs against known results."""

from __future__ import annotations

import pathlib
import shutil
import statistics
import sys
from hashlib import sha256

import numpy as np
import pytest
import yaml

from testbed import kept

# Scores that TensorFlow 2.15 reached with the same models and split (quality reference).
LINEAR_AUC = {(40, 10): 0.8879, (512, 20): 0.8857}
WIDE_DEEP_AUC = 0.9117
# Within which rounding does not grow yet.
FIRST_STEPS = 50


@pytest.fixture(scope="module")
def split(tmp_path_factory, real_data):
    """NAME -> (train CSV, test CSV); data row i is a test row if i % 5 == 4."""
    from testbed.tensorflow_peer.spec import split_csv

    files = {"adult": "adult/adult.csv", "titanic": "titanic/train.csv"}
    folder = tmp_path_factory.mktemp("split")
    made = {}
    for name, file in files.items():
        made[name] = (folder / f"{name}_train.csv", folder / f"{name}_test.csv")
        split_csv(real_data(file), *made[name])
    return made


def variant(spec_path: pathlib.Path, model_type: str, out: pathlib.Path) -> pathlib.Path:
    """The example with only its linear or dnn part."""
    spec = yaml.load(spec_path.read_text(), Loader=yaml.BaseLoader)
    if model_type != "wide_deep":
        spec["model"] = {"type": model_type, model_type: spec["model"][model_type]}
    out.write_text(yaml.safe_dump(spec, sort_keys=False))
    return out


@pytest.mark.parametrize(
    "example, model_type, batch",
    [
        ("adult", "linear", 40),
        ("adult", "dnn", 40),
        ("adult", "wide_deep", 40),
        ("titanic", "wide_deep", 32),
    ],
)
def test_one_epoch_from_the_same_weights(
    example, model_type, batch, split, muster, repository, tmp_path
):
    import tensorflow as tf

    from testbed.tensorflow_peer import model as twin
    from testbed.tensorflow_peer import spec as peer_spec

    train_csv, test_csv = split[example]
    spec_path = variant(
        repository / "examples" / example / f"{example}.yaml", model_type, tmp_path / "spec.yaml"
    )
    spec = peer_spec.load(spec_path)
    train = peer_spec.read_csv(spec, train_csv)
    test = peer_spec.read_csv(spec, test_csv)
    tf.keras.utils.set_random_seed(7)
    model = twin.TwinModel(spec)
    batches = list(twin.batches(train, spec, batch))
    model(batches[0][0])
    step = twin.make_step(model)
    first, whole = tmp_path / "first", tmp_path / "whole"
    for model_dir in (first, whole):
        twin.save_for_muster(model, model_dir)

    def compare(model_dir: pathlib.Path, losses: list[float], *flags: object, loss: float) -> None:
        p = np.clip(twin.predict(model, test), 1e-7, 1 - 1e-7)
        y = test[""]
        evaluation = float(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))
        data = ("--train", train_csv, "--eval", test_csv, "--model-dir", model_dir)
        flags = (*data, "--no-shuffle", "--batch-size", batch, "--epochs", 1, *flags)
        events = muster.json("train", spec_path, *flags)
        trained = next(e for e in events if e["event"] == "trained")
        evaluated = next(e for e in events if e["event"] == "evaluated")
        rows = [len(labels) for _, labels in batches[: len(losses)]]
        assert trained["examples"] == sum(rows)
        assert trained["loss"] == pytest.approx(np.average(losses, weights=rows), rel=loss)
        assert evaluated["average_loss"] == pytest.approx(evaluation, rel=loss)

    steps = [float(step(features, labels)) for features, labels in batches[:FIRST_STEPS]]
    compare(first, steps, "--max-steps", FIRST_STEPS, loss=1e-6)
    # Every weight, not only the loss.
    ours = tf.train.load_checkpoint(str(first))
    for name, (variable, _) in model.named().items():
        ours_value = ours.get_tensor(name).reshape(variable.shape)
        np.testing.assert_allclose(ours_value, variable.numpy(), 1e-4, 1e-6, err_msg=name)

    # Rounding grows where a ReLU is switched: TensorFlow itself, begun with weights of which each is
    # one part in 10^7 larger, ends the epoch of adult's wide & deep model with a loss that differs
    # by 1.7e-3.
    steps += [float(step(features, labels)) for features, labels in batches[FIRST_STEPS:]]
    compare(whole, steps, loss=5e-3)


def train_and_evaluate(muster, spec, train, test, folder, **flags) -> dict:
    shutil.rmtree(folder, ignore_errors=True)
    extra = [part for name, value in flags.items() for part in (f"--{name.replace('_', '-')}", value)]
    arguments = ["train", spec, "--train", train, "--eval", test, "--model-dir", folder, *extra]
    return muster.event("evaluated", *arguments)


@pytest.fixture(scope="module")
def adult_records(split, muster, repository, tmp_path_factory):
    """Adult as TFRecord shards: (train glob, test glob)."""
    folder = tmp_path_factory.mktemp("adult")
    globs = []
    for part, csv in zip(("train", "test"), split["adult"]):
        out = folder / part
        spec = repository / "examples/adult/adult.yaml"
        muster.run("records", "from-csv", csv, "--spec", spec, "--out", out, "--shards", 4)
        globs.append(f"{out}/part-*.tfrecord")
    return globs


@pytest.mark.parametrize("batch, epochs", LINEAR_AUC)
def test_linear_auc_is_tensorflows(batch, epochs, adult_records, muster, repository, tmp_path):
    spec = variant(repository / "examples/adult/adult.yaml", "linear", tmp_path / "linear.yaml")
    result = train_and_evaluate(
        muster, spec, *adult_records, tmp_path / "model", batch_size=batch, epochs=epochs
    )
    assert result["auc"] == pytest.approx(LINEAR_AUC[batch, epochs], abs=5e-4)


def test_wide_deep_auc_over_ten_seeds(adult_records, muster, repository, tmp_path):
    spec = repository / "examples/adult/adult.yaml"
    aucs = [
        train_and_evaluate(
            muster, spec, *adult_records, tmp_path / "model", batch_size=512, epochs=20, seed=seed
        )["auc"]
        for seed in range(1, 11)
    ]
    assert len(set(aucs)) == 10, "the seeds made no difference"
    assert statistics.mean(aucs) == pytest.approx(WIDE_DEEP_AUC, abs=0.002), aucs


def test_clicks_reach_what_can_be_reached_and_what_tensorflow_reaches(muster, repository, tmp_path):
    """200,000 sampled rows to train on, 50,000 others with a known best AUC to score."""
    train_csv, test_csv = tmp_path / "train.csv", tmp_path / "test.csv"
    muster.run("sample", "clicks", "--rows", 200_000, "--seed", 1, "--out", train_csv)
    sampled = muster.json("sample", "clicks", "--rows", 50_000, "--seed", 2, "--out", test_csv)[-1]
    spec_path = repository / "examples/clicks/clicks.yaml"
    result = train_and_evaluate(muster, spec_path, train_csv, test_csv, tmp_path / "model")
    assert result["auc"] > sampled["best_auc"] - 0.01

    files = (spec_path, train_csv, test_csv)
    made = kept.folder(
        tmp_path / "tensorflow", sys.executable, *(sha256(f.read_bytes()).hexdigest() for f in files),
        make=lambda folder: write_tensorflows_auc(folder / "auc", *files),
    )  # fmt: skip
    assert result["auc"] == pytest.approx(float((made / "auc").read_text()), abs=0.002)


def write_tensorflows_auc(
    out: pathlib.Path, spec_path: pathlib.Path, train_csv: pathlib.Path, test_csv: pathlib.Path
) -> bool:
    import tensorflow as tf

    from testbed.tensorflow_peer import model as twin
    from testbed.tensorflow_peer import spec as peer_spec

    spec = peer_spec.load(spec_path)
    train, test = (peer_spec.read_csv(spec, path) for path in (train_csv, test_csv))
    tf.keras.utils.set_random_seed(3)
    random = np.random.default_rng(3)
    model = twin.TwinModel(spec)
    size = int(spec["train"]["batch_size"])
    model(next(twin.batches(train, spec, size))[0])
    step = twin.make_step(model)
    for _ in range(int(spec["train"]["epochs"])):
        for features, labels in twin.batches(train, spec, size, random.permutation(len(train[""]))):
            step(features, labels)
    auc = tf.keras.metrics.AUC(num_thresholds=20_000)
    auc.update_state(test[""], twin.predict(model, test))
    out.write_text(repr(float(auc.result())))
    return True
