"""HttpFS, Hadoop's gateway that speaks WebHDFS for an HDFS whose nodes clients do not reach."""

from __future__ import annotations

import os
import pathlib
import subprocess
import time
import urllib.error
import urllib.request

from testbed.hadoop.cluster import DEADLINE, Hdfs, configuration
from testbed.ports import free_port


class HttpFs:
    """Started by start(), ended by stop()."""

    def __init__(self, folder: pathlib.Path, hdfs: Hdfs):
        self.folder, self.hdfs, self.port = folder, hdfs, free_port()
        self.process: subprocess.Popen[bytes] | None = None
        for name in ("log", "temp"):
            (folder / name).mkdir()
        conf = hdfs.folder / "conf"  # Java finds httpfs-site.xml there
        (conf / "httpfs-site.xml").write_text(
            configuration({
                "httpfs.http.hostname": "127.0.0.1",
                "httpfs.http.port": self.port,
                "httpfs.hadoop.config.dir": conf,
            })
        )  # fmt: skip
        (conf / "httpfs-signature.secret").write_text("test bed")
        (conf / "httpfs-log4j.properties").write_text("log4j.rootLogger=WARN\n")

    @property
    def url(self) -> str:
        return f"webhdfs://127.0.0.1:{self.port}"

    def start(self) -> None:
        properties = [
            f"-Dhttpfs.home.dir={self.folder}",
            *(f"-Dhttpfs.{name}.dir={self.folder}/{name}" for name in ("log", "temp")),
            f"-Dhttpfs.config.dir={self.hdfs.folder}/conf",
        ]
        command = self.hdfs.java(
            "httpfs", "org.apache.hadoop.fs.http.server.HttpFSServerWebServer", properties=properties
        )
        with open(self.folder / "httpfs.out", "ab") as log:
            environment = {k: v for k, v in os.environ.items() if k != "HADOOP_USER_NAME"}
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            cwd=self.folder, env=environment)  # fmt: skip
        end = time.monotonic() + DEADLINE
        while True:
            try:
                target = "/webhdfs/v1/?op=GETFILESTATUS&user.name=tester"
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}{target}", timeout=10).close()
                return
            except (OSError, urllib.error.URLError) as error:
                said = (self.folder / "httpfs.out").read_text(errors="replace")[-4000:]
                assert self.process.poll() is None and time.monotonic() < end, f"{error}: {said}"
            time.sleep(0.2)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
