"""The heads of tf.estimator that a model file's `head:` and `weight:` stand for."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from tensorflow_estimator.python.estimator.head import base_head
from tensorflow_estimator.python.estimator.head.binary_class_head import BinaryClassHead
from tensorflow_estimator.python.estimator.head.multi_class_head import MultiClassHead
from tensorflow_estimator.python.estimator.head.multi_label_head import MultiLabelHead
from tensorflow_estimator.python.estimator.head.regression_head import (
    LogisticRegressionHead,
    PoissonRegressionHead,
    RegressionHead,
)

from testbed.tensorflow_peer.spec import Spec, head_of


def log_normal_loss(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Minus tfp.glm.LogNormal's log probability (tf.estimator has no such head)."""
    variance = np.float32(np.log(2))
    log_labels = tf.math.log(labels)
    distance = log_labels - (logits - variance / np.float32(2))
    normal = distance**2 / (2 * variance) + np.float32(0.5 * np.log(2 * np.pi * variance))
    return log_labels + normal


def make(spec: Spec) -> base_head.Head:
    head = head_of(spec)
    weight = {"weight_column": spec.get("weight")}
    words = {"label_vocabulary": None}  # labels are numbers already
    if head["kind"] == "binary":
        return BinaryClassHead(**weight, **words)
    if head["kind"] == "multi_class":
        return MultiClassHead(head["width"], **weight, **words)
    if head["kind"] == "multi_label":
        return MultiLabelHead(head["width"], **weight, **words)
    if head["loss"] == "poisson":
        return PoissonRegressionHead(head["width"], **weight)
    if head["loss"] == "logistic":
        return LogisticRegressionHead(**weight)
    if head["loss"] == "log_normal":
        return RegressionHead(
            head["width"], loss_fn=log_normal_loss, inverse_link_fn=tf.math.exp, **weight
        )
    return RegressionHead(head["width"], **weight)


def labels_for(spec: Spec, labels: tf.Tensor) -> tf.Tensor:
    """Returns a table's labels in the type that the head takes."""
    kind = head_of(spec)["kind"]
    return tf.cast(labels, tf.int64) if kind in ("multi_class", "multi_label") else labels
