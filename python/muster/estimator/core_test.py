"""Tests estimators end to end, with the program that MUSTER_BINARY names; without TensorFlow."""

from __future__ import annotations

import csv
import itertools
import random

import numpy as np
import pandas as pd
import pytest

from muster import estimator, feature_column

SEED = 5
ROWS = 300
BATCH = 32


def make_rows() -> list:
    draw = random.Random(SEED)
    rows = []
    for _ in range(ROWS):
        age, job = draw.uniform(18, 80), draw.choice(["clerk", "cook", "smith", "other"])
        rich = draw.random() < (0.8 if job == "smith" or age > 60 else 0.2)
        rows.append({"age": round(age, 2), "job": job, "rich": int(rich)})
    return rows


DATA = make_rows()


def batches(size: int = BATCH, epochs: int = 1):
    for _ in range(epochs):
        for start in range(0, ROWS, size):
            part = DATA[start : start + size]
            features = {name: [row[name] for row in part] for name in ("age", "job")}
            yield features, [row["rich"] for row in part]


def write_csv(path):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, ["age", "job", "rich"])
        writer.writeheader()
        writer.writerows(DATA)
    return path


def columns() -> tuple:
    age = feature_column.numeric_column("age", normalizer_fn=lambda x: (x - 49) / 18)
    bucket = feature_column.bucketized_column(feature_column.numeric_column("age"), [30, 60])
    job = feature_column.categorical_column_with_vocabulary_list("job", ["clerk", "cook", "smith"])
    cross = feature_column.crossed_column([bucket, "job"], 100)
    return [bucket, job, cross], [age, feature_column.embedding_column(job, 4)]


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Returns the folder for temporary files, in which nothing may be left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def make(model_dir, **options) -> estimator.DNNLinearCombinedClassifier:
    wide, deep = columns()
    return estimator.DNNLinearCombinedClassifier(
        model_dir=model_dir,
        linear_feature_columns=wide,
        linear_optimizer=estimator.optimizers.Ftrl(0.1),
        dnn_feature_columns=deep,
        dnn_optimizer=lambda: estimator.optimizers.Adagrad(0.05),
        dnn_hidden_units=[16, 8],
        **options,
    )


def test_train_evaluate_predict(tmp_path, temporary) -> None:
    model = make(tmp_path / "model")
    assert model.train(lambda: batches(epochs=60)) is model
    metrics = model.evaluate(batches)
    assert metrics["global_step"] == 60 * 10
    assert metrics["accuracy"] > metrics["accuracy_baseline"] + 0.05 and metrics["auc"] > 0.7
    rows = list(model.predict(batches))
    assert len(rows) == ROWS
    assert set(rows[0]) == {
        "logits", "logistic", "probabilities", "class_ids", "classes", "all_class_ids",
        "all_classes",
    }  # fmt: skip
    right = [row["class_ids"][0] == data["rich"] for row, data in zip(rows, DATA)]
    assert np.mean(right) == pytest.approx(metrics["accuracy"], abs=1e-6)
    assert rows[0]["probabilities"].dtype == np.float32
    assert rows[0]["probabilities"].sum() == pytest.approx(1, abs=1e-6)
    assert rows[0]["classes"].tolist() in ([b"0"], [b"1"])
    assert rows[0]["all_classes"].tolist() == [b"0", b"1"]


