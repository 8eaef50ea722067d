"""What a numeric column's normalizer_fn computes, found by calling it once.

The trained model computes it without Python, so it must be something `muster` can: a linear
function of the value, or of log(1 + value).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

Number = Union[int, float]


@dataclass(frozen=True)
class Normalizer:
    """(x - mean) / stddev, of log(1 + x) if log1p; arithmetic returns another one."""

    log1p_first: bool = False
    mean: float = 0.0
    stddev: float = 1.0

    def __add__(self, other: Number) -> Normalizer:
        return self - (-other)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Normalizer:
        shift = _number(other) * self.stddev
        return Normalizer(self.log1p_first, self.mean + shift, self.stddev)

    def __mul__(self, other: Number) -> Normalizer:
        return Normalizer(self.log1p_first, self.mean, self.stddev / _number(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Normalizer:
        return Normalizer(self.log1p_first, self.mean, self.stddev * _number(other))

    def log1p(self) -> Normalizer:
        """numpy.log1p calls this."""
        if self != Normalizer():
            raise TypeError("log1p of something computed")
        return Normalizer(log1p_first=True)


def log1p(x: Any) -> Any:
    """log(1 + x): of a normalizer_fn's argument, a number, or a TensorFlow tensor."""
    if isinstance(x, Normalizer):
        return x.log1p()
    if hasattr(x, "dtype"):
        import tensorflow as tf

        return tf.math.log1p(x)
    import math

    return math.log1p(x)


def trace(function: Optional[Callable[[Any], Any]], key: str) -> Normalizer:
    """Raises ValueError when the function is none that `muster` can compute."""
    if function is None:
        return Normalizer()
    if not callable(function):
        raise TypeError(f"normalizer_fn must be a callable. Given: {function}")
    try:
        result = _call(function)
    except Exception as error:
        raise _cannot(key, f"it raised {type(error).__name__}: {error}") from error
    if not isinstance(result, Normalizer):
        raise _cannot(key, f"it gave {result!r}")
    if not 0 < result.stddev < float("inf"):
        raise _cannot(key, f"it divides by {result.stddev}")
    return result


def _call(function: Callable[[Any], Any]) -> Any:
    try:
        return function(Normalizer())
    except Exception:
        from muster.normalizer_graph import trace_graph

        result = trace_graph(function)
        if result is None:
            raise
        return result


def _number(value: Any) -> float:
    return float(value)


def _cannot(key: str, why: str) -> ValueError:
    return ValueError(
        f"numeric_column '{key}': the trained model must compute normalizer_fn without Python, "
        "and knows (x - a) / b with numbers a and b > 0, on its own or of "
        f"muster.normalizer.log1p(x); {why}. Compute other things in the input function"
    )
