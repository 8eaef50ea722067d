"""Writes testdata/tensorflow_bundle.{index,data-*}: a checkpoint by the real TensorFlow.

Run with tensorflow-cpu 2.15: python make_test_bundle.py [FOLDER]. bundle_test.cc knows every value
by its rule; bundle_component_test.py checks that TensorFlow still writes these bytes.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf

LONG_NAME = "scope/" + "x" * 500
STRINGS = [b"", b"one", b"\x00\xff binary", b"long " * 60]


def tensors() -> list[tuple[str, np.ndarray]]:
    """Names and values in the order in which they are saved, which is not that of the names."""
    many = [(f"many/variable_{i:03d}", np.float32([i, i + 0.5])) for i in range(100)]
    return [
        ("zeta/float", np.arange(12, dtype=np.float32).reshape(3, 4) / 8),
        ("scalar/int64", np.int64(-(2**40))),
        ("scalar/float", np.float32(0.25)),
        ("scalar/string", np.array(b"a scalar")),
        ("strings", np.array(STRINGS, dtype=object).reshape(2, 2)),
        ("empty/float", np.zeros([0, 7], np.float32)),
        ("empty/strings", np.array([], dtype=object)),
        ("int32", np.int32([1, -2, 3])),
        ("bool", np.array([True, False, True])),
        ("double", np.float64([1.5, -2.5])),
        (LONG_NAME, np.float32([42])),
        *many,
    ]


def save(prefix: str) -> None:
    names, values = zip(*tensors())
    constants = [tf.constant(v, tf.string) if v.dtype == object or v.dtype.kind == "S"
                 else tf.constant(v) for v in values]
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=list(names),
                      shape_and_slices=[""] * len(names), tensors=constants)


if __name__ == "__main__":
    here = pathlib.Path(__file__).parent / "testdata"
    save(str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else here) / "tensorflow_bundle"))