def test_every_form_of_input_trains_the_same_model(tmp_path, temporary) -> None:
    path = write_csv(tmp_path / "data.csv")
    table = pd.DataFrame(DATA)
    arrays = {name: table[name].to_numpy() for name in ("age", "job")}
    inputs = estimator.inputs
    forms = {
        "lists": batches,
        "arrays": lambda: (
            ({k: np.array(v) for k, v in f.items()}, np.array(y)) for f, y in batches()
        ),
        "columns": lambda: (
            ({k: np.array(v)[:, None] for k, v in f.items()}, np.array(y, bool)[:, None])
            for f, y in batches()
        ),
        "numpy_input_fn": inputs.numpy_input_fn(
            arrays, table["rich"].to_numpy(), BATCH, shuffle=False
        ),
        "pandas_input_fn": inputs.pandas_input_fn(
            table[["age", "job"]], table["rich"], BATCH, shuffle=False
        ),
        "csv": lambda: inputs.csv(path, label="rich", batch_size=BATCH, shuffle=False),
    }
    losses = {}
    for name, form in forms.items():
        model = make(tmp_path / name).train(form)
        losses[name] = model.evaluate(form)["average_loss"]
        assert model.evaluate(form, steps=2)["average_loss"] != losses[name]
    assert len(set(losses.values())) == 1, losses


def test_values_of_several_dimensions(tmp_path) -> None:
    """For example images in their own shape, as rows of batches and one by one."""
    images = np.arange(8 * 28 * 28, dtype=np.float32).reshape(8, 28, 28) / 6272
    pixels = feature_column.numeric_column("image", shape=[28, 28])
    flat = feature_column.numeric_column("image", shape=784)
    losses = []
    for name, column, data in (("a", pixels, images), ("b", flat, images.reshape(8, 784))):
        model = estimator.LinearRegressor([column], tmp_path / name)
        batch = {"image": data}, np.arange(8, dtype=np.float32)
        model.train(lambda batch=batch: [batch], steps=1)
        losses.append(model.evaluate(lambda batch=batch: [batch])["average_loss"])
        assert model.get_variable_value("linear/linear_model/image/weights").shape == (784, 1)
    assert losses[0] == losses[1]


def test_steps_bound_an_endless_input(tmp_path, temporary) -> None:
    model = make(tmp_path / "model")
    endless = lambda: itertools.cycle(batches())  # noqa: E731
    model.train(endless, steps=7)
    model.train(endless, steps=5)
    assert model.evaluate(endless, steps=3)["global_step"] == 12
    model.train(endless, max_steps=20)
    assert model.evaluate(batches)["global_step"] == 20
    taken = []

    def noticed():
        for batch in batches():
            taken.append(1)
            yield batch

    model.train(noticed, max_steps=20)
    assert taken == [], "a model that has its steps reads no data"
    first = list(itertools.islice(model.predict(endless), 100))
    assert len(first) == 100


def test_one_batch_is_every_batch(tmp_path, temporary) -> None:
    model = make(tmp_path / "model")
    one = lambda: next(batches())  # noqa: E731
    with pytest.raises(ValueError, match="say steps or max_steps"):
        model.train(one)
    model.train(one, steps=4)
    assert model.evaluate(one)["global_step"] == 4
    assert len(list(model.predict(one))) == BATCH


def test_batches_of_predictions(tmp_path, temporary) -> None:
    model = make(tmp_path / "model").train(batches)
    singles = list(model.predict(batches, predict_keys=["logits", "class_ids"]))
    groups = list(model.predict(batches, ["logits"], yield_single_examples=False))
    assert [group["logits"].shape for group in groups] == [(BATCH, 1)] * 9 + [(ROWS - 9 * BATCH, 1)]
    assert set(singles[0]) == {"logits", "class_ids"}
    np.testing.assert_array_equal(
        np.concatenate([group["logits"] for group in groups]),
        np.stack([row["logits"] for row in singles]),
    )
    with pytest.raises(ValueError, match="Expected to run at least one output"):
        next(model.predict(batches, predict_keys="nothing"))


def test_input_fn_is_told_mode_config_and_params(tmp_path, temporary) -> None:
    told = []

    def input_fn(mode, config, params):
        told.append((mode, config.model_dir, params))
        return batches()

    folder = str(tmp_path / "model")
    model = make(folder).train(input_fn)
    model.evaluate(input_fn)
    next(model.predict(input_fn))
    assert told == [(mode, folder, {}) for mode in ("train", "eval", "infer")]


