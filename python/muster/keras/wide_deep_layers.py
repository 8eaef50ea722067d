"""The two parts of a Keras 2 WideDeepModel in a model file: feature columns, then layers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from muster import columns as fc
from muster.tensorflow_columns import ours

_INPUT_LAYER = "dnn/input_from_feature_columns/input_layer"
_ACTIVATIONS = ("relu", "tanh", "sigmoid", "linear")
_ORDER = (
    "a model file's deep part is an optional BatchNormalization, then Dense layers, each with an "
    "optional Dropout and an optional BatchNormalization, and a Dense layer without an activation"
)


@dataclass(frozen=True)
class Chain:
    """DenseFeatures and the layers after it, each of which reads the one before."""

    part: str  # "linear" or "dnn"
    features: Any
    inputs: Mapping[str, Any]  # the arguments of DenseFeatures
    layers: Sequence[Any]

    def refuse(self, layer: Any, why: str) -> ValueError:
        return ValueError(
            f"the {self.part} model's layer '{layer.name}' ({type(layer).__name__}): {why}"
        )


def chain_of(model: Any, part: str) -> Chain:
    layers = [one for one in model.layers if type(one).__name__ != "InputLayer"]
    if not layers or type(layers[0]).__name__ != "DenseFeatures":
        raise ValueError(
            f"the {part} model must begin with one tf.keras.layers.DenseFeatures of feature columns"
        )
    chain = Chain(part, layers[0], _inputs_of(layers[0], part), layers[1:])
    for before, layer in zip(layers, layers[1:]):
        nodes = layer._inbound_nodes
        if len(nodes) != 1 or nodes[0].inbound_layers is not before:
            raise chain.refuse(layer, f"it must read '{before.name}', and nothing else: {_ORDER}")
    for layer in layers:
        if not layer.trainable:
            raise chain.refuse(layer, "it is frozen, which a model file cannot say")
    return chain


def _inputs_of(layer: Any, part: str) -> Mapping[str, Any]:
    nodes = layer._inbound_nodes
    given = nodes[0].call_args[0] if len(nodes) == 1 and nodes[0].call_args else None
    if isinstance(given, Mapping):
        return given
    raise ValueError(
        f"the {part} model's DenseFeatures must be called once, with a dict of tf.keras.Input by "
        "feature, so that the types of the features are known"
    )


@dataclass(frozen=True)
class Rows:
    """Some rows of a variable."""

    variable: Any
    begin: int
    end: int


@dataclass(frozen=True)
class Wide:
    columns: List[fc.FeatureColumn]
    weights: List[Rows]  # for each column, as many rows as it is wide
    bias: Any

    def variables(self, names: Sequence[str]) -> Dict[str, Any]:
        """Returns the variables by their names in a checkpoint; `names` are the columns' in the
        model file."""
        found: Dict[str, Any] = {"linear/linear_model/bias_weights": self.bias}
        for name, rows in zip(names, self.weights):
            found[f"linear/linear_model/{name}/weights"] = rows
        return found


def wide_of(chain: Chain) -> Wide:
    if len(chain.layers) != 1:
        odd = chain.layers[0] if type(chain.layers[0]).__name__ != "Dense" else chain.layers[1]
        raise chain.refuse(odd, "a model file's linear part is one Dense layer")
    (dense,) = chain.layers
    _check_dense(chain, dense)
    if _activation(dense) != "linear":
        raise chain.refuse(dense, "a model file's linear part has no activation")
    columns, weights, begin = [], [], 0
    for given, column in _columns_of(chain):
        if isinstance(column, fc.EmbeddingColumn):
            raise ValueError(
                f"the linear model's column '{given.name}': a model file's linear part has no "
                "embeddings; use an indicator_column"
            )
        width = given.variable_shape.num_elements()
        columns.append(column)
        weights.append(Rows(dense.kernel, begin, begin + width))
        begin += width
    return Wide(columns, weights, dense.bias)


@dataclass
class Deep:
    columns: List[fc.FeatureColumn]
    settings: Dict[str, Any]  # the model file's `dnn`
    embeddings: List[Any]  # one for each embedding column, in order
    trained: Dict[str, Any] = field(default_factory=dict)  # by their names in a checkpoint
    states: Dict[str, Any] = field(default_factory=dict)
    units: int = 1

    def variables(self, names: Sequence[str]) -> Dict[str, Any]:
        """Returns the trained variables; `names` are the columns' in the model file."""
        tables = [n for n, c in zip(names, self.columns) if isinstance(c, fc.EmbeddingColumn)]
        paths = (f"{_INPUT_LAYER}/{name}/embedding_weights" for name in tables)
        return {**dict(zip(paths, self.embeddings)), **self.trained}


