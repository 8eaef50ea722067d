"""The real TensorBoard shows a training: each of its pages, read through its HTTP API."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from testbed.tensorboard import serve

SPEC = """
inputs: {x: float, city: string, y: int}
label: y
columns:
  x: {numeric: x}
  city: {vocabulary: city, words: [a, b, c]}
  city_embedding: {embedding: city, dimension: 4}
model:
  type: wide_deep
  linear: {columns: [city], optimizer: {ftrl: {learning_rate: 0.1}}}
  dnn:
    columns: [x, city_embedding]
    hidden_units: [8, 4]
    dropout: 0.1
    batch_norm: true
    optimizer: {adagrad: {learning_rate: 0.05}}
train: {batch_size: 16, epochs: 1, seed: 3}
"""
ROWS, BATCH, STEPS = 800, 16, 50
KERNEL = "dnn/hiddenlayer_0/kernel"
# What an evaluation tells beside its metrics.
NO_METRICS = {"event", "global_step", "checkpoint", "bad_records", "trained_records"}
LAYERS = ["dnn/hiddenlayer_0", "dnn/hiddenlayer_1", "dnn/logits", "linear"]


class Run:
    """A trained model folder, what the training printed, and TensorBoard on it."""

    def __init__(self, folder, printed, board):
        self.folder, self.printed, self.board = folder, printed, board

    def weights(self, name: str) -> np.ndarray:
        import tensorflow as tf

        return tf.train.load_checkpoint(str(self.folder)).get_tensor(name)

    def scalars(self, tag: str, run: str = ".") -> list[tuple[int, float]]:
        series = self.board.get("plugin/scalars/scalars", run=run, tag=tag)
        return [(step, value) for _, step, value in series]

    def histograms(self, tag: str) -> list[tuple[int, np.ndarray]]:
        series = self.board.get("plugin/histograms/histograms", run=".", tag=tag)
        return [(step, np.array(buckets)) for _, step, buckets in series]


@pytest.fixture(scope="module")
def run(muster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tensorboard")
    spec, rows = folder / "spec.yaml", folder / "rows.csv"
    spec.write_text(SPEC)
    random = np.random.default_rng(1)
    x, city = random.normal(size=ROWS), random.integers(0, 3, ROWS)
    y = random.random(ROWS) < 1 / (1 + np.exp(-2 * x - city + 1))
    lines = [f"{a},{'abc'[b]},{int(c)}\n" for a, b, c in zip(x, city, y)]
    rows.write_text("x,city,y\n" + "".join(lines))
    model_dir = folder / "model"
    events = muster.json("train", spec, "--train", rows, "--eval", rows, "--model-dir", model_dir,
                         "--summary-steps", 10, "--histogram-steps", 20)  # fmt: skip
    with serve(model_dir) as board:
        # The last of all that is written, and the evaluation.
        board.wait(lambda: ended(board))
        board.wait(lambda: "auc" in board.get("plugin/scalars/tags").get("eval", {}))
        yield Run(model_dir, {event["event"]: event for event in events}, board)


def sessions(board) -> list[dict]:
    body = {
        "experimentName": "",
        "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"],
        "colParams": [],
        "startIndex": 0,
        "sliceSize": 10,
    }
    return board.post("plugin/hparams/session_groups", body).get("sessionGroups", [])


def ended(board) -> bool:
    groups = sessions(board)
    return bool(groups) and groups[0]["sessions"][0].get("status") == "STATUS_SUCCESS"


def test_scalars(run):
    tags = run.board.get("plugin/scalars/tags")
    assert set(tags) == {".", "eval"}
    steps = list(range(10, STEPS + 1, 10))
    loss = run.scalars("loss")
    assert [step for step, _ in loss] == steps
    assert np.mean([value for _, value in loss]) == pytest.approx(run.printed["trained"]["loss"])
    for layer in LAYERS:
        zeros = run.scalars(f"{layer}/fraction_of_zero_values")
        assert [step for step, _ in zeros] == steps
        assert all(0 <= value <= 1 for _, value in zeros)
    assert {value for _, value in run.scalars("linear/learning_rate")} == {np.float32(0.1)}
    assert {value for _, value in run.scalars("dnn/learning_rate")} == {np.float32(0.05)}
    bias = run.weights("linear/linear_model/bias_weights")[0]
    assert run.scalars("bias")[-1] == (STEPS, bias)
    assert all(value > 0 for tag in ("global_step/sec", "examples/sec")
               for _, value in run.scalars(tag))  # fmt: skip

    evaluated = run.printed["evaluated"]
    for name in set(evaluated) - NO_METRICS:
        assert run.scalars(name, "eval") == [(STEPS, np.float32(evaluated[name]))], name


def test_histograms_of_weights_are_those_of_the_checkpoint(run):
    import tensorflow as tf

    tags = run.board.get("plugin/histograms/tags")["."]
    reader = tf.train.load_checkpoint(str(run.folder))
    variables = [
        name
        for name in reader.get_variable_to_shape_map()
        if not name.startswith(("training/", "muster/")) and name != "global_step"
    ]
    assert len(variables) == 17
    assert set(tags) == set(variables) | {f"{layer}/activation" for layer in LAYERS}
    messages = {}
    for path in run.folder.glob("events*"):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                if value.HasField("histo"):
                    messages[value.tag, event.step] = value.histo
    for name in variables:
        weights = reader.get_tensor(name).astype(np.float64).ravel()
        series = run.histograms(name)
        assert [step for step, _ in series] == [0, 20, 40, STEPS]
        left, right, count = series[-1][1].T
        assert left[0] == weights.min() and right[-1] == weights.max(), name
        assert count.sum() == weights.size, name
        assert np.all(left[1:] == right[:-1]), name
        if len(count) > 1:
            assert len(count) == 30
            expected, _ = np.histogram(weights, 30)
            assert np.abs(count - expected).sum() <= 2, name  # a number on a limit
        message = messages[name, STEPS]
        assert message.num == weights.size
        assert message.sum == pytest.approx(weights.sum(), abs=1e-9)
        assert message.sum_squares == pytest.approx((weights**2).sum(), abs=1e-9)


def test_histograms_of_activations(run):
    for layer, units in zip(LAYERS, (8, 4, 1, 1)):
        series = run.histograms(f"{layer}/activation")
        assert [step for step, _ in series] == [20, 40, STEPS]
        for step, buckets in series:
            assert buckets[:, 2].sum() == BATCH * units, (layer, step)


def test_text_is_the_spec(run):
    assert run.board.get("plugin/text/tags") == {".": ["spec"]}
    (shown,) = run.board.get("plugin/text/text", run=".", tag="spec")
    assert shown["step"] == 0
    assert shown["text"].startswith("<pre><code>")
    text = html.unescape(re.sub("<[^>]*>", "", shown["text"]))
    assert text.strip() == (run.folder / "model.yaml").read_text().strip()


def test_hparams(run):
    experiment = run.board.post(
        "plugin/hparams/experiment", {"experimentName": "", "includeMetrics": True}
    )
    infos = {info["name"]: info for info in experiment["hparamInfos"]}
    assert infos["dnn/optimizer/learning_rate"]["type"] == "DATA_TYPE_FLOAT64"
    assert infos["dnn/batch_norm"]["type"] == "DATA_TYPE_BOOL"
    assert infos["dnn/hidden_units"]["type"] == "DATA_TYPE_STRING"
    assert sum(info.get("differs", False) for info in infos.values()) == 5

    (group,) = sessions(run.board)
    hparams = group["hparams"]
    assert set(hparams) == set(infos)
    assert hparams["type"] == "wide_deep"
    assert hparams["dnn/hidden_units"] == "[8, 4]"
    assert hparams["dnn/dropout"] == 0.1
    assert hparams["dnn/batch_norm"] is True
    assert hparams["linear/optimizer"] == "ftrl"
    assert hparams["linear/optimizer/learning_rate"] == 0.1
    assert hparams["train/batch_size"] == BATCH

    (session,) = group["sessions"]
    assert session["status"] == "STATUS_SUCCESS"
    assert session["startTimeSecs"] <= session["endTimeSecs"]
    values = {
        (value["name"].get("group", ""), value["name"]["tag"]): value["value"]
        for value in session["metricValues"]
    }
    evaluated = run.printed["evaluated"]
    assert values["", "loss"] == run.scalars("loss")[-1][1]
    for name in set(evaluated) - NO_METRICS:
        assert values["eval", name] == np.float32(evaluated[name]), name


def test_graph(run):
    from google.protobuf import text_format
    from tensorboard.compat.proto import graph_pb2

    info = run.board.get("plugin/graphs/info")["."]
    assert info["run_graph"] is True
    text = run.board.get("plugin/graphs/graph", run=".", conceptual="false")
    graph = text_format.Parse(text, graph_pb2.GraphDef())
    nodes = {node.name: node for node in graph.node}
    assert len(nodes) == len(graph.node)
    for node in graph.node:
        assert all(name in nodes for name in node.input), node.name
    assert list(nodes["columns/city"].input) == ["inputs/city"]
    assert nodes["dnn/hiddenlayer_0/Dense"].attr["activation"].s == b"relu"
    shape = nodes[KERNEL].attr["_output_shapes"].list.shape[0]
    assert [dim.size for dim in shape.dim] == list(run.weights(KERNEL).shape)

    # From the loss everything can be reached.
    reached, waiting = set(), ["head/loss", "head/predictions"]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(nodes[name].input)
    assert reached == set(nodes)
