"""spark-submit of whole programs, as a user runs it, with a Python that travels as an archive."""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil
import subprocess
from typing import Mapping

import pyspark

from testbed.hadoop.cluster import Hdfs
from testbed.spark import sessions
from testbed.tensorflow_jobs import ENVIRONMENT

HOME = pathlib.Path(pyspark.__file__).parent
DEADLINE = 300.0


def make_python(folder: pathlib.Path, python: str) -> pathlib.Path:
    """An environment `folder`/Python with what that Python's has, and the package `muster`; returns its archive."""
    subprocess.run([python, "-m", "venv", "--without-pip", "Python"], cwd=folder, check=True)
    look = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = subprocess.run(look, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    (own,) = (folder / "Python/lib").glob("python*/site-packages")
    (own / "there.pth").write_text(f"{packages}\n{sessions.ROOT / 'python'}\n")
    return pathlib.Path(shutil.make_archive(str(folder / "Python"), "gztar", folder / "Python"))


class Submits:
    """Submits from a folder, with these settings of Spark and more variables for driver and executors."""

    def __init__(self, folder: pathlib.Path, settings: Mapping[str, object], environment: Mapping[str, str]) -> None:
        self.folder = folder
        given = {
            **ENVIRONMENT, "MUSTER_BINARY": os.environ["MUSTER_BINARY"], "SPARK_LOCAL_IP": "127.0.0.1", **environment,
        }  # fmt: skip
        made: dict[str, object] = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "512m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": sessions.JAVA_FLAGS,
            "spark.executor.extraJavaOptions": sessions.JAVA_FLAGS,
            **{f"spark.executorEnv.{name}": value for name, value in given.items()},
            **{f"spark.yarn.appMasterEnv.{name}": value for name, value in given.items()},
            **settings,
        }
        conf = folder / "spark-conf"
        conf.mkdir()
        lines = [f"{name} {value}\n" for name, value in made.items() if value != ""]
        (conf / "spark-defaults.conf").write_text("".join(lines))
        hidden = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
        self.environment = {name: value for name, value in os.environ.items() if name not in hidden}
        self.environment |= {**given, "SPARK_CONF_DIR": str(conf), "SPARK_HOME": str(HOME)}

    def submit(self, *arguments: object) -> str:
        """Returns what was printed by a program that has succeeded."""
        return self._run(str(HOME / "bin/spark-submit"), *map(str, arguments))

    def run_script(self, name: str, hdfs: Hdfs) -> str:
        """The same of a script of this folder that calls `spark-submit` and `hdfs dfs`, Hadoop's own."""
        programs = self.folder / "bin"
        programs.mkdir(exist_ok=True)
        shell = shlex.join(hdfs.java("shell", "org.apache.hadoop.fs.FsShell"))
        (programs / "hdfs").write_text(f'#!/bin/sh\nshift  # dfs\nexec {shell} "$@"\n')
        (programs / "hdfs").chmod(0o755)
        self.environment["PATH"] = os.pathsep.join((str(programs), str(HOME / "bin"), os.environ["PATH"]))
        return self._run("bash", name)

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEADLINE,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-8000:]
        return done.stdout
