"""The inputs of a model: names, and the record fields that they come from."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

Shape = Tuple[Optional[int], ...]

_DTYPES = (
    "float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool string"
).split()
_DECODES = ("raw", "png", "jpeg")
_NUMBERED = re.compile(r"keras_tensor(_\d+)?$")  # the name that Keras gives an input without one


@dataclass(frozen=True)
class Field:
    """A field of the records and its values.

    shape: of one row; None is any length. decode: the field is one string of bytes that holds the
    values: 'raw' (little-endian numbers), 'png' or 'jpeg'.
    """

    feature: str
    dtype: str
    shape: Shape = ()
    decode: Optional[str] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        what = f"Field '{self.feature}'"
        if not isinstance(self.feature, str) or not self.feature:
            raise ValueError(f"{what}: the name of a record field is wanted")
        if self.dtype not in _DTYPES:
            raise ValueError(f"{what}: dtype {self.dtype!r} is none of {', '.join(_DTYPES)}")
        if not all(d is None or (isinstance(d, int) and d > 0) for d in self.shape):
            raise ValueError(f"{what}: shape {self.shape}: lengths over 0, or None for any length")
        if self.decode is None:
            return
        if self.decode not in _DECODES:
            raise ValueError(f"{what}: decode {self.decode!r} is none of {', '.join(_DECODES)}")
        if None in self.shape or self.dtype == "string":
            raise ValueError(f"{what}: decode wants a shape without None and a dtype of numbers")
        if self.decode != "raw" and (
            len(self.shape) != 3 or self.dtype not in ("uint8", "float32")
        ):
            raise ValueError(
                f"{what}: decode {self.decode!r} gives uint8 or float32 of (height, width, "
                f"channels), not {self.dtype} {self.shape}"
            )


@dataclass(frozen=True)
class Port:
    """One tensor that functions take."""

    name: str
    feature: str
    dtype: str
    shape: Shape
    decode: Optional[str]

    def entry(self) -> Dict[str, Any]:
        """Returns the manifest's entry."""
        return {**asdict(self), "shape": list(self.shape)}


def port(name: str, field: Field) -> Port:
    return Port(name, field.feature, field.dtype, field.shape, field.decode)


@dataclass(frozen=True)
class Ports:
    """Tensors in the structure that the model takes: `structure` has their names as leaves."""

    all: List[Port]
    structure: Any

    def pack(self, values: Mapping[str, Any]) -> Any:
        """Puts `values`, which are by name, into the structure."""
        return _map(lambda name: values[name], self.structure)

    def unpack(self, values: Any) -> Dict[str, Any]:
        """Returns the values of the structure by name. Raises ValueError for another structure."""
        found: Dict[str, Any] = {}
        _walk(self.structure, values, found)
        return found


def inputs_of(model: Any, given: Any) -> Ports:
    """See muster.keras.export. Raises ValueError if the inputs cannot be known."""
    if _is_functional(model):
        return _functional_inputs(model, given)
    if given is None:
        raise ValueError(
            f"inputs: a subclassed model ({type(model).__name__}) does not say what it is called "
            "with: give inputs=muster.keras.Field(...), a list or a dict of them"
        )
    return _structured(given, "inputs", lambda name, feature: _no_type("inputs", feature))


def labels_of(given: Any, default: Callable[[str, str], Field], wanted: bool = True) -> Ports:
    """`default` makes the Field of a label that is given as a record field's name, by its place.
    None means no labels, which is an error if they are `wanted`."""
    if given is None and not wanted:
        return Ports([], None)
    if given is None:
        raise ValueError("label: the record field of the label is wanted")
    return _structured(given, "label", default)


def weight_of(given: Any) -> Optional[Port]:
    """Returns the sample weight: a number per row, or for each step of a row."""
    if given is None:
        return None
    field = Field(given, "float32") if isinstance(given, str) else given
    if not isinstance(field, Field) or not field.dtype.startswith("float"):
        raise ValueError(f"sample_weight: a record field of floats is wanted, not {given!r}")
    return port("sample_weight", field)


def key_of(given: Any, others: List[Port]) -> Optional[Port]:
    """Returns the key of a row: one value. If `others` have the field, it has their dtype, else it
    is a string."""
    if given is None:
        return None
    field = given
    if isinstance(given, str):
        types = [port.dtype for port in others if port.feature == given]
        field = Field(given, types[0] if types else "string")
    plain = isinstance(field, Field) and not field.shape and field.decode is None
    shared = [port for port in others if plain and port.feature == field.feature]
    if not plain or any(port.shape or port.decode for port in shared):
        raise ValueError(f"key: a record field of one value a row is wanted, not {given!r}")
    return port("key", field)


