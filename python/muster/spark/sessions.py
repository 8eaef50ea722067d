"""Checks of a Spark session, and its errors in one line."""

from __future__ import annotations

import contextlib
import re
import sys
from typing import Any, Iterator, Optional, Tuple

from muster import binary
from muster.spark.reach import OtherMachineError

_UNFIT = re.compile(r"No module named '[\w.]+'|Python in worker has different version[^\n]*")
_STOPPED = "the SparkSession was stopped: make another one, and what is to use it"


def check_running(context: Any) -> None:
    """Raises ValueError for a SparkContext that was stopped."""
    if is_stopped(context):
        raise ValueError(_STOPPED)


def is_stopped(context: Any) -> bool:
    """Whether a SparkContext was stopped, by its program or by its cluster."""
    java = context._jsc
    try:
        return java is None or bool(java.sc().isStopped())
    except Exception:  # its JVM is gone
        return True


def session_of(df: Any) -> Any:
    """The running session of a DataFrame. Raises TypeError for anything else, ValueError for a stopped one."""
    session = getattr(df, "sparkSession", None)
    if session is None:
        raise TypeError(
            f"a DataFrame of Spark is wanted, not a {type(df).__module__}.{type(df).__name__}: "
            "spark.createDataFrame(rows) makes one, also of a DataFrame of pandas"
        )
    check_running(session.sparkContext)
    return session


def unfit_python(context: Any, error: Exception) -> Optional[str]:
    """Says which Python Spark's workers run, if an error says that it is another one than they need."""
    found = _UNFIT.search(str(error))
    if found is None:
        return None
    return (
        f"Spark's Python workers run {context.pythonExec}, where this fails: {found[0].rstrip('. ')}. Give them a Python "
        f"with the driver's packages: PYSPARK_PYTHON={sys.executable}, or the setting spark.pyspark.python, before "
        "the session is made"
    )


@contextlib.contextmanager
def naming_unfit_python(context: Any) -> Iterator[None]:
    """Makes a MusterError of what Spark says if its workers run another Python than the block needs."""
    try:
        yield
    except Exception as error:
        unfit = unfit_python(context, error)
        if unfit is None:
            raise
        raise binary.MusterError(unfit) from error


def reason(context: Any, error: Exception) -> Tuple[str, bool]:
    """The line of Spark's error that says what went wrong in the Python worker, and whether it would again."""
    if is_stopped(context):
        return "the SparkSession was stopped", True
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in lines:
        kind, colon, text = line.partition("Error: ")
        if colon and kind in ("Runtime", f"{OtherMachineError.__module__}.OtherMachine"):
            return text, kind != "Runtime"
    return lines[0] if lines else type(error).__name__, False
