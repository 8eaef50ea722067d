"""Fields and structures; needs no TensorFlow."""

from __future__ import annotations

import pytest

from muster.keras import Field
from muster.keras.fields import Ports, key_of, labels_of, port, weight_of


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("", "int32"), "the name of a record field"),
        (("x", "int33"), "dtype 'int33'"),
        (("x", "int32", (0,)), "lengths over 0"),
        (("x", "int32", (3, -1)), "lengths over 0"),
        (("x", "uint8", (2, 2, 1), "gif"), "decode 'gif'"),
        (("x", "uint8", (None, 2, 1), "png"), "without None"),
        (("x", "string", (2,), "raw"), "dtype of numbers"),
        (("x", "int32", (2, 2, 3), "png"), "uint8 or float32"),
        (("x", "uint8", (2, 2), "jpeg"), "(height, width, channels)"),
    ],
)
def test_wrong_fields(arguments, words) -> None:
    with pytest.raises(ValueError) as error:
        Field(*arguments)
    assert words in str(error.value)
    assert "Field '" in str(error.value)


def test_a_field_keeps_what_it_is_given() -> None:
    field = Field("image", "uint8", [28, 28, 1], decode="png")
    assert field.shape == (28, 28, 1)
    assert port("x", field).entry() == {
        "name": "x", "feature": "image", "dtype": "uint8", "shape": [28, 28, 1], "decode": "png",
    }  # fmt: skip


def test_structures_are_packed_and_unpacked() -> None:
    ports = Ports([], {"a": "x", "b": ["y", "z"]})
    values = {"a": 1, "b": [2, 3]}
    assert ports.unpack(values) == {"x": 1, "y": 2, "z": 3}
    assert ports.pack({"x": 1, "y": 2, "z": 3}) == values
    for wrong in ({"a": 1}, {"a": 1, "b": [2]}, [1, 2], {"a": 1, "b": 2}):
        with pytest.raises(ValueError, match="example: a (dict|list) of"):
            ports.unpack(wrong)


def test_labels() -> None:
    def default(name: str, feature: str) -> Field:
        return Field(feature, "float32" if name else "int64")

    one = labels_of("clicked", default)
    assert (one.structure, one.all[0].dtype) == ("clicked", "int64")
    several = labels_of({"a": "x", "b": Field("y", "int32")}, default)
    assert several.structure == {"a": "a", "b": "b"}
    assert [(p.name, p.feature, p.dtype) for p in several.all] == [
        ("a", "x", "float32"), ("b", "y", "int32"),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="two are called 'x'"):
        labels_of([Field("x", "int32"), Field("x", "int32")], default)
    with pytest.raises(ValueError, match="label: a record field's name or"):
        labels_of(3, default)


def test_weights() -> None:
    assert weight_of(None) is None
    weight = weight_of("w")
    assert weight is not None and (weight.feature, weight.dtype) == ("w", "float32")
    with pytest.raises(ValueError, match="a record field of floats is wanted"):
        weight_of(Field("w", "int32"))


def test_keys() -> None:
    others = [port("x", Field("user", "int64")), port("z", Field("ids", "int64", [4]))]
    assert key_of(None, others) is None
    for given, dtype in (("id", "string"), ("user", "int64"), (Field("id", "int32"), "int32")):
        key = key_of(given, others)
        assert key is not None and (key.name, key.dtype, key.shape) == ("key", dtype, ())
    for wrong in ("ids", 3, Field("id", "int64", [2]), Field("ids", "int64")):
        with pytest.raises(ValueError, match="key: a record field of one value a row"):
            key_of(wrong, others)
