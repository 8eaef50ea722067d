"""A model to export."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Case:
    """The arguments of muster.keras.export."""

    model: Any
    optimizer: Any = "sgd"
    loss: Any = "mse"
    options: dict[str, Any] = field(default_factory=dict)
