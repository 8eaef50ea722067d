"""Checks of a Spark session, and its errors in one line."""

from __future__ import annotations

from typing import Any, Tuple

from muster.spark.reach import OtherMachineError

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
