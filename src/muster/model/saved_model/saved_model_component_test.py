"""TensorFlow runs an exported model and finds what `muster predict` finds, through every signature."""

from __future__ import annotations

import csv
import ctypes
import json
import pathlib
import random
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from testbed.tensorflow_peer import spec as peer_spec

EVERY_COLUMN = pathlib.Path(__file__).parent / "testdata" / "every_column.yaml"
GROWN = pathlib.Path(__file__).parent / "testdata" / "grown.yaml"
MEASURED = pathlib.Path(__file__).parent / "testdata" / "measured.yaml"
NO_INT = -(2**63)  # what a raw input of an imputed column has where there is no number
TOLERANCE = 1e-6
# Both sides add up the first layer in an order of their own.
LOGITS_TOLERANCE = 4e-6
SEED = 20261121

Row = dict[str, Any]  # by field; lists for list fields


def value_of(text: str, field: dict[str, Any]) -> Any:
    """A CSV cell as a value of the field's type. What counts as none by `missing` stays as it is where
    the type has it: the exported model must know that it is none."""
    kind = field["type"]
    convert = {"int": lambda t: int(float(t)), "float": np.float32, "string": str}[kind]
    if field.get("list") == "true":
        return [convert(t) for t in text.split(field.get("separator", "|"))] if text else []
    if text == "" or (kind == "int" and text == "unknown") or (kind == "float" and text == "?"):
        text = field.get("default", {"int": str(NO_INT), "float": "nan", "string": ""}[kind])
    return convert(text)


def read_rows(spec: dict[str, Any], path: pathlib.Path) -> list[Row]:
    with open(path, newline="", encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    return [{n: value_of(row[n], f) for n, f in spec["inputs"].items()} for row in cells]


def is_absent(value: Any, field: dict[str, Any]) -> bool:
    """Whether a row without the value is the same."""
    if "default" in field or field["type"] == "string":
        return value == value_of(field.get("default", ""), field)
    return value == NO_INT if field["type"] == "int" else bool(np.isnan(value))


def example_of(spec: dict[str, Any], row: Row, rng: random.Random) -> bytes:
    """The row as a tf.Example; of values that are the default, half are left out."""
    import tensorflow as tf

    example = tf.train.Example()
    for name, field in spec["inputs"].items():
        values = row[name] if isinstance(row[name], list) else [row[name]]
        may_be_absent = not isinstance(row[name], list) and is_absent(row[name], field)
        if may_be_absent and rng.random() < 0.5:
            continue
        feature = example.features.feature[name]
        if field["type"] == "int":
            feature.int64_list.value.extend(values)
        elif field["type"] == "float":
            feature.float_list.value.extend(map(float, values))
        else:
            feature.bytes_list.value.extend(value.encode() for value in values)
    return example.SerializeToString()


def raw_inputs(signature: Any, rows: list[Row]) -> dict[str, Any]:
    """What serving_default is fed: a tensor a field, lists padded."""
    import tensorflow as tf

    feed = {}
    for name, tensor in signature.structured_input_signature[1].items():
        values = [row[name] for row in rows]
        if tensor.shape.rank == 2:
            longest = max(map(len, values))
            padding = {tf.string: "", tf.int64: -1, tf.float32: np.nan}[tensor.dtype]
            values = [value + [padding] * (longest - len(value)) for value in values]
        feed[name] = tf.constant(values, dtype=tensor.dtype)
    return feed


def every_column_csv(path: pathlib.Path, count: int, rng: random.Random) -> None:
    """Rows that reach every branch of the spec's columns: missing, unknown, on a boundary, lists."""
    cells = {
        "bought": ["yes", "no"],
        "age": ["", "0", "18", "30.5", "17.999999", "64.9", "65", "-3", "90"],
        "income (€)": ["", "0", "1.5", "1000000", "0.001"],
        "visits": ["-5", "0", "1", "2", "3", "9"],
        "city": ["", "Paris", "Köln", "New York", "Oslo", "paris", "x y", "a\tb"],
        "device": ["", "?", "phone", "tablet", "tv"],
        "plan": ["", "10", "-20", "30", "7", str(2**40), "-1"],
        "day": ["", "0", "6", "7", "-3", "77", "77.0", "unknown"],
        "month": ["0", "12", "5", "-1", "-7"],
        "zip-code": ["", "0", "99999", str(2**62), str(-(2**63))],
        "tags": ["", "red", "green|blue", "red|red|pink", "x|y|z|blue|red", "none", "?", "none|?"],
        "codes": ["", "1", "2;3", "4;4;77;-2", "5;0", "77"],
        "share": ["", "0", "2.5", "-1", "-9", "-9.0", "nan"],
        "pixels": ["0.5|1", "-3|7", "0|0"],
        "levels": ["0|1|2", "3|2|1", "7|0|0"],
        "track": ["", "1|2", "-1|4|3|2", "0|0|5|-5|2|2"],
    }
    scores, counts = ["0", "-1.5", "0.25", "2", "1"], ["0", "3", "1", "2"]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["id", *cells, "tag (scores)", "code_counts"])
        writer.writeheader()
        for i in range(count):
            row = {"id": f"row-{i}", **{name: rng.choice(cells[name]) for name in cells}}
            for name, of, separator, choices in (
                ("tag (scores)", "tags", "|", scores),
                ("code_counts", "codes", ";", counts),
            ):
                values = row[of].split(separator) if row[of] not in ("", "none", "?", "77") else []
                row[name] = "|".join(rng.choice(choices) for _ in values)
            writer.writerow(row)