def test_an_error_of_the_input_is_raised_and_no_step_saved(tmp_path, temporary) -> None:
    class Broken(Exception):
        pass

    def broken():
        yield from batches()
        raise Broken("no more")

    model = make(tmp_path / "model")
    with pytest.raises(Broken, match="no more"):
        model.train(broken)
    assert model.latest_checkpoint() is None and not (tmp_path / "model").exists(), "as it began"
    model.train(batches)
    with pytest.raises(Broken):
        model.evaluate(broken)
    with pytest.raises(Broken):
        list(model.predict(broken))


def test_label_words(tmp_path, temporary) -> None:
    def with_words():
        for features, labels in batches():
            yield features, ["rich" if label else "poor" for label in labels]

    model = make(tmp_path / "words", label_vocabulary=["poor", "rich"]).train(with_words)
    plain = make(tmp_path / "plain").train(batches)
    assert model.evaluate(with_words) == plain.evaluate(batches)
    assert next(model.predict(batches))["all_classes"].tolist() == [b"poor", b"rich"]
    with pytest.raises(ValueError, match="labels with a label_vocabulary are strings"):
        model.train(batches)
    with pytest.raises(ValueError, match="label_vocabulary"):
        plain.train(with_words)


def test_an_export_is_a_saved_model(tmp_path, temporary) -> None:
    model = make(tmp_path / "model").train(batches)
    wide, deep = columns()
    spec = feature_column.make_parse_example_spec(wide + deep)
    receiver = estimator.export.build_parsing_serving_input_receiver_fn(spec)
    paths = [model.export_saved_model(tmp_path / "out", receiver) for _ in range(2)]
    assert paths[0] != paths[1]
    for path in paths:
        assert (tmp_path / "out" / path.decode() / "saved_model.pb").is_file()
    short = estimator.export.build_raw_serving_input_receiver_fn({"age": None})
    with pytest.raises(ValueError, match="Feature job is not in features"):
        model.export_saved_model(tmp_path / "out", short)
    with pytest.raises(ValueError, match="build_parsing_serving_input_receiver_fn"):
        model.export_saved_model(tmp_path / "out", lambda: None)


def test_a_checkpoint_that_is_named(tmp_path, temporary) -> None:
    model = make(tmp_path / "model").train(batches, steps=5)
    early = model.latest_checkpoint()
    at_5, rows = model.evaluate(batches), list(model.predict(batches, ["logits"]))
    model.train(batches, steps=5)
    assert model.evaluate(batches)["global_step"] == 10
    assert model.evaluate(batches, checkpoint_path=early) == at_5
    again = list(model.predict(batches, ["logits"], checkpoint_path=early))
    assert [row["logits"] for row in again] == [row["logits"] for row in rows]
    receiver = make_receiver()
    exported = set()
    for path in (None, early):
        folder = model.export_saved_model(tmp_path / "out", receiver, checkpoint_path=path)
        data = tmp_path / "out" / folder.decode() / "variables/variables.data-00000-of-00001"
        exported.add(data.read_bytes())
    assert len(exported) == 2, "the weights of two checkpoints"
    with pytest.raises(ValueError, match="there is no .*model.ckpt-6.index"):
        model.evaluate(batches, checkpoint_path=str(tmp_path / "model/model.ckpt-6"))
    with pytest.raises(ValueError, match="has no model.yaml.*that it was trained in"):
        make(tmp_path / "other").evaluate(batches, checkpoint_path=early)


def make_receiver():
    wide, deep = columns()
    spec = feature_column.make_parse_example_spec(wide + deep)
    return estimator.export.build_parsing_serving_input_receiver_fn(spec)


