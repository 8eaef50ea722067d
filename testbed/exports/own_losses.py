"""Models that muster.keras.export accepts and whose loss is not, or not only, the argument of
`compile`: regularizers of embeddings, add_loss, compute_loss. Recommenders are such models."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from muster.keras import Field
from testbed.exports.case import Case

L = keras.layers
ROWS = 16


def regularized_embedding() -> Case:
    """Collaborative filtering with a regularizer: each row of a table has a gradient in each step.
    """
    user, item = L.Input((), dtype="int32", name="user"), L.Input((), dtype="int32", name="item")
    sides = [L.Embedding(count, 4, embeddings_regularizer=keras.regularizers.L2(0.01), name=name)(ids)
             for ids, count, name in ((user, 9, "users"), (item, 12, "items"))]  # fmt: skip
    model = keras.Model([user, item], L.Activation("sigmoid")(L.Dot(1)(sides)))
    return Case(model, "adam", "binary_crossentropy", {"metrics": ["accuracy"]})


class Retrieval(keras.Model):
    """Learns ratings of pairs, and predicts the best of all items for a user: the items' table is
    looked up by the label, and in prediction it is read as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = L.Embedding(9, 4, name="users"), L.Embedding(12, 4, name="items")
        self.error = keras.losses.MeanSquaredError()

    def build(self, shape: Any) -> None:
        self.users.build(shape)
        self.items.build(shape)
        super().build(shape)

    def call(self, user: Any, training: bool = False) -> Any:
        found = {"user": self.users(user)}
        if not training:
            scores = keras.ops.matmul(found["user"], keras.ops.transpose(self.items.embeddings))
            found["best"] = keras.ops.top_k(scores, k=3)
        return found

    def compute_loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any, training: bool = True) -> Any:
        scores = keras.ops.sum(y_pred["user"] * self.items(y["item"]), axis=1, keepdims=True)
        return self.error(keras.ops.expand_dims(y["rating"], -1), scores, sample_weight)


def retrieval() -> Case:
    model = Retrieval()
    model(np.zeros(2, np.int32))
    label = {"item": Field("item", "int64"), "rating": Field("rating", "float32")}
    return Case(model, keras.optimizers.Adagrad(0.1), None,
                {"inputs": Field("user", "int32"), "label": label})  # fmt: skip


class Softmax(keras.Model):
    """Predicts the next item among those of the batch. `tracker` is unrelated state."""

    def __init__(self, reduction: str) -> None:
        super().__init__()
        self.items = L.Embedding(12, 4, embeddings_initializer="normal", name="items")
        self.query, self.mean = L.Dense(4), L.GlobalAveragePooling1D()
        self.tracker = keras.metrics.Mean(name="tracker")
        self.error = keras.losses.CategoricalCrossentropy(from_logits=True, reduction=reduction)

    def call(self, seen: Any) -> Any:
        return self.query(self.mean(self.items(seen)))

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None,
                     sample_weight: Any = None) -> Any:  # fmt: skip
        scores = keras.ops.matmul(y_pred, keras.ops.transpose(self.items(y)))
        loss = self.error(keras.ops.eye(keras.ops.shape(scores)[0]), scores)
        self.tracker.update_state(loss)
        return loss


def in_batch_softmax(reduction: str = "sum_over_batch_size") -> Case:
    model = Softmax(reduction)
    model(np.zeros((2, 5), np.int32))
    options = {"inputs": Field("seen", "int64", [5]), "label": Field("next", "int64")}
    return Case(model, "adam", None, options)


def summed_softmax() -> Case:
    """The loss is neither a mean over rows nor their sum."""
    return in_batch_softmax("sum")


class Following(keras.Model):
    """Each item of a list is followed by the next one rather than by any other; each step has its
    own weight. Its compute_loss leaves out what regularizers add, so that the table remains a
    table."""

    def __init__(self) -> None:
        super().__init__()
        self.items = L.Embedding(12, 4, embeddings_regularizer="l2", name="items")
        self.hidden = L.Dense(4)
        self.error = keras.losses.BinaryCrossentropy(from_logits=True, reduction=None)

    def call(self, seen: Any) -> Any:
        return self.hidden(self.items(seen))

    def compute_loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any, training: bool = True) -> Any:
        sides = [keras.ops.sum(self.items(y[name]) * y_pred, axis=-1) for name in ("next", "other")]
        wanted = [keras.ops.ones_like(sides[0]), keras.ops.zeros_like(sides[1])]
        losses = self.error(*[keras.ops.stack(both, axis=-1) for both in (wanted, sides)], sample_weight)
        return keras.ops.sum(losses) / keras.ops.sum(sample_weight)


def weighted_steps() -> Case:
    model = Following()
    model(np.zeros((2, 5), np.int32))
    label = {name: Field(name, "int64", [5]) for name in ("next", "other")}
    return Case(model, keras.optimizers.Adam(0.01), None,
                {"inputs": Field("seen", "int64", [5]), "label": label,
                 "sample_weight": Field("weights", "float32", [5])})  # fmt: skip


class Weighted(keras.Model):
    """The loss is a part of the argument of `compile`, and what its layers add."""

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None,
                     sample_weight: Any = None, training: bool = True) -> Any:  # fmt: skip
        return 0.5 * super().compute_loss(x, y, y_pred, sample_weight, training)


def part_of_a_loss() -> Case:
    x = L.Input((3,), name="x")
    model = Weighted(x, L.Dense(1)(L.Dense(4, "tanh", kernel_regularizer="l2")(x)))
    return Case(model, "rmsprop", "huber", {"sample_weight": "weight"})


class Squares(L.Layer):
    """Adds the squares of its input to the loss."""

    def call(self, x: Any) -> Any:
        self.add_loss(keras.ops.mean(keras.ops.square(x)))
        return x


def only_added_losses() -> Case:
    """An autoencoder: it needs no label."""
    x = L.Input((5,), name="x")
    code = L.Dense(2, activation="tanh", name="code")(x)
    Squares()(L.Dense(5)(code) - x)
    again = L.Dense(5, name="again")(code)
    return Case(keras.Model(x, Squares()(again - x)), "adam", None)


def rows_of(case: Case) -> tuple[Any, Any]:
    """Returns inputs and labels of ROWS rows for one of these models."""
    random = np.random.default_rng(8)
    users, items = random.integers(0, 9, ROWS), random.integers(0, 12, ROWS)
    rating = random.integers(0, 2, ROWS).astype(np.float32)
    if isinstance(case.model, Retrieval):
        return users, {"item": items, "rating": rating}
    if isinstance(case.model, Following):
        seen, after, other = random.integers(0, 12, (3, ROWS, 5))
        return seen, {"next": after, "other": other}
    if isinstance(case.model, Softmax):
        return random.integers(0, 12, (ROWS, 5)), items
    names = [str(tensor.name) for tensor in case.model.inputs]
    if "user" in names:
        return {"user": users, "item": items}, rating
    width = int(case.model.inputs[0].shape[1])
    return random.normal(size=(ROWS, width)).astype(np.float32), rating