def grown_csv(path: pathlib.Path, count: int, rng: random.Random) -> None:
    """Keys that come often, and keys that come too seldom to have a row."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "user", "item", "seen", "rated", "stars", "clicked"])
        for i in range(count):
            user = rng.choice([-1, -7, 0, 5, 2**62, -(2**62), 10**12 + i])
            item = rng.choice(["", "Köln", "a", "b", f"once-{i}"])
            seen = [rng.choice(["a", "b", "c", "Köln", f"new-{i}"]) for _ in range(rng.randrange(4))]
            rated = [rng.choice([1, 2, 3, -5, 10**9 + i]) for _ in range(rng.randrange(4))]
            stars = [rng.choice([0, 1, 2.5, -1]) for _ in rated]
            lists = ["|".join(map(str, values)) for values in (seen, rated, stars)]
            writer.writerow([i, user, item, *lists, rng.randrange(2)])


def measured_csv(path: pathlib.Path, count: int, rng: random.Random) -> None:
    """Numbers with all that stands for none, far outside of what they are clipped to."""
    cells = {
        "bought": ["yes", "no"],
        "income": ["", "?", "-999", "nan", "0", "12.5", "700", "3000", "2e4", "-50"],
        "visits": ["", "-1", "0", "3", "12", "1000"],
        "age": ["0", "18", "64.5"],
        "rooms": ["", "1", "3", "9"],
        "share": ["-3", "0.25", "-0.5", "0.75"],
        "track": ["", "1", "-1|9", "0|0|-7"],
    }
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["id", *cells])
        writer.writeheader()
        for i in range(count):
            writer.writerow({"id": i, **{name: rng.choice(cells[name]) for name in cells}})


@pytest.fixture(
    scope="module", params=["every_column", "grown", "measured", "titanic", "adult", "clicks"]
)
def case(request, muster, repository, tmp_path_factory) -> tuple[pathlib.Path, pathlib.Path]:
    """A spec and a CSV file of its rows."""
    if request.param == "every_column":
        path = tmp_path_factory.mktemp("data") / "rows.csv"
        every_column_csv(path, 400, random.Random(SEED))
        return EVERY_COLUMN, path
    if request.param == "measured":
        path = tmp_path_factory.mktemp("data") / "rows.csv"
        measured_csv(path, 400, random.Random(SEED))
        return MEASURED, path
    if request.param == "grown":
        path = tmp_path_factory.mktemp("data") / "rows.csv"
        grown_csv(path, 400, random.Random(SEED))
        return GROWN, path
    spec = repository / "examples" / request.param / f"{request.param}.yaml"
    if request.param == "clicks":
        path = tmp_path_factory.mktemp("data") / "clicks.csv"
        muster.run("sample", "clicks", "--rows", 2000, "--seed", 1, "--out", path)
        return spec, path
    real_data = request.getfixturevalue("real_data")
    return spec, real_data({"titanic": "titanic/train.csv", "adult": "adult/adult.csv"}[request.param])


@pytest.fixture(scope="module")
def trained(case, muster, tmp_path_factory) -> dict[str, Any]:
    """A model after one epoch, exported, loaded, with its rows and Muster's predictions."""
    import tensorflow as tf

    spec_path, data = case
    folder = tmp_path_factory.mktemp("export")
    model, saved = folder / "model", folder / "saved_model"
    train = ["train", spec_path, "--train", data, "--model-dir", model, "--epochs", 1]
    muster.run(*train, "--batch-size", 64)
    muster.run("export", "--model-dir", model, "--out", saved)
    out = folder / "predictions.jsonl"
    muster.run("predict", "--model-dir", model, "--data", data, "--out", out)
    spec = peer_spec.load(spec_path)
    return {
        "spec": spec,
        "path": saved,
        "loaded": tf.saved_model.load(str(saved)),
        "rows": read_rows(spec, data),
        "predictions": [json.loads(line) for line in out.read_text().splitlines()],
    }


