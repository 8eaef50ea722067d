"""A kubelet that runs the containers of pods as processes of this machine, on a node of its own."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import threading
import time
from typing import Callable

from testbed.kubernetes.api import ApiError, Object
from testbed.kubernetes.cluster import Cluster
from testbed.kubernetes.container_log import ContainerLog, LogServer
from testbed.kubernetes.kubelet import Kubelet, name_of, now
from testbed.kubernetes.node import Node
from testbed.kubernetes.pod_files import Image, NotYet, PodFiles
from testbed.kubernetes.process_container import Container, resident_bytes

PAUSE = 0.2  # before a container is tried again; a real kubelet's pauses begin with 10 s
LOOK = 0.05  # between two looks at how much memory a container has
MESSAGE_LINES, MESSAGE_BYTES = 80, 2048  # of a termination message


class Pod:
    def __init__(self, kubelet: ProcessKubelet, pod: Object):
        self.kubelet = kubelet
        self.object = pod
        self.spec: Object = pod["spec"]
        self.name = name_of(pod)
        self.uid = str(pod["metadata"]["uid"])
        self.network = "p" + self.uid.replace("-", "")[:20]
        self.folder = kubelet.folder / "pods" / self.uid
        self.address = ""
        self.hosts = self.folder / "etc-hosts"
        self.stopping = threading.Event()  # no container starts any more
        self.lock = threading.RLock()
        self.conditions: dict[str, Object] = {}
        self.reason: Object = {}  # of the pod's end, where the kubelet ended it
        self.initial = [Container(spec) for spec in self.spec.get("initContainers", [])]
        self.containers = [Container(spec) for spec in self.spec["containers"]]
        self.threads: list[threading.Thread] = []
        self.main = threading.Thread(target=self.run, daemon=True)
        self.main.start()

    @property
    def path(self) -> str:
        return f"{self.kubelet.path}/{self.name}"

    @property
    def over(self) -> bool:
        return all(container.over for container in self.containers)

    def run(self) -> None:
        self.folder.mkdir(parents=True)
        self.hosts.write_text("127.0.0.1 localhost\n")
        self.address = self.kubelet.node.add(self.network)
        self.kubelet.know_names()
        for container in self.initial:
            self.live(container, initial=True)
            if container.state.get("terminated", {}).get("exitCode") != 0:
                for each in self.containers:
                    each.over = True
                self.report()
                return
        self.threads = [
            threading.Thread(target=self.live, args=(container,), daemon=True)
            for container in self.containers
        ]
        for thread in self.threads:
            thread.start()

    def live(self, container: Container, initial: bool = False) -> None:
        """One container's life, with its restarts."""
        policy = self.spec.get("restartPolicy", "Always")
        while not self.stopping.is_set():
            try:
                script = self.make_script(container)
            except NotYet as error:
                self.wait(container, error.reason, error.message)
                self.stopping.wait(PAUSE)
                continue
            code = self.run_once(container, script)
            again = policy == "Always" and not initial or policy != "Never" and code != 0
            if self.stopping.is_set() or not again:
                break
            container.last = container.state
            container.restarts += 1
            if container.restarts > 1:
                self.wait(container, "CrashLoopBackOff", "back-off restarting failed container")
                self.stopping.wait(PAUSE * min(2**container.restarts, 32))
        container.over = True
        self.report()

    def make_script(self, container: Container) -> str:
        name = container.spec["image"]
        image = self.kubelet.images.get(name)
        if image is None:
            raise NotYet("ErrImagePull", f'failed to pull image "{name}": not found')
        files = PodFiles(self.kubelet.api, self.object, self.folder, self.kubelet.claims)
        return files.script(container.spec, image, self.address, self.hosts)

    def wait(self, container: Container, reason: str, message: str) -> None:
        waiting = {"waiting": {"reason": reason, "message": message}}
        if container.state != waiting:
            container.state = waiting
            self.report()

    def run_once(self, container: Container, script: str) -> int:
        log = ContainerLog()
        started = now()
        with self.lock:
            container.out_of_memory = False
            container.logs.append(log)
            container.process = self.kubelet.node.start(self.network, script)
        container.state = {"running": {"startedAt": started}}
        self.report()
        assert container.process.stdout
        for line in container.process.stdout:
            log.add(line)
        code = container.process.wait()
        log.end()
        code = 128 - code if code < 0 else code
        reason = "OOMKilled" if container.out_of_memory else "Completed" if code == 0 else "Error"
        terminated = {"exitCode": code, "reason": reason, "startedAt": started,
                      "finishedAt": now(), "containerID": f"process://{self.uid}"}  # fmt: skip
        falls_back = container.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        if falls_back and code != 0:
            last = "".join(log.text().splitlines(keepends=True)[-MESSAGE_LINES:])
            terminated["message"] = last[-MESSAGE_BYTES:]
        container.state = {"terminated": terminated}
        return code

    def phase(self) -> str:
        if self.over:
            codes = [c.state.get("terminated", {}).get("exitCode", 1) for c in self.containers]
            return "Failed" if any(codes) or self.reason else "Succeeded"
        started = any("waiting" not in c.state or c.restarts for c in self.containers)
        return "Running" if started else "Pending"

    def report(self) -> None:
        with self.lock:
            status: Object = {
                "phase": self.phase(), "startTime": self.object["metadata"]["creationTimestamp"],
                "podIP": self.address, "podIPs": [{"ip": self.address}], "hostIP": "127.0.0.1",
                "containerStatuses": [container.status() for container in self.containers],
                "initContainerStatuses": [container.status() for container in self.initial],
                **self.reason,
            }  # fmt: skip
            ready = all("running" in container.state for container in self.containers)
            conditions = {"Ready": ready, "ContainersReady": ready}
            status["conditions"] = [
                {"type": kind, "status": str(value), "lastTransitionTime": now()}
                for kind, value in conditions.items()
            ] + list(self.conditions.values())
            self.kubelet.tolerate(lambda: self.kubelet.api.patch_status(self.path, status))

    def signal(self, number: int) -> None:
        for container in [*self.initial, *self.containers]:
            container.signal(number)

    def end(self, grace: float) -> None:
        """SIGTERM, and SIGKILL after `grace` seconds; returns when nothing runs."""
        self.stopping.set()
        if grace > 0:
            self.signal(signal.SIGTERM)
        deadline = time.monotonic() + grace
        self.main.join()
        for thread in self.threads:
            while thread.is_alive():
                thread.join(max(0.02, deadline - time.monotonic()))
                if time.monotonic() >= deadline:
                    self.signal(signal.SIGKILL)

    def remove(self, grace: float) -> None:
        """What a kubelet does with a pod that is being deleted."""
        self.end(grace)
        for container in self.containers:
            container.over = True
        self.report()
        self.kubelet.tolerate(lambda: self.kubelet.api.delete(self.path, grace=0, uid=self.uid))
        self.clear()

    def clear(self) -> None:
        if self.kubelet.running.pop(self.uid, None) and not self.kubelet.stopped:
            self.kubelet.node.remove(self.network)
            self.kubelet.know_names()
            shutil.rmtree(self.folder, ignore_errors=True)


