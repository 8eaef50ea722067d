"""Decodes values from one string of bytes, with TensorFlow operations."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from muster.keras import tracing
from muster.keras.fields import Port
from muster.keras.tracing import Tensors, Traced


def decode(port: Port, content: Any) -> Any:
    """Returns the port's values, from a string scalar."""
    kind = tf.as_dtype(port.dtype)
    if port.decode == "raw":
        if kind == tf.bool:
            return tf.cast(tf.reshape(tf.io.decode_raw(content, tf.uint8), port.shape), tf.bool)
        return tf.reshape(tf.io.decode_raw(content, kind, little_endian=True), port.shape)
    read = tf.io.decode_png if port.decode == "png" else tf.io.decode_jpeg
    image = tf.reshape(read(content, channels=port.shape[-1]), port.shape)
    return tf.image.convert_image_dtype(image, tf.float32) if kind == tf.float32 else image


def function(port: Port) -> Traced:
    """Returns the function from `bytes` to `value`."""

    def body(arguments: Tensors) -> Tensors:
        return {"value": decode(port, arguments["bytes"])}

    return tracing.trace({"bytes": tracing.spec((), "string", batch=False)}, body)