def assert_same(outputs: dict[str, Any], predictions: list[dict[str, Any]]) -> None:
    assert len(predictions) > 0
    for name in ("logits", "logistic", "probabilities"):
        expected = np.array([p[name] for p in predictions])
        got = outputs[name].numpy()
        assert got.shape == expected.shape, name
        atol = LOGITS_TOLERANCE if name == "logits" else TOLERANCE
        np.testing.assert_allclose(got, expected, rtol=TOLERANCE, atol=atol, err_msg=name)
    # Where the logit is on the edge, either class is right.
    sure = np.abs(outputs["logits"].numpy()[:, 0]) > LOGITS_TOLERANCE
    classes = [[word.decode() for word in row] for row in outputs["classes"].numpy()]
    for i, prediction in enumerate(predictions):
        if sure[i]:
            assert outputs["class_ids"].numpy()[i].tolist() == prediction["class_ids"]
            assert classes[i] == prediction["classes"]


def test_raw_values(trained) -> None:
    signature = trained["loaded"].signatures["serving_default"]
    assert_same(signature(**raw_inputs(signature, trained["rows"])), trained["predictions"])


def test_examples(trained) -> None:
    import tensorflow as tf

    rng = random.Random(SEED)
    examples = [example_of(trained["spec"], row, rng) for row in trained["rows"]]
    outputs = trained["loaded"].signatures["predict"](examples=tf.constant(examples))
    assert_same(outputs, trained["predictions"])

    classified = trained["loaded"].signatures["classification"](inputs=tf.constant(examples))
    np.testing.assert_array_equal(classified["scores"], outputs["probabilities"])
    words = trained["spec"]["label"].get("words", ["0", "1"])
    assert {tuple(row) for row in classified["classes"].numpy()} == {
        tuple(word.encode() for word in words)
    }
    regressed = trained["loaded"].signatures["regression"](inputs=tf.constant(examples))
    np.testing.assert_array_equal(regressed["outputs"], outputs["logistic"])


def test_no_rows(trained) -> None:
    import tensorflow as tf

    outputs = trained["loaded"].signatures["predict"](examples=tf.constant([], dtype=tf.string))
    assert outputs["probabilities"].shape == (0, 2)