class ProcessKubelet(Kubelet):
    """Of one namespace. `images` are those that can be pulled; `claims` holds a folder for each
    PersistentVolumeClaim."""

    def __init__(self, cluster: Cluster, namespace: str, folder: pathlib.Path):
        self.folder = folder
        self.claims = folder / "claims"
        binary = pathlib.Path(os.environ["MUSTER_BINARY"])
        path = {"PATH": f"{binary.parent}:{os.environ['PATH']}"}
        self.images = {"image": Image(environment=path)}
        self.running: dict[str, Pod] = {}  # by uid
        self.removals: set[str] = set()
        self.names_lock = threading.Lock()
        self.node = Node()
        if cluster.egress:
            cluster.egress.node = self.node
        self.server = LogServer(cluster.folder, self.find_log)
        self.node_name = f"node-{namespace}"
        cluster.api.create("/api/v1/nodes", {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node_name},
            "status": {
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": self.server.port}},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        })  # fmt: skip
        self.memory = threading.Thread(target=self.watch_memory, daemon=True)
        super().__init__(cluster.api, namespace)
        self.memory.start()

    def stop(self) -> None:
        super().stop()
        pods = list(self.running.values())
        for pod in pods:
            pod.stopping.set()
        self.node.stop()
        for pod in pods:
            pod.end(0)
        self.server.stop()
        self.tolerate(lambda: self.api.delete(f"/api/v1/nodes/{self.node_name}"))

    @staticmethod
    def tolerate(call: Callable[[], object]) -> None:
        """The object is gone, or another one has its name."""
        try:
            call()
        except ApiError as error:
            if error.code not in (404, 409, 422):
                raise
        except OSError:
            pass  # the API server is away; a kubelet's next report tells the same

    def start(self, pod: Object) -> None:
        self.started.append(pod)
        if not pod["spec"].get("nodeName"):
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name_of(pod)},
                       "target": {"kind": "Node", "name": self.node_name}}  # fmt: skip
            self.api.create(f"{self.path}/{name_of(pod)}/binding", binding)
        if self.decide(pod) != "wait":
            self.running[pod["metadata"]["uid"]] = Pod(self, pod)

    def handle(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        known = self.running.get(uid)
        if not pod["metadata"].get("deletionTimestamp") or known is None:
            return super().handle(pod)
        if uid in self.removals:
            return
        self.removals.add(uid)
        known.conditions.update(
            (condition["type"], condition)
            for condition in pod.get("status", {}).get("conditions", [])
            if condition["type"] == "DisruptionTarget"
        )
        grace = pod["metadata"].get("deletionGracePeriodSeconds", 30)
        threading.Thread(target=known.remove, args=(grace,), daemon=True).start()

    def gone(self, uid: str) -> None:
        """The object was removed by force."""
        pod = self.running.get(uid)
        if pod is None or uid in self.removals:
            return
        self.removals.add(uid)
        threading.Thread(target=lambda: (pod.end(0), pod.clear()), daemon=True).start()

    def find(self, name: str) -> Pod:
        """The pod of this name that runs, or ran last."""
        return [pod for pod in self.running.values() if pod.name == name][-1]

    def find_log(
        self, namespace: str, pod: str, container: str, previous: bool = False
    ) -> ContainerLog | None:
        for each in reversed(list(self.running.values())):
            if each.name != pod or each.object["metadata"]["namespace"] != namespace:
                continue
            for one in [*each.initial, *each.containers]:
                if one.name == container and len(one.logs) > previous:
                    return one.logs[-2 if previous else -1]
        return None

    def log(self, pod: str, container: str = "tensorflow") -> str:
        found = self.find_log(self.namespace, pod, container)
        return found.text() if found else ""

    def logs(self) -> str:
        return "\n".join(f"--- {pod.name}\n{container.logs[-1].text()[-3000:]}"
                         for pod in self.running.values() for container in pod.containers
                         if container.logs)  # fmt: skip

    def kill(self, pod: str, number: int = signal.SIGKILL) -> None:
        """As the kernel or a bug does: the object stays, and says how the container ended."""
        self.find(pod).signal(number)

    def evict(self, name: str) -> None:
        """As a kubelet does whose node runs out of memory."""
        pod = self.find(name)
        pod.reason = {"reason": "Evicted", "message": "The node was low on resource: memory."}
        pod.conditions["DisruptionTarget"] = {
            "type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet",
            "lastTransitionTime": now()}  # fmt: skip
        pod.end(0)
        pod.report()

    def know_names(self) -> None:
        """Tells all pods the addresses of services, as the cluster's DNS would."""
        with self.names_lock:
            lines = ["127.0.0.1 localhost"]
            try:
                services = self.api.items(f"{self.path.rpartition('/')[0]}/services")
            except (ApiError, OSError):
                return
            for service in services:
                selector = service["spec"].get("selector", {}).items()
                name, space = service["metadata"]["name"], self.namespace
                names = f"{name} {name}.{space} {name}.{space}.svc {name}.{space}.svc.cluster.local"
                lines += [f"{pod.address} {names}" for pod in list(self.running.values())
                          if pod.address and selector
                          and selector <= pod.object["metadata"].get("labels", {}).items()]  # fmt: skip
            for pod in list(self.running.values()):
                text = "\n".join([*lines, f"{pod.address} {pod.name}", ""]).encode()
                try:
                    # Bound into its containers: the file stays, and has a whole text at each time.
                    descriptor = os.open(pod.hosts, os.O_WRONLY)
                except OSError:
                    continue  # it begins, or has ended
                os.pwrite(descriptor, text, 0)
                os.ftruncate(descriptor, len(text))
                os.close(descriptor)

    def watch_memory(self) -> None:
        while not self.stopped:
            for pod in list(self.running.values()):
                for container in pod.containers:
                    process = container.process
                    if not container.limit or not process or container.over:
                        continue
                    first = Node.first_of(process)
                    if first and resident_bytes(first) > container.limit:
                        container.out_of_memory = True
                        container.signal(signal.SIGKILL)
            time.sleep(LOOK)
