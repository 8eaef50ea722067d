"""TextEstimator: Spark prepares rows, Kafka carries them, and a function of Python learns from them.

    from muster.text_estimator import TextEstimator

    def map_fun(args={}, ctx=None, _read_data=None):
        for rows in _read_data(max_records=64):
            ...

    estimator = TextEstimator(
        kafkaParam={"bootstrap_servers": ["broker:9092"], "topic": "texts", "group_id": "g"},
        fitParam=[{"rate": 0.1}, {"rate": 0.01}],
        mapFnParam=map_fun,
    )
    for parameters, result in estimator.fit(df).collect():
        ...

Needs pyspark and confluent-kafka; docs/text-estimator.md.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.text_estimator.estimator import TextEstimator as TextEstimator
    from muster.text_estimator.estimator import TextModel as TextModel
    from muster.text_estimator.trials import Trial as Trial

_MODULES = {"TextEstimator": "estimator", "TextModel": "estimator", "Trial": "trials"}
__all__ = ["TextEstimator", "TextModel", "Trial"]


def __getattr__(name: str) -> Any:
    """Imports pyspark when a name is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'muster.text_estimator' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"muster.text_estimator.{_MODULES[name]}"), name)
    except ImportError as error:
        raise ImportError(f"muster.text_estimator needs pyspark and pyarrow: {error}") from error
