"""Where HDFS is, and as whom to call it, for programs that Python workers of Spark start.

Spark's JVMs know both from their class path and their own settings. In a container of YARN, and of an executor's user
in general, the environment that a Python worker passes on says neither.
"""

from __future__ import annotations

import os
import pathlib
from typing import MutableMapping

# Spark on YARN puts the submitter's configuration there, in the working folder of each container.
_CONFIGURATION = pathlib.Path("__spark_conf__", "__hadoop_conf__")


def complete(environment: MutableMapping[str, str]) -> None:
    """Sets HADOOP_CONF_DIR and HADOOP_USER_NAME where they are not set and Spark knows them."""
    if "HADOOP_CONF_DIR" not in environment and _CONFIGURATION.is_dir():
        environment["HADOOP_CONF_DIR"] = str(_CONFIGURATION.absolute())
    user = environment.get("SPARK_USER", "")
    if user:
        environment.setdefault("HADOOP_USER_NAME", user)
