"""A ResourceManager and NodeManagers beside an HDFS, on loopback ports of this machine."""

from __future__ import annotations

import json
import pathlib
import time
import urllib.error
import urllib.request
from typing import Any

from testbed.hadoop.cluster import DEADLINE, WEB_APP, Hdfs, configuration
from testbed.ports import free_port

YARN = "org.apache.hadoop.yarn.server"
NODE_MEMORY_MB, NODE_CORES = 8192, 16


class Yarn:
    """Started by start(), ended by stop(). The HDFS must run, and outlives it."""

    def __init__(self, hdfs: Hdfs, nodes: int = 2, **properties: object):
        self.hdfs, self.nodes = hdfs, nodes
        self.http_port = free_port()
        self.node_ports = [free_port() for _ in range(nodes)]
        self.node_http_ports = [free_port() for _ in range(nodes)]
        self.started: list[str] = []
        self.write_configuration(properties)

    @property
    def url(self) -> str:
        return f"http://{self.hdfs.host}:{self.http_port}"

    def write_configuration(self, more: dict[str, object]) -> None:
        conf, folder, host = self.hdfs.folder / "conf", self.hdfs.folder, self.hdfs.host
        for name in ("cluster", "node", "proxy"):
            pages = conf / "webapps" / name / "WEB-INF"
            pages.mkdir(parents=True, exist_ok=True)
            (pages / "web.xml").write_text(WEB_APP)
        (conf / "yarn-site.xml").write_text(
            configuration({
                "yarn.resourcemanager.hostname": host,
                "yarn.resourcemanager.address": f"{host}:{free_port()}",
                "yarn.resourcemanager.scheduler.address": f"{host}:{free_port()}",
                "yarn.resourcemanager.resource-tracker.address": f"{host}:{free_port()}",
                "yarn.resourcemanager.admin.address": f"{host}:{free_port()}",
                "yarn.resourcemanager.webapp.address": f"{host}:{self.http_port}",
                "yarn.resourcemanager.scheduler.class":
                    f"{YARN}.resourcemanager.scheduler.capacity.CapacityScheduler",
                "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 200,
                "yarn.resourcemanager.am.max-attempts": 10,
                "yarn.resourcemanager.recovery.enabled": "true",
                "yarn.resourcemanager.store.class":
                    f"{YARN}.resourcemanager.recovery.FileSystemRMStateStore",
                "yarn.resourcemanager.fs.state-store.uri": f"file://{folder}/manager-state",
                "yarn.nodemanager.hostname": "${muster.host}",
                "yarn.nodemanager.address": "${muster.host}:${muster.port}",
                "yarn.nodemanager.localizer.address": "${muster.host}:0",
                "yarn.nodemanager.webapp.address": "${muster.host}:${muster.http}",
                "yarn.nodemanager.collector-service.address": "${muster.host}:0",
                "yarn.nodemanager.local-dirs": f"{folder}/local-${{muster.node}}",
                "yarn.nodemanager.log-dirs": f"{folder}/logs-${{muster.node}}",
                "yarn.nodemanager.recovery.enabled": "true",
                "yarn.nodemanager.recovery.supervised": "true",
                "yarn.nodemanager.recovery.dir": f"{folder}/recovery-${{muster.node}}",
                "yarn.nodemanager.resource.memory-mb": "${muster.memory}",
                "yarn.nodemanager.resource.cpu-vcores": NODE_CORES,
                "yarn.scheduler.minimum-allocation-mb": 64,
                "yarn.scheduler.maximum-allocation-mb": NODE_MEMORY_MB,
                "yarn.scheduler.maximum-allocation-vcores": NODE_CORES,
                "yarn.nodemanager.vmem-check-enabled": "false",
                "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 99.5,
                "yarn.nodemanager.env-whitelist": "JAVA_HOME,PATH,LANG",
                "yarn.nodemanager.delete.debug-delay-sec": 0,
                "yarn.application.classpath": f"{conf},{self.hdfs.jars}/*",
                "yarn.webapp.api-service.enable": "false",
                "yarn.log-aggregation-enable": "true",
                "yarn.nodemanager.remote-app-log-dir": "/app-logs",
                **self.site(),
                **more,
            })
        )  # fmt: skip
        (conf / "capacity-scheduler.xml").write_text(
            configuration({
                "yarn.scheduler.capacity.root.queues": "default,other",
                "yarn.scheduler.capacity.root.default.capacity": 60,
                "yarn.scheduler.capacity.root.default.maximum-capacity": 100,
                "yarn.scheduler.capacity.root.other.capacity": 40,
                "yarn.scheduler.capacity.maximum-am-resource-percent": 0.9,
                "yarn.scheduler.capacity.resource-calculator":
                    "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
                **self.queues(),
            })
        )  # fmt: skip

    def site(self) -> dict[str, object]:
        """Of yarn-site.xml, what a kind of YARN has of its own."""
        return {}

    def queues(self) -> dict[str, object]:
        """The same of capacity-scheduler.xml."""
        return {}

    def start(self) -> None:
        self.hdfs.call("PUT", "/app-logs", "MKDIRS", permission="1777")
        self.hdfs.call("PUT", "/user", "MKDIRS", permission="1777")
        self.start_manager()
        self.wait_until_usable(0)  # else a NodeManager waits for 30 s
        self.prepare()
        for number in range(self.nodes):
            self.start_node(number)
        self.wait_until_usable(self.nodes)

    def prepare(self) -> None:
        """What is to be done once the ResourceManager runs."""

    def run(self, name: str, program: str, *properties: str) -> None:
        self.hdfs.run(name, program, *properties)
        self.started.append(name)

    def start_manager(self) -> None:
        self.run("manager", f"{YARN}.resourcemanager.ResourceManager")

    def host_of(self, number: int) -> str:
        """The address of a node."""
        return self.hdfs.host

    def start_node(self, number: int) -> None:
        # A NodeManager that is started again recovers its containers, for which it must be found
        # at the same port.
        self.run(
            f"node-{number}", f"{YARN}.nodemanager.NodeManager",
            f"-Dmuster.host={self.host_of(number)}", f"-Dmuster.port={self.node_ports[number]}", f"-Dmuster.http={self.node_http_ports[number]}",
            f"-Dmuster.memory={NODE_MEMORY_MB}", *self.node_properties(number),
        )  # fmt: skip

    def node_properties(self, number: int) -> list[str]:
        """Java's properties of a NodeManager, which the configuration names."""
        return []

    def fetch(self, method: str, path: str, body: object = None) -> bytes:
        """What the ResourceManager answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bytes(answer.read())

    def get(self, path: str) -> Any:
        return json.loads(self.fetch("GET", f"/ws/v1/cluster{path}"))

    def app(self, application: str) -> dict[str, Any]:
        return self.get(f"/apps/{application}")["app"]

    def kill_app(self, application: str) -> None:
        path = f"/ws/v1/cluster/apps/{application}/state?user.name=tester"
        self.fetch("PUT", path, {"state": "KILLED"})

    def running_nodes(self) -> int:
        nodes = (self.get("/nodes").get("nodes") or {}).get("node", [])
        return sum(node["state"] == "RUNNING" for node in nodes)

    def wait_until_usable(self, nodes: int) -> None:
        end, last = time.monotonic() + DEADLINE, "nothing was tried"
        while time.monotonic() < end:
            for name in self.started:
                log = (self.hdfs.folder / f"{name}.log").read_text(errors="replace")
                process = self.hdfs.processes.get(name)
                assert process is None or process.poll() is None, f"{name} has ended: {log[-4000:]}"
            try:
                if self.running_nodes() >= nodes:
                    return
                last = "NodeManagers are missing"
            except (OSError, urllib.error.URLError) as error:
                last = str(error)
            time.sleep(0.2)
        raise AssertionError(f"YARN is not usable after {DEADLINE:.0f} s: {last}")

    def logs(self) -> str:
        """The ends of what the containers and the daemons wrote, for a test that fails."""
        paths = [*self.hdfs.folder.glob("logs-*/*/*/std*"), *self.hdfs.folder.glob("*.log")]
        return "\n".join(
            f"--- {p.relative_to(self.hdfs.folder)}\n{p.read_text(errors='replace')[-1500:]}"
            for p in paths if p.stat().st_size
        )  # fmt: skip

    def stop(self) -> None:
        for name in list(self.started):
            if name in self.hdfs.processes:
                self.hdfs.kill(name)
        self.started.clear()
