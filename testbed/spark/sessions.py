"""SparkSessions of tests, small and quiet."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Iterator

import pytest
from pyspark.sql import SparkSession

RETRYING = "local[2,3]"  # a task may fail twice
JAVA_FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
ROOT = pathlib.Path(__file__).parents[2]
PYTHONPATH = os.pathsep.join((str(ROOT / "python"), str(ROOT)))  # of Python workers
os.environ["PYTHONPATH"] = PYTHONPATH
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def session(master: str = RETRYING, **settings: object) -> SparkSession:
    builder = SparkSession.builder.master(master).appName("muster tests")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": 3,
        "spark.driver.memory": "768m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": PYTHONPATH,
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": JAVA_FLAGS,
        **{name.replace("__", "."): value for name, value in settings.items()},
    }.items():
        builder = builder.config(name, str(value))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def running(master: str = RETRYING, **settings: object) -> Iterator[SparkSession]:
    """For a fixture: `yield from running(...)`."""
    spark = session(master, **settings)
    try:
        yield spark
    finally:
        spark.stop()


def path_with_tensorflow() -> str:
    """PYTHONPATH of Python workers that find TensorFlow: that of MUSTER_PYTHON_COMPONENT, or skips the test."""
    python = os.environ.get("MUSTER_PYTHON_COMPONENT")
    if not python:
        pytest.skip("needs MUSTER_PYTHON_COMPONENT, a Python with TensorFlow")
    look = "import sys, sysconfig; print(*sys.version_info[:2], sysconfig.get_path('purelib'))"
    found = subprocess.run([python, "-c", look], stdout=subprocess.PIPE, text=True, check=True).stdout
    major, minor, packages = found.strip().split(" ", 2)
    assert (int(major), int(minor)) == sys.version_info[:2], "both environments need the same Python"
    return os.pathsep.join((PYTHONPATH, packages))


def python_without_packages(folder: pathlib.Path) -> str:
    """A program of the folder that is this Python without its packages."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    path.chmod(0o755)
    return str(path)