def deep_of(chain: Chain) -> Deep:
    columns = [column for _, column in _columns_of(chain)]
    tables = list(chain.features.weights)
    if len(tables) != sum(isinstance(column, fc.EmbeddingColumn) for column in columns):
        raise chain.refuse(chain.features, "some of its embedding columns have no table of their own")
    deep = Deep(columns, {"hidden_units": []}, tables)
    rest = list(chain.layers)
    if rest and _is(rest[0], "BatchNormalization"):
        _add_batch_norm(chain, deep, rest.pop(0), "dnn/input_batchnorm", 0.99)
        deep.settings["input_batch_norm"] = True
    hidden: List[Dict[str, Any]] = []
    while rest:
        dense = rest.pop(0)
        _check_dense(chain, dense)
        if not rest:
            _add_logits(chain, deep, dense)
            break
        hidden.append(_add_hidden(chain, deep, dense, rest, len(hidden)))
    else:
        raise ValueError(f"the dnn model has no Dense layer: {_ORDER}")
    for one in hidden[1:]:
        if one != hidden[0]:
            raise ValueError(
                "the dnn model's hidden layers differ in activation, dropout or batch normalization "
                f"({hidden[0]}, {one}), which a model file says once for all"
            )
    deep.settings.update(hidden[0] if hidden else {})
    return deep


def _add_logits(chain: Chain, deep: Deep, dense: Any) -> None:
    if _activation(dense) != "linear":
        raise chain.refuse(dense, f"the last layer has an activation: {_ORDER}")
    deep.trained.update({"dnn/logits/kernel": dense.kernel, "dnn/logits/bias": dense.bias})
    deep.units = int(dense.units)


def _add_hidden(
    chain: Chain, deep: Deep, dense: Any, rest: List[Any], number: int
) -> Dict[str, Any]:
    """Takes from `rest` what belongs to this hidden layer, and returns its settings in the model
    file."""
    name = f"dnn/hiddenlayer_{number}"
    deep.trained.update({f"{name}/kernel": dense.kernel, f"{name}/bias": dense.bias})
    deep.settings["hidden_units"].append(int(dense.units))
    said: Dict[str, Any] = {"activation": _activation(dense)}
    if said["activation"] == "linear" and _is(rest[0], "Activation", "ReLU"):
        layer = rest.pop(0)
        said["activation"] = "relu" if _is(layer, "ReLU") else _activation(layer)
        if _is(layer, "ReLU") and any([layer.max_value, layer.negative_slope, layer.threshold]):
            raise chain.refuse(layer, "a model file's relu has no arguments")
    if said["activation"] not in _ACTIVATIONS:
        raise chain.refuse(dense, f"activation '{said['activation']}' is none of {_ACTIVATIONS}")
    if rest and _is(rest[0], "Dropout"):
        said["dropout"] = float(rest.pop(0).rate)
    if rest and _is(rest[0], "BatchNormalization"):
        _add_batch_norm(chain, deep, rest.pop(0), f"{name}/batchnorm_{number}", 0.999)
        said["batch_norm"] = True
    return said


def _add_batch_norm(chain: Chain, deep: Deep, layer: Any, name: str, momentum: float) -> None:
    if layer.momentum != momentum or layer.epsilon != 1e-3 or not (layer.center and layer.scale):
        raise chain.refuse(
            layer,
            f"here a model file has momentum {momentum}, epsilon 0.001, center and scale; this one "
            f"has momentum {layer.momentum}, epsilon {layer.epsilon}, center={layer.center}, "
            f"scale={layer.scale}",
        )
    _check_plain(chain, layer, ("beta_regularizer", "gamma_regularizer", "beta_constraint",
                                "gamma_constraint", "renorm"))  # fmt: skip
    deep.trained.update({f"{name}/gamma": layer.gamma, f"{name}/beta": layer.beta})
    deep.states[f"{name}/moving_mean"] = layer.moving_mean
    deep.states[f"{name}/moving_variance"] = layer.moving_variance


def _columns_of(chain: Chain) -> List[Tuple[Any, fc.FeatureColumn]]:
    """Returns TensorFlow's columns in the order in which DenseFeatures concatenates them, and
    Muster's."""
    found = []
    for given in sorted(chain.features._feature_columns, key=lambda column: column.name):
        found.append((given, fc.dense(ours(given))))
    return found


def _is(layer: Any, *kinds: str) -> bool:
    return type(layer).__name__ in kinds


def _activation(layer: Any) -> str:
    return str(getattr(layer.activation, "__name__", layer.activation))


def _check_dense(chain: Chain, layer: Any) -> None:
    if not _is(layer, "Dense"):
        raise chain.refuse(layer, f"it does not fit: {_ORDER}")
    if not layer.use_bias:
        raise chain.refuse(layer, "it has no bias, and a model file's layers have one")
    _check_plain(chain, layer, ("kernel_regularizer", "bias_regularizer", "activity_regularizer",
                                "kernel_constraint", "bias_constraint"))  # fmt: skip


def _check_plain(chain: Chain, layer: Any, names: Sequence[str]) -> None:
    for name in names:
        if getattr(layer, name, None):
            advice = "; l1 and l2 of `dnn` stand in the model file" if "regularizer" in name else ""
            raise chain.refuse(layer, f"a model file cannot say its {name}{advice}")
