"""A model's variables as in the manifest: in order, each with a unique name and a kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterator, List

import keras

DENSE, TABLE, STATE, SEED = "dense", "table", "state", "seed"


@dataclass
class Entry:
    """A variable of the manifest; `variable` is Keras's. Tracing finds out its kind, whether the
    loss depends on it, whether the gradient of a dense one is a list of rows in Keras (sliced), and
    whether prediction reads a whole table (read_whole)."""

    index: int
    name: str
    variable: Any
    kind: str
    trainable: bool
    sliced: bool = False
    read_whole: bool = False

    @property
    def dtype(self) -> str:
        return str(self.variable.dtype)

    @property
    def shape(self) -> List[int]:
        return [int(length) for length in self.variable.shape]

    def argument(self, word: str = "var") -> str:
        """Returns `var_003`, `grad_003`, ..."""
        return f"{word}_{self.index:03d}"

    def copy(self) -> Any:
        """Returns a Keras variable with the same name and value, for an optimizer that uses both.
        """
        variable = keras.Variable(self.variable.numpy(), name=self.variable.name)
        variable._path = self.variable.path
        variable.constraint = self.variable.constraint
        return variable

    def manifest(self) -> Dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "dtype": self.dtype,
            "shape": self.shape,
            "trainable": self.trainable,
        }


class Variables:
    """All variables of a model, trainable ones first, without those of metrics."""

    def __init__(self, model: Any) -> None:
        trainable = list(model.trainable_variables)
        ids = {id(variable) for variable in trainable}
        rest = [v for v in model.non_trainable_variables if id(v) not in ids]
        self.all: List[Entry] = []
        self._by_id: Dict[int, Entry] = {}
        names: Dict[str, int] = {}
        for variable in trainable + rest:
            if id(variable) in self._by_id:
                continue
            seen = names.get(variable.path, 0)
            names[variable.path] = seen + 1
            name = f"{variable.path}:{seen}" if seen else variable.path
            kind = SEED if _is_seed(variable) else DENSE
            entry = Entry(len(self.all), name, variable, kind, id(variable) in ids)
            self.all.append(entry)
            self._by_id[id(variable)] = entry

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def of(self, variable: Any) -> Entry:
        """Raises KeyError for a variable that is not the model's."""
        return self._by_id[id(variable)]

    def has(self, variable: Any) -> bool:
        return id(variable) in self._by_id

    @property
    def trainable(self) -> List[Entry]:
        return [entry for entry in self.all if entry.trainable]

    def of_kind(self, kind: str) -> List[Entry]:
        return [entry for entry in self.all if entry.kind == kind]


def is_variable(value: Any) -> bool:
    """Whether it is a Keras variable. Not checked by class, since its class has changed under the
    same name."""
    return hasattr(value, "assign")


def _is_seed(variable: Any) -> bool:
    return str(variable.path).endswith("seed_generator_state") and list(variable.shape) == [2]
