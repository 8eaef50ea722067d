"""A model file as a Keras model of TensorFlow's own feature columns.

Every number comes from TensorFlow: feature columns, layers, gradients, optimizers. Parity tests
give this model and muster the same weights and rows and compare the results.
"""

from __future__ import annotations

import math
import pathlib
from typing import Callable, Iterator

import numpy as np
import tensorflow as tf

from testbed.tensorflow_peer import heads, lists
from testbed.tensorflow_peer.columns import feature_column
from testbed.tensorflow_peer.spec import Spec, Table, head_of

fc = tf.feature_column


def default_optimizer(model: Spec, group: str) -> tuple[str, float]:
    """Returns the optimizer with which tf.estimator's canned model of this kind trains a part."""
    both = model["type"] == "wide_deep"
    if group == "baseline":
        return "ftrl", 0.3
    if group == "linear":
        columns = len(model["linear"]["columns"]) if "linear" in model else 1
        return "ftrl", min(0.005 if both else 0.2, 1 / math.sqrt(columns))
    return "adagrad", 0.001 if both else 0.05


def optimizer(
    spec: Spec | str | None, fallback: tuple[str, float]
) -> tf.keras.optimizers.legacy.Optimizer:
    (kind, fallback_rate), options = fallback, {}
    if isinstance(spec, str):
        kind = spec
    elif spec:
        ((kind, options),) = spec.items()
    number = {key: float(value) for key, value in options.items()}
    own_rate = 0.001 if kind == "adam" else 0.05
    rate = number.get("learning_rate", own_rate if spec else fallback_rate)
    legacy = tf.keras.optimizers.legacy
    if kind == "ftrl":
        return legacy.Ftrl(
            rate,
            learning_rate_power=number.get("learning_rate_power", -0.5),
            initial_accumulator_value=number.get("initial_accumulator", 0.1),
            l1_regularization_strength=number.get("l1", 0),
            l2_regularization_strength=number.get("l2", 0),
        )
    if kind == "adagrad":
        return legacy.Adagrad(
            rate, number.get("initial_accumulator", 0.1), epsilon=number.get("epsilon", 1e-7)
        )
    return legacy.Adam(rate, number.get("beta1", 0.9), number.get("beta2", 0.999))


