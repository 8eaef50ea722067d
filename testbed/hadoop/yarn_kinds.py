"""Clusters whose nodes are not alike: two hosts, of which one is small, and the other has GPUs and a label."""

from __future__ import annotations

from testbed.hadoop.cluster import configuration
from testbed.hadoop.yarn import NODE_MEMORY_MB, Yarn

SMALL_MEMORY_MB, GPUS, LABEL = 2048, 2, "fast"


class UnlikeYarn(Yarn):
    """Node 0 is small. Node 1 has GPUs, as far as YARN can tell, and the label, whose nodes others may use."""

    def host_of(self, number: int) -> str:
        return f"127.0.0.{number + 1}"

    def node_properties(self, number: int) -> list[str]:
        memory, label = [(SMALL_MEMORY_MB, ""), (NODE_MEMORY_MB, LABEL)][number]
        return [f"-Dmuster.memory={memory}", f"-Dmuster.label={label}"]

    def write_configuration(self, more: dict[str, object]) -> None:
        super().write_configuration(more)
        conf = self.hdfs.folder / "conf"
        (conf / "resource-types.xml").write_text(configuration({"yarn.resource-types": "yarn.io/gpu"}))
        of_node = self.hdfs.folder / "conf-node-1"
        of_node.mkdir()
        (of_node / "node-resources.xml").write_text(
            configuration({"yarn.nodemanager.resource-type.yarn.io/gpu": GPUS})
        )
        self.hdfs.own_conf["node-1"] = of_node

    def site(self) -> dict[str, object]:
        return {
            # Else a NodeManager leaves it to the kernel to end what takes more memory than its container has.
            "yarn.nodemanager.resource.memory.enforced": "false",
            "yarn.node-labels.enabled": "true",
            "yarn.node-labels.fs-store.root-dir": f"file://{self.hdfs.folder}/labels",
            "yarn.node-labels.configuration-type": "distributed",
            "yarn.nodemanager.node-labels.provider": "config",
            "yarn.nodemanager.node-labels.provider.configured-node-partition": "${muster.label}",
        }

    def queues(self) -> dict[str, object]:
        root = "yarn.scheduler.capacity.root"
        return {
            f"{root}.accessible-node-labels": LABEL,
            f"{root}.accessible-node-labels.{LABEL}.capacity": 100,
            f"{root}.default.accessible-node-labels": LABEL,
            f"{root}.default.accessible-node-labels.{LABEL}.capacity": 100,
            f"{root}.default.accessible-node-labels.{LABEL}.maximum-capacity": 100,
            f"{root}.other.accessible-node-labels": LABEL,
            f"{root}.other.accessible-node-labels.{LABEL}.capacity": 0,
        }

    def prepare(self) -> None:
        labels = {"nodeLabelInfo": [{"name": LABEL, "exclusivity": False}]}
        self.fetch("POST", "/ws/v1/cluster/add-node-labels?user.name=hdfs", labels)

    def used_gpus(self) -> int:
        """How many are given to containers."""
        return self._gpus("usedResource")

    def free_gpus(self) -> int:
        return self._gpus("availableResource")

    def _gpus(self, which: str) -> int:
        nodes = self.get("/nodes")["nodes"]["node"]
        resources = [node[which]["resourceInformations"]["resourceInformation"] for node in nodes]
        return sum(r["value"] for of_node in resources for r in of_node if r["name"] == "yarn.io/gpu")
