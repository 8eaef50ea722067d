"""A NameNode and DataNodes on loopback ports of this machine."""

from __future__ import annotations

import getpass
import json
import os
import pathlib
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from typing import Mapping, Sequence

from testbed.daemons import Daemons
from testbed.maven import fetch_jars
from testbed.ports import free_port

HERE = pathlib.Path(__file__).parent
VERSION = "3.4.2"  # as in pom.xml
DEADLINE = 480.0  # on a machine that does much besides
HDFS = "org.apache.hadoop.hdfs.server"
JAVA = [
    "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx384m",
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.util", "java.io", "java.net")),
]  # fmt: skip
WEB_APP = '<web-app xmlns="http://java.sun.com/xml/ns/javaee" version="2.4"></web-app>\n'


def java_home() -> str:
    java = shutil.which("java")
    assert java is not None
    return str(pathlib.Path(java).resolve().parents[1])


def configuration(properties: Mapping[str, object]) -> str:
    lines = (
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in properties.items()
    )
    return "<configuration>\n" + "\n".join(lines) + "\n</configuration>\n"


class Hdfs(Daemons):
    """Started by start(), ended by stop(). Blocks have `data_nodes` copies."""

    host = "127.0.0.1"  # where the daemons listen

    def __init__(self, folder: pathlib.Path, data_nodes: int = 2, version: str = VERSION):
        self.folder, self.data_nodes = folder, data_nodes
        self.jars = fetch_jars(HERE / "pom.xml", **({} if version == VERSION else {"hadoop": version}))
        self.rpc_port, self.http_port = free_port(), free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.own_conf: dict[str, pathlib.Path] = {}  # of daemons whose files come before those of all
        self.write_configuration()

    def core_site(self) -> dict[str, object]:
        # This user, as whom HttpFS runs, may call for others.
        proxy = f"hadoop.proxyuser.{getpass.getuser()}"
        return {"fs.defaultFS": self.url, "hadoop.tmp.dir": self.folder / "tmp",
                f"{proxy}.hosts": "*", f"{proxy}.groups": "*"}  # fmt: skip

    def hdfs_site(self) -> dict[str, object]:
        return {
            "dfs.namenode.name.dir": self.folder / "name",
            "dfs.namenode.http-address": f"{self.host}:{self.http_port}",
            "dfs.datanode.data.dir": self.folder / "data-${muster.node}",
            "dfs.datanode.address": f"{self.host}:0",
            "dfs.datanode.http.address": f"{self.host}:0",
            "dfs.datanode.ipc.address": f"{self.host}:0",
            "dfs.datanode.hostname": self.host,
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.replication": self.data_nodes,
            "dfs.namenode.safemode.extension": 0,
            "dfs.namenode.heartbeat.recheck-interval": 2000,
            "dfs.heartbeat.interval": 1,
            "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
            "dfs.namenode.fs-limits.min-block-size": 1024,
        }

    @property
    def url(self) -> str:
        return f"hdfs://{self.host}:{self.rpc_port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a user of this HDFS sets."""
        return {"HADOOP_CONF_DIR": str(self.folder / "conf"), "HADOOP_USER_NAME": "tester"}

    def write_configuration(self) -> None:
        conf = self.folder / "conf"
        for name in ("hdfs", "datanode", "secondary", "static"):
            pages = conf / "webapps" / name / "WEB-INF"
            pages.mkdir(parents=True)
            (pages / "web.xml").write_text(WEB_APP)
        (conf / "core-site.xml").write_text(configuration(self.core_site()))
        (conf / "hdfs-site.xml").write_text(configuration(self.hdfs_site()))
        (conf / "log4j.properties").write_text(
            "log4j.rootLogger=WARN,err\nlog4j.appender.err=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.err.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.err.layout.ConversionPattern=%d %p %c: %m%n\n"
        )

    def java(self, node: str, program: str, *arguments: str, properties: Sequence[str] = ()) -> list[str]:
        own = [str(self.own_conf[node])] if node in self.own_conf else []
        classes = ":".join([*own, str(self.folder / "conf"), f"{self.jars}/*"])
        return [*JAVA, f"-Dmuster.node={node}", *properties, "-cp", classes, program, *arguments]

    def wrapper(self, name: str) -> Sequence[str]:
        """The words before the command of the daemon of that name."""
        return ()

    def run(self, name: str, program: str, *properties: str) -> None:
        environment = {**os.environ, "HADOOP_USER_NAME": "hdfs", "JAVA_HOME": java_home()}
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                [*self.wrapper(name), *self.java(name, program, properties=properties)], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                cwd=self.folder, env=environment,
            )  # fmt: skip

    def start(self) -> None:
        formatted = subprocess.run(
            self.java("name", f"{HDFS}.namenode.NameNode", "-format", "-nonInteractive"),
            capture_output=True, text=True, env={**os.environ, "HADOOP_USER_NAME": "hdfs"},
        )  # fmt: skip
        assert formatted.returncode == 0, formatted.stderr[-4000:]
        self.start_name_node()
        for number in range(self.data_nodes):
            self.start_data_node(number)
        self.wait_until_usable()
        self.call("PUT", "/", "SETPERMISSION", permission="1777")

    def start_name_node(self) -> None:
        self.run("name", f"{HDFS}.namenode.NameNode")

    def start_data_node(self, number: int) -> None:
        self.run(f"data-{number}", f"{HDFS}.datanode.DataNode")

    @property
    def web_url(self) -> str:
        return f"http://{self.host}:{self.http_port}"

    def fetch(self, method: str, target: str) -> bytes:
        """What the NameNode's web server answers."""
        request = urllib.request.Request(self.web_url + target, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bytes(answer.read())

    def call(self, method: str, path: str, op: str, user: str = "hdfs", **parameters: str) -> bytes:
        query = "&".join([f"op={op}", f"user.name={user}", *(f"{k}={v}" for k, v in parameters.items())])
        return self.fetch(method, f"/webhdfs/v1{path}?{query}")

    def metric(self, bean: str, name: str) -> int:
        """A number that the NameNode keeps of itself."""
        beans = json.loads(self.fetch("GET", f"/jmx?qry=Hadoop:service=NameNode,name={bean}"))["beans"]
        return int(beans[0][name]) if beans else 0

    def live_data_nodes(self) -> int:
        return self.metric("FSNamesystemState", "NumLiveDataNodes")

    def safe_mode(self, order: str) -> None:
        """`order` is enter or leave."""
        done = subprocess.run(
            self.java("admin", "org.apache.hadoop.hdfs.tools.DFSAdmin", "-safemode", order),
            capture_output=True, text=True, env={**os.environ, "HADOOP_USER_NAME": "hdfs"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]

    def put(self, local: pathlib.Path, url: str, user: str = "tester") -> None:
        """Copies the files of a folder."""
        for path in local.rglob("*"):
            if not path.is_file():
                continue
            name = f"{url.removeprefix(self.url)}/{path.relative_to(local)}"
            query = f"op=CREATE&user.name={user}&overwrite=true&noredirect=true"
            address = f"http://{self.host}:{self.http_port}/webhdfs/v1{name}?{query}"
            with urllib.request.urlopen(urllib.request.Request(address, method="PUT"), timeout=10) as answer:
                location = json.load(answer)["Location"]
            request = urllib.request.Request(location, path.read_bytes(), method="PUT")
            urllib.request.urlopen(request, timeout=60).read()

    def wait_until_it_answers(self) -> None:
        """Until the NameNode answers reads, be it in safe mode and without a DataNode."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            try:
                self.call("GET", "/", "GETFILESTATUS")
                return
            except (OSError, urllib.error.URLError):
                time.sleep(0.2)
        raise AssertionError(f"the NameNode does not answer after {DEADLINE:.0f} s")

    def wait_until_usable(self, data_nodes: int | None = None) -> None:
        """Until the NameNode has left safe mode and knows the DataNodes."""
        wanted = self.data_nodes if data_nodes is None else data_nodes
        end, last = time.monotonic() + DEADLINE, "nothing was tried"
        while time.monotonic() < end:
            for name, process in self.processes.items():
                log = (self.folder / f"{name}.log").read_text(errors="replace")
                assert process.poll() is None, f"{name} has ended: {log[-4000:]}"
            try:
                self.call("PUT", "/tmp", "MKDIRS")
                if self.live_data_nodes() >= wanted:
                    return
                last = "DataNodes are missing"
            except (OSError, urllib.error.URLError) as error:
                last = str(error)
            time.sleep(0.2)
        raise AssertionError(f"HDFS is not usable after {DEADLINE:.0f} s: {last}")