def _is_functional(model: Any) -> bool:
    """Whether the model knows its inputs: it is Sequential, or made of layers' inputs and outputs.
    """
    import keras

    return isinstance(model, keras.Sequential) or hasattr(model, "operations")


def _functional_inputs(model: Any, given: Any) -> Ports:
    import keras

    tensors = keras.tree.flatten(model.inputs)
    names = [str(tensor.name) for tensor in tensors]
    fields = _given_inputs(given, names)
    ports: List[Port] = []
    placed: Dict[int, str] = {}
    for name, tensor in zip(names, tensors):
        if getattr(tensor, "sparse", False) or getattr(tensor, "ragged", False):
            raise ValueError(f"input '{name}' is sparse or ragged: use a dense one, padded")
        if tensor.shape[0] is not None:
            raise ValueError(
                f"input '{name}' has a fixed batch size of {tensor.shape[0]}: leave batch_size out"
            )
        field = fields.get(name, name)
        unnamed = _NUMBERED.match(name)
        if unnamed and name not in fields:
            raise ValueError(
                "inputs: the model has one without a name: say keras.Input(..., name='age'), or "
                "inputs='age' (a list for several), the record field that it comes from"
            )
        if isinstance(field, str):
            field = Field(field, str(tensor.dtype), tuple(tensor.shape[1:]))
        _check_field(field, "inputs")
        placed[id(tensor)] = field.feature if unnamed else name
        _add(ports, port(placed[id(tensor)], field), "inputs")
    structure = model.inputs[0] if isinstance(model, keras.Sequential) else model.input
    return Ports(ports, keras.tree.map_structure(lambda tensor: placed[id(tensor)], structure))


def _given_inputs(given: Any, names: List[str]) -> Mapping[str, Any]:
    """Returns what is given for the inputs of these names, by name."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise ValueError(f"inputs: the model has no input '{name}'; it has {names}")
        return given
    several = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(several) != len(names):
        raise ValueError(f"inputs: {len(several)} given, the model has {len(names)}: {names}")
    return dict(zip(names, several))


def _structured(given: Any, what: str, default: Callable[[str, str], Field]) -> Ports:
    ports: List[Port] = []

    def leaf(name: Optional[str], field: Any) -> str:
        if isinstance(field, str):
            field = default(name or "", field)
        _check_field(field, what)
        return _add(ports, port(name or field.feature, field), what)

    structure: Any
    if isinstance(given, Mapping):
        structure = {name: leaf(str(name), field) for name, field in given.items()}
    elif isinstance(given, (list, tuple)):
        structure = [leaf(None, field) for field in given]
    else:
        structure = leaf(None, given)
    if not ports:
        raise ValueError(f"{what}: none is given")
    return Ports(ports, structure)


def _add(ports: List[Port], named: Port, what: str) -> str:
    if any(other.name == named.name for other in ports):
        raise ValueError(f"{what}: two are called '{named.name}'")
    ports.append(named)
    return named.name


def _check_field(field: Any, what: str) -> None:
    if not isinstance(field, Field):
        raise ValueError(
            f"{what}: a record field's name or a muster.keras.Field is wanted, not {field!r}"
        )


def _no_type(what: str, feature: str) -> Field:
    raise ValueError(
        f"{what}: of '{feature}' type and shape are not known: "
        f"give muster.keras.Field('{feature}', dtype, shape)"
    )


def _map(function: Callable[[str], Any], structure: Any) -> Any:
    if structure is None:
        return None
    if isinstance(structure, Mapping):
        return {key: _map(function, value) for key, value in structure.items()}
    if isinstance(structure, (list, tuple)):
        return [_map(function, value) for value in structure]
    return function(structure)


def _walk(structure: Any, values: Any, found: Dict[str, Any]) -> None:
    if structure is None:
        return
    if isinstance(structure, Mapping):
        if not isinstance(values, Mapping) or set(values) != set(structure):
            raise ValueError(f"example: a dict of {sorted(structure)} is wanted")
        for key, name in structure.items():
            _walk(name, values[key], found)
    elif isinstance(structure, (list, tuple)):
        if not isinstance(values, (list, tuple)) or len(values) != len(structure):
            raise ValueError(f"example: a list of {len(structure)} is wanted")
        for name, value in zip(structure, values):
            _walk(name, value, found)
    else:
        found[structure] = values
