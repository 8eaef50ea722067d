"""Muster for programs of Spark: DataFrames in and out.

    from muster.spark import MusterEstimator, read_tfrecords, write_tfrecords

Needs pyspark 3.5 or later and pyarrow; docs/spark.md. The `muster` program must be on all machines on
which Python workers run: this package contains it (muster.binary).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.spark.estimator import MusterEstimator as MusterEstimator
    from muster.spark.estimator import MusterModel as MusterModel
    from muster.spark.job import Job as Job
    from muster.spark.job import Result as Result
    from muster.spark.job import run as run
    from muster.spark.job import start as start
    from muster.spark.tfrecords import Written as Written
    from muster.spark.tfrecords import read_tfrecords as read_tfrecords
    from muster.spark.tfrecords import write_tfrecords as write_tfrecords
    from muster.spark.tuning import Tuned as Tuned
    from muster.spark.tuning import tune as tune

_MODULES = {
    "Job": "job",
    "MusterEstimator": "estimator",
    "MusterModel": "estimator",
    "Result": "job",
    "Tuned": "tuning",
    "Written": "tfrecords",
    "read_tfrecords": "tfrecords",
    "run": "job",
    "start": "job",
    "tune": "tuning",
    "write_tfrecords": "tfrecords",
}
__all__ = [
    "Job",
    "MusterEstimator",
    "MusterModel",
    "Result",
    "Tuned",
    "Written",
    "read_tfrecords",
    "run",
    "start",
    "tune",
    "write_tfrecords",
]


def __getattr__(name: str) -> Any:
    """Imports pyspark when a name is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'muster.spark' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"muster.spark.{_MODULES[name]}"), name)
    except ImportError as error:
        raise ImportError(f"muster.spark needs pyspark and pyarrow: {error}") from error
