"""What pretended pods have written, served as their node's kubelet would."""

from __future__ import annotations

from testbed.kubernetes.cluster import Cluster
from testbed.kubernetes.container_log import ContainerLog, LogServer

NODE = "node-1"  # where the pretending kubelet binds its pods


class PodLogs:
    """Of all namespaces."""

    def __init__(self, cluster: Cluster):
        self.logs: dict[tuple[str, str], ContainerLog] = {}
        self.server = LogServer(cluster.folder, lambda space, pod, *_: self.log(space, pod))
        cluster.api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        cluster.api.patch_status(f"/api/v1/nodes/{NODE}", {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.server.port}},
        })  # fmt: skip

    def log(self, namespace: str, pod: str) -> ContainerLog:
        return self.logs.setdefault((namespace, pod), ContainerLog())

    def write(self, namespace: str, pod: str, text: str) -> None:
        self.log(namespace, pod).add(text.encode())

    def end(self, namespace: str, pod: str) -> None:
        """The container exits: nobody follows its log any more."""
        self.log(namespace, pod).end()

    def restart(self, namespace: str, pod: str) -> None:
        """Another container, whose log is empty."""
        self.logs[namespace, pod] = ContainerLog()

    def stop(self) -> None:
        self.server.stop()