class TwinModel(tf.keras.Model):
    """Computes logits [batch, n]. `named` maps muster's variable names to (variable, group)."""

    def __init__(self, spec: Spec):
        super().__init__()
        self.spec = spec
        self.linear_spec = spec["model"].get("linear")
        self.dnn_spec = spec["model"].get("dnn")
        self.fm_spec = spec["model"].get("fm")
        self.cross_spec = spec["model"].get("cross")
        self.head = heads.make(spec)
        self.width = head_of(spec)["width"]
        self.baseline_bias = None
        if spec["model"]["type"] == "baseline":
            self.baseline_bias = tf.Variable(tf.zeros([self.width]), name="baseline_bias")
        if self.linear_spec:
            self._build_linear()
        self.tables: dict[str, tf.Variable] = {}  # shared tables
        # by column of the fm and dnn parts
        self.column_layers: dict[str, tf.keras.layers.Layer] = {}
        if self.fm_spec:
            self._build_fm()
        if self.dnn_spec:
            self._build_dnn()

    def _build_linear(self) -> None:
        self.linear_inputs: dict[str, tf.keras.layers.Layer] = {}
        self.linear_dense: dict[str, tf.keras.layers.Layer] = {}
        for name in self.linear_spec["columns"]:
            if "sequence_numeric" in self.spec["columns"][name]:
                self.linear_dense[name] = tf.keras.layers.Dense(self.width, use_bias=False)
                self.linear_inputs[name] = lists.PooledSequence(self.spec, name)
                continue
            column = feature_column(self.spec, name)
            if any(kind in self.spec["columns"][name] for kind in ("numeric", "indicator")):
                self.linear_dense[name] = tf.keras.layers.Dense(self.width, use_bias=False)
            else:  # a weight for each id and logit is an embedding, summed
                column = fc.embedding_column(
                    column, self.width, combiner="sum", initializer=tf.zeros_initializer()
                )
            self.linear_inputs[name] = tf.keras.layers.DenseFeatures([column])
        self.linear_bias = tf.Variable(tf.zeros([self.width]), name="linear_bias")

    def _build_fm(self) -> None:
        names = self.fm_spec["columns"]
        self.column_layers |= {name: self._dnn_input(name) for name in names}
        columns = [self.spec["columns"][name] for name in names]
        dimension = next(int(column["dimension"]) for column in columns if "embedding" in column)
        self.fm_vectors = {  # of columns that are not embeddings
            name: tf.keras.layers.Dense(dimension, use_bias=False)
            for name, column in zip(names, columns)
            if "embedding" not in column
        }

    def _pairs(self, features: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the sum over pairs of columns, from the products of all pairs."""
        vectors = []
        for name in self.fm_spec["columns"]:
            x = self.column_layers[name](features)
            vectors.append(self.fm_vectors[name](x) if name in self.fm_vectors else x)
        stacked = tf.stack(vectors, axis=1)
        products = tf.matmul(stacked, stacked, transpose_b=True)  # [batch, column, column]
        once = np.tril(np.ones([len(vectors)] * 2, np.float32), -1)
        return tf.reduce_sum(products * once, axis=[1, 2])[:, None]

    def _build_dnn(self) -> None:
        dnn = self.dnn_spec
        layers = tf.keras.layers
        for name in dnn["columns"]:
            if name not in self.column_layers:
                self.column_layers[name] = self._dnn_input(name)
        if self.cross_spec:
            self._build_cross()
        self.input_norm = layers.BatchNormalization() if dnn.get("input_batch_norm") == "true" else None
        regularizer = None
        if "l1" in dnn or "l2" in dnn:
            regularizer = tf.keras.regularizers.L1L2(float(dnn.get("l1", 0)), float(dnn.get("l2", 0)))
        self.hidden = [
            layers.Dense(int(n), dnn.get("activation", "relu"), kernel_regularizer=regularizer)
            for n in dnn["hidden_units"]
        ]
        self.norms = [
            layers.BatchNormalization(momentum=0.999) if dnn.get("batch_norm") == "true" else None
            for _ in self.hidden
        ]
        self.logits = layers.Dense(self.width, kernel_regularizer=regularizer)

    def _build_cross(self) -> None:
        cross = self.cross_spec
        self.crosses = []  # for each layer, the layers that compute W x in turn
        width = sum(self._width(name) for name in self.dnn_spec["columns"])
        for _ in range(int(cross.get("layers", 3))):
            layers = [tf.keras.layers.Dense(width)]
            if int(cross.get("rank", 0)):
                layers.insert(0, tf.keras.layers.Dense(int(cross["rank"]), use_bias=False))
            self.crosses.append(layers)

    def _width(self, name: str) -> int:
        column = self.spec["columns"][name]
        if "embedding" in column:
            return int(column["dimension"])
        assert "numeric" in column, f"{name}: the twin's cross layers read numbers and embeddings"
        return int(column.get("shape", 1))

    def _dnn_input(self, name: str) -> tf.keras.layers.Layer:
        column = self.spec["columns"][name]
        if "shared" in column:
            return lists.SharedEmbedding(self.spec, name, self.tables)
        if "pooling" in column:
            return lists.PooledSequence(self.spec, name)
        return tf.keras.layers.DenseFeatures([feature_column(self.spec, name)])

    def call(self, features: dict[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        total: tf.Tensor | float = 0.0
        if self.baseline_bias is not None:
            rows = tf.shape(next(iter(features.values())))[0]
            total += tf.broadcast_to(self.baseline_bias, [rows, self.width])
        if self.dnn_spec:
            x = tf.concat([self.column_layers[n](features) for n in self.dnn_spec["columns"]], axis=1)
            if self.input_norm is not None:
                x = self.input_norm(x, training=training)
            crossed = self._crossed(x) if self.cross_spec else None
            parallel = crossed is not None and self.cross_spec.get("structure") == "parallel"
            if crossed is not None and not parallel:
                x = crossed
            for dense, norm in zip(self.hidden, self.norms):
                x = dense(x)
                if norm is not None:
                    x = norm(x, training=training)
            total += self.logits(tf.concat([crossed, x], axis=1) if parallel else x)
        if self.fm_spec:
            total += self._pairs(features)
        if self.linear_spec:
            for name, layer in self.linear_inputs.items():
                x = layer(features)
                total += self.linear_dense[name](x) if name in self.linear_dense else x
            total += self.linear_bias
        return total

    def _crossed(self, x0: tf.Tensor) -> tf.Tensor:
        x = x0
        for layers in self.crosses:
            product = x
            for layer in layers:
                product = layer(product)
            x = x0 * product + x
        return x

    def table_loss(self) -> tf.Tensor:
        """Returns what Keras's embeddings_regularizer adds for each table of the dnn part."""
        dnn = self.dnn_spec or {}
        regularizer = tf.keras.regularizers.L1L2(
            float(dnn.get("embedding_l1", 0)), float(dnn.get("embedding_l2", 0))
        )
        tables = [
            variable
            for name, (variable, group) in self.named().items()
            if group == "dnn" and not name.startswith(("dnn/hidden", "dnn/logits", "dnn/input_batch", "dnn/cross"))
        ]
        return tf.add_n([tf.constant(0.0), *map(regularizer, tables)])

    def named(self) -> dict[str, tuple[tf.Variable, str]]:
        """Returns muster's name -> (variable, its part's name or "state"); needs a first call."""
        out: dict[str, tuple[tf.Variable, str]] = {}

        def norm(layer: tf.keras.layers.BatchNormalization, name: str) -> None:
            for part in ("gamma", "beta"):
                out[f"{name}/{part}"] = (getattr(layer, part), "dnn")
            for part in ("moving_mean", "moving_variance"):
                out[f"{name}/{part}"] = (getattr(layer, part), "state")

        if self.baseline_bias is not None:
            out["baseline/bias"] = (self.baseline_bias, "baseline")
        if self.linear_spec:
            for name, layer in self.linear_inputs.items():
                variable = self.linear_dense[name].kernel if name in self.linear_dense else layer.weights[0]
                out[f"linear/linear_model/{name}/weights"] = (variable, "linear")
            out["linear/linear_model/bias_weights"] = (self.linear_bias, "linear")
        for name, layer in self.column_layers.items():
            group = "fm" if self.fm_spec and name in self.fm_spec["columns"] else "dnn"
            if "shared" in self.spec["columns"][name]:
                key = self.spec["columns"][name]["shared"]
                if key not in out:  # a table belongs to the first part that reads it
                    out[key] = (self.tables[key], group)
            elif layer.weights:
                key = f"dnn/input_from_feature_columns/input_layer/{name}/embedding_weights"
                out[key] = (layer.weights[0], group)
        if self.fm_spec:
            for name, layer in self.fm_vectors.items():
                out[f"fm/{name}/kernel"] = (layer.kernel, "fm")
        if self.dnn_spec:
            for i, layers in enumerate(self.crosses if self.cross_spec else []):
                for layer, part in zip(layers, ["/v", "/u"] if len(layers) == 2 else [""]):
                    out[f"dnn/crosslayer_{i}{part}/kernel"] = (layer.kernel, "dnn")
                    if layer.use_bias:
                        out[f"dnn/crosslayer_{i}{part}/bias"] = (layer.bias, "dnn")
            if self.input_norm is not None:
                norm(self.input_norm, "dnn/input_batchnorm")
            for i, (dense, batch_norm) in enumerate(zip(self.hidden, self.norms)):
                out[f"dnn/hiddenlayer_{i}/kernel"] = (dense.kernel, "dnn")
                out[f"dnn/hiddenlayer_{i}/bias"] = (dense.bias, "dnn")
                if batch_norm is not None:
                    norm(batch_norm, f"dnn/hiddenlayer_{i}/batchnorm_{i}")
            out["dnn/logits/kernel"] = (self.logits.kernel, "dnn")
            out["dnn/logits/bias"] = (self.logits.bias, "dnn")
        return out


def batches(
    table: Table, spec: Spec, size: int, order: np.ndarray | None = None
) -> Iterator[tuple[dict[str, tf.Tensor], tf.Tensor]]:
    names = [name for name in spec["inputs"] if name != spec["label"]["input"]]
    rows = len(table[""])
    order = np.arange(rows) if order is None else order
    columns = {name: table[name][order] for name in names}
    labels = table[""][order]
    for start in range(0, rows, size):
        part = slice(start, start + size)
        features = {n: lists.to_tensor(spec, n, c[part]) for n, c in columns.items()}
        yield features, tf.constant(labels[part])


def make_step(model: TwinModel) -> Callable[[dict[str, tf.Tensor], tf.Tensor], tf.Tensor]:
    """Returns a training step, which returns the loss of its batch before the update."""
    parts = {
        "dnn": model.dnn_spec, "linear": model.linear_spec, "fm": model.fm_spec,
        "baseline": model.spec["model"],
    }
    optimizers = {
        group: optimizer((part or {}).get("optimizer"), default_optimizer(model.spec["model"], group))
        for group, part in parts.items()
    }

    @tf.function(reduce_retracing=True)
    def step(features: dict[str, tf.Tensor], labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits = model(features, training=True)
            loss = model.head.loss(heads.labels_for(model.spec, labels), logits, features=features)
            loss += tf.add_n(model.losses or [tf.constant(0.0)]) + model.table_loss()
        groups: dict[str, list[tf.Variable]] = {group: [] for group in parts}
        for variable, group in model.named().values():
            if group != "state":
                groups[group].append(variable)
        gradients = tape.gradient(loss, groups)
        for group, variables in groups.items():
            if variables:
                optimizers[group].apply_gradients(zip(gradients[group], variables))
        return loss

    return step


def logits_of(model: TwinModel, table: Table, size: int = 4096) -> np.ndarray:
    run = tf.function(lambda features: model(features), reduce_retracing=True)
    return np.concatenate([run(features).numpy() for features, _ in batches(table, model.spec, size)])


def predict(model: TwinModel, table: Table, size: int = 4096) -> np.ndarray:
    """Returns the probabilities of a binary model."""
    return 1 / (1 + np.exp(-logits_of(model, table, size)[:, 0].astype(np.float64)))


def evaluate(model: TwinModel, table: Table, size: int) -> dict[str, float]:
    """Returns the metrics of tf.estimator's head, and "loss", the mean over batches."""
    metrics = model.head.metrics()
    losses = []
    for features, labels in batches(table, model.spec, size):
        labels = heads.labels_for(model.spec, labels)
        logits = model(features)
        losses.append(float(model.head.loss(labels, logits, features=features)))
        model.head.update_metrics(metrics, features, logits, labels)
    return {name: float(metric.result()) for name, metric in metrics.items()} | {
        "loss": float(np.mean(losses))
    }


_SLOTS = {"ftrl": {"accumulator": None, "linear": 0.0}, "adagrad": {"accumulator": None},
          "adam": {"m": 0.0, "v": 0.0}}
_SLOT_FOLDER = {"ftrl": "Ftrl", "adagrad": "Adagrad", "adam": "Adam"}


def save_for_muster(model: TwinModel, model_dir: pathlib.Path) -> None:
    """Writes the model's weights and fresh optimizer slots as muster's checkpoint at step 0."""
    values = {}
    for name, (variable, group) in model.named().items():
        values[name] = (variable.numpy(), group)
    save_values(model.spec, values, model_dir)


def save_values(
    spec: Spec, values: dict[str, tuple[np.ndarray, str]], model_dir: pathlib.Path
) -> None:
    """Writes weights by muster's names, each with its group, and fresh slots as a checkpoint at
    step 0."""
    model_dir.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, np.ndarray] = {"global_step": np.int64(0)}
    for name, (value, group) in values.items():
        tensors[name] = value
        if group == "state":
            continue
        part = spec["model"].get(group, spec["model"])
        given = part.get("optimizer", default_optimizer(spec["model"], group)[0])
        kind, options = (given, {}) if isinstance(given, str) else next(iter(given.items()))
        for slot, start in _SLOTS[kind].items():
            fill = float(options.get("initial_accumulator", 0.1)) if start is None else start
            tensors[f"training/{_SLOT_FOLDER[kind]}/{name}/{slot}"] = np.full_like(value, fill)
    names = sorted(tensors)
    prefix = str(model_dir / "model.ckpt-0")
    tf.raw_ops.SaveV2(
        prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names),
        tensors=[tensors[name] for name in names],
    )
    (model_dir / "checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-0"\nall_model_checkpoint_paths: "model.ckpt-0"\n'
    )