@pytest.mark.parametrize("form", ["batches", "files"])
def test_train_and_evaluate(form, tmp_path, temporary) -> None:
    folder = tmp_path / "model"
    config = estimator.RunConfig(save_checkpoints_steps=10, keep_checkpoint_max=None)
    model = make(folder, config=config)
    receiver = make_receiver()
    train, held_out = (lambda: itertools.cycle(batches())), batches
    if form == "files":
        path = write_csv(tmp_path / "data.csv")
        read = lambda epochs: estimator.inputs.csv(  # noqa: E731
            path, label="rich", batch_size=BATCH, shuffle=False, num_epochs=epochs
        )
        train, held_out = (lambda: read(None)), (lambda: read(1))
    metrics, exports = estimator.train_and_evaluate(
        model,
        estimator.TrainSpec(train, max_steps=50),
        estimator.EvalSpec(
            held_out,
            steps=None,
            name="held_out",
            start_delay_secs=0,
            throttle_secs=0,
            exporters=[
                estimator.FinalExporter("last", receiver),
                estimator.LatestExporter("all", receiver, exports_to_keep=3),
            ],
        ),
    )
    assert metrics["global_step"] == 50
    again = model.evaluate(held_out)
    del metrics["loss"], again["loss"]  # they are means over batches, whose sizes differ
    assert metrics == {name: pytest.approx(value, rel=1e-6) for name, value in again.items()}
    for name, exported, kept in zip(("last", "all"), exports, (1, 3)):
        assert exported is not None and exported.decode().startswith(str(folder / "export" / name))
        assert len(list((folder / "export" / name).iterdir())) == kept
    assert list((folder / "eval_held_out").iterdir())

    metrics, exports = estimator.train_and_evaluate(
        model,
        estimator.TrainSpec(train, max_steps=50),
        estimator.EvalSpec(held_out, exporters=estimator.BestExporter("best", receiver)),
    )
    assert metrics["global_step"] == 50 and len(exports) == 1


def test_early_stopping(tmp_path, temporary) -> None:
    config = estimator.RunConfig(save_checkpoints_steps=5)
    model = make(tmp_path / "model", config=config)
    stop = estimator.experimental.stop_if_lower_hook(model, "loss", 100.0)
    metrics, _ = estimator.train_and_evaluate(
        model,
        estimator.TrainSpec(lambda: itertools.cycle(batches()), max_steps=500, hooks=[stop]),
        estimator.EvalSpec(batches, start_delay_secs=0, throttle_secs=0),
    )
    assert metrics["global_step"] < 100
    with pytest.raises(TypeError, match="Hooks must be a SessionRunHook"):
        model.train(batches, hooks=[object()])


def test_warm_start(tmp_path, temporary) -> None:
    first = make(tmp_path / "first").train(lambda: batches(epochs=5))
    start = str(tmp_path / "first")
    second = make(tmp_path / "second", warm_start_from=start).train(lambda: batches(), steps=1)
    third = make(tmp_path / "third").train(batches, steps=1)
    losses = [model.evaluate(batches)["average_loss"] for model in (first, second, third)]
    assert abs(losses[1] - losses[0]) < abs(losses[2] - losses[0])
    part = estimator.WarmStartSettings(start, vars_to_warm_start=["linear/", "dnn/logits"])
    make(tmp_path / "part", warm_start_from=part).train(batches, steps=1)
    with pytest.raises(ValueError, match="Muster finds changed vocabularies by itself"):
        settings = estimator.WarmStartSettings(start, var_name_to_vocab_info={"x": 1})
        make(tmp_path / "bad", warm_start_from=settings).train(batches, steps=1)


def test_a_model_trained_on_files_takes_batches_and_the_other_way_round(
    tmp_path, temporary
) -> None:
    path = write_csv(tmp_path / "data.csv")
    read = lambda: estimator.inputs.csv(path, label="rich")  # noqa: E731
    make(tmp_path / "files").train(read)
    again = make(tmp_path / "files")
    results = again.evaluate(batches), again.evaluate(read)
    assert results[0]["average_loss"] == results[1]["average_loss"]
    again.train(batches, steps=3)
    assert "dnn/logits/kernel" in again.get_variable_names()
    batch_model = make(tmp_path / "batches").train(batches)
    with pytest.raises(ValueError, match="label 'rich' of the files: the model learns 'label'"):
        batch_model.evaluate(read)