def test_session_and_saver_of_tf1(trained, tmp_path) -> None:
    """TF1 loads it too, and its saver writes the variables back."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with v1.Session(graph=tf.Graph()) as session:
        v1.saved_model.load(session, ["serve"], str(trained["path"]))
        session.run("save/control_dependency:0", {"save/Const:0": str(tmp_path / "saved")})
        trainable = {variable.op.name for variable in v1.trainable_variables()}
    ours = tf.train.load_checkpoint(str(trained["path"] / "variables" / "variables"))
    theirs = tf.train.load_checkpoint(str(tmp_path / "saved"))
    shapes = ours.get_variable_to_shape_map()
    assert shapes.pop("global_step") == [], "whose weights they are; no variable of the graph"
    assert shapes == theirs.get_variable_to_shape_map()
    for name in shapes:
        np.testing.assert_array_equal(ours.get_tensor(name), theirs.get_tensor(name))
        node = re.sub(r"[^A-Za-z0-9_./-]", "_", name)
        assert (node in trainable) != ("/moving_" in name), name


def test_two_models_in_one_process(trained) -> None:
    """Loading a model twice leaves the first one's tables and weights alone."""
    import tensorflow as tf

    again = tf.saved_model.load(str(trained["path"])).signatures["serving_default"]
    assert_same(again(**raw_inputs(again, trained["rows"])), trained["predictions"])


def test_loader_of_tensorflow_serving(trained) -> None:
    """The C++ loader restores the variables and fills the tables."""
    import tensorflow as tf

    library = ctypes.CDLL(str(pathlib.Path(tf.__file__).parent / "libtensorflow_cc.so.2"))

    def call(name: str, *arguments: Any) -> ctypes.c_void_p:
        function = getattr(library, name)
        function.restype = ctypes.c_void_p
        return ctypes.c_void_p(function(*arguments))

    library.TF_Message.restype = ctypes.c_char_p
    status = call("TF_NewStatus")
    tags = (ctypes.c_char_p * 1)(b"serve")
    options, graph = call("TF_NewSessionOptions"), call("TF_NewGraph")
    folder = str(trained["path"]).encode()
    call("TF_LoadSessionFromSavedModel", options, None, folder, tags, 1, graph, None, status)
    assert library.TF_GetCode(status) == 0, library.TF_Message(status)


def test_saved_model_cli_shows_it(trained) -> None:
    command = [pathlib.Path(sys.executable).parent / "saved_model_cli", "show", "--all", "--dir"]
    result = subprocess.run(
        [*map(str, command), str(trained["path"])], capture_output=True, text=True, check=True
    )
    for name in ("serving_default", "predict", "classification", "regression"):
        assert f"signature_def['{name}']" in result.stdout


@pytest.mark.parametrize("case", ["grown"], indirect=True)
def test_a_table_that_grew_is_its_keys_rows(trained) -> None:
    """Many keys came too seldom: they have no row in the export and read zeros."""
    import tensorflow as tf

    weights = tf.train.load_checkpoint(str(trained["path"] / "variables" / "variables"))
    users = weights.get_tensor("linear/linear_model/user/weights")
    # Of -7, 0, 5 and the two large ones, and a row of zeros for all others; -1 is no key.
    assert users.shape == (6, 1)
    assert (users[:5] != 0).all() and users[5] == 0
    signature = trained["loaded"].signatures["serving_default"]
    rows = [{**trained["rows"][0], "user": user} for user in (10**12 + 1, 77, 5)]
    logits = signature(**raw_inputs(signature, rows))["logits"].numpy()[:, 0]
    assert logits[0] == logits[1] != logits[2]


@pytest.mark.parametrize("case", ["every_column"], indirect=True)
def test_bad_requests_fail(trained) -> None:
    import tensorflow as tf

    signature = trained["loaded"].signatures["serving_default"]
    feed = raw_inputs(signature, trained["rows"])
    feed["month"] = tf.fill(tf.shape(feed["month"]), tf.constant(13, tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError, match="column .*month"):
        signature(**feed)
    feed = raw_inputs(signature, trained["rows"])
    feed["visits"] = tf.fill(tf.shape(feed["visits"]), tf.constant(-999, tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError, match="visits.*no value and no default"):
        signature(**feed)
    row = {name: value for name, value in trained["rows"][0].items() if name != "visits"}
    spec = {**trained["spec"], "inputs": {n: trained["spec"]["inputs"][n] for n in row}}
    without = example_of(spec, row, random.Random(SEED))
    with pytest.raises(tf.errors.InvalidArgumentError, match="visits"):
        trained["loaded"].signatures["predict"](examples=tf.constant([without]))
