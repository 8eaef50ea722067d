"""etcd, kube-apiserver and kube-controller-manager on loopback ports of this machine."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.request

import yaml

from testbed.kubernetes.api import Api
from testbed.kubernetes.certificates import make_certificates
from testbed.kubernetes.egress import Egress
from testbed.ports import free_port

HERE = pathlib.Path(__file__).parent
DEADLINE = 300.0
ADMINISTRATOR = "administrator-token"
# The user that deploy/kubernetes gives rights to, by two tokens: one is renewed by the other.
OPERATOR = "operator-token"
RENEWED = "renewed-operator-token"
STRANGER = "stranger-token"
USER = "user-token"  # whom a test may give rights to, in its namespace
READER = "reader-token"  # whom one test gives rights in all namespaces
# Kubeflow's training operator, which may do all.
KUBEFLOW = "kubeflow-token"
DEPLOYMENTS = "deployments"  # the controllers that make pods of Deployments


def build() -> pathlib.Path:
    """The folder of the programs, which are built where that was not done yet."""
    built = subprocess.run([str(HERE / "build.sh")], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-4000:]
    return pathlib.Path(built.stdout.strip())


class Cluster:
    """Started by start(), ended by stop(); etcd's data lie in `folder` and outlive both."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.programs = build()
        self.etcd_port, self.peer_port, self.port = free_port(), free_port(), free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.egress: Egress | None = None  # made before start(): pods of a Node are reached
        make_certificates(folder)
        account = "system:serviceaccount:muster:muster-operator"
        groups = "system:serviceaccounts,system:serviceaccounts:muster,system:authenticated"
        (folder / "tokens.csv").write_text(
            f'{ADMINISTRATOR},administrator,1,"system:masters"\n'
            f'{OPERATOR},{account},2,"{groups}"\n{RENEWED},{account},2,"{groups}"\n'
            f"{STRANGER},stranger,3\n{USER},user,4\n{READER},reader,6\n"
            f'{KUBEFLOW},system:serviceaccount:kubeflow:training-operator,5,"system:masters"\n'
        )
        self.api = Api(self.port, folder / "ca.crt", ADMINISTRATOR)

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.start_etcd()
        self.start_server()
        self.start_controllers()

    def run(self, name: str, *arguments: str, key: str = "") -> None:
        """`key`: of a second process of the same program."""
        with open(self.folder / f"{key or name}.log", "ab") as log:
            self.processes[key or name] = subprocess.Popen(
                [str(self.programs / name), *arguments], stdout=log, stderr=log, cwd=self.folder
            )

    def start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, self.peer_port))
        self.run(
            "etcd", "--data-dir", str(self.folder / "data"), "--listen-client-urls", client,
            "--advertise-client-urls", client, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
            "--unsafe-no-fsync", "--log-level", "warn",
        )  # fmt: skip
        self.wait("etcd", f"{client}/health")

    def start_server(self) -> None:
        folder = self.folder
        egress = [f"--egress-selector-config-file={self.egress.config}"] if self.egress else []
        self.run(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}", f"--cert-dir={folder}",
            f"--tls-cert-file={folder}/server.crt", f"--tls-private-key-file={folder}/server.key",
            f"--client-ca-file={folder}/ca.crt", f"--token-auth-file={folder}/tokens.csv",
            f"--service-account-key-file={folder}/accounts.pub",
            f"--service-account-signing-key-file={folder}/accounts.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/16", "--authorization-mode=RBAC",
            "--allow-privileged=true", "--endpoint-reconciler-type=none",
            "--disable-admission-plugins=ServiceAccount", "--profiling=false", *egress,
        )  # fmt: skip
        self.wait("kube-apiserver", f"{self.server}/readyz")

    def start_controllers(
        self, *names: str, program: str = "kube-controller-manager"
    ) -> None:
        """By default garbage collection, and the removal of namespaces; nothing makes pods."""
        names = names or ("garbage-collector-controller", "namespace-controller")
        config = self.kubeconfig(ADMINISTRATOR, "controllers")
        self.run(
            "kube-controller-manager", f"--kubeconfig={config}", "--leader-elect=false",
            "--secure-port=0", f"--controllers={','.join(names)}", key=program,
        )  # fmt: skip

    def start_deployments(self) -> None:
        """Deployments get pods, and Services the addresses of pods, from now on."""
        if DEPLOYMENTS not in self.processes:
            self.start_controllers("deployment-controller", "replicaset-controller",
                                   "endpoints-controller", "endpointslice-controller",
                                   program=DEPLOYMENTS)  # fmt: skip

    def wait(self, name: str, url: str) -> None:
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {ADMINISTRATOR}"})
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                urllib.request.urlopen(request, timeout=10, context=self.api.context)
                return
            except OSError:
                log = (self.folder / f"{name}.log").read_text(errors="replace")[-4000:]
                assert self.processes[name].poll() is None, f"{name} has ended: {log}"
                assert time.monotonic() < deadline, f"{name} is not ready: {log}"
                time.sleep(0.05)

    def end(self, name: str, how: int = signal.SIGKILL) -> None:
        process = self.processes.pop(name, None)
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=20)

    def restart_server(self) -> None:
        self.end("kube-apiserver")
        self.start_server()

    def restart_etcd(self) -> None:
        self.end("etcd")
        self.start_etcd()

    def stop(self) -> None:
        for name in [DEPLOYMENTS, "kube-controller-manager", "kube-apiserver", "etcd"]:
            self.end(name)
        if self.egress:
            self.egress.stop()

    def kubeconfig(
        self, token: str, name: str, server: str = "", namespace: str = "", token_file: str = ""
    ) -> pathlib.Path:
        """A kubeconfig of this name with that token, or with a file that has it."""
        user = {"tokenFile": token_file} if token_file else {"token": token}
        return self.write_config(name, user, server, namespace)

    def certificate_config(self, name: str = "certificate") -> pathlib.Path:
        """A kubeconfig with the administrator's certificate."""
        files = {"client-certificate": "client.crt", "client-key": "client.key"}
        return self.write_config(name, files, "", "")

    def write_config(
        self, name: str, user: dict[str, str], server: str, namespace: str
    ) -> pathlib.Path:
        cluster = {"server": server or self.server}
        if not server:
            cluster["certificate-authority"] = "ca.crt"
        context = {"cluster": "c", "user": "u"}
        if namespace:
            context["namespace"] = namespace
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "t",
            "contexts": [{"name": "t", "context": context}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
        }))  # fmt: skip
        os.chmod(path, 0o600)
        return path

    def apply(self, path: pathlib.Path) -> None:
        """Creates the objects of a YAML file, like kubectl create -f, in the order of the file."""
        for document in yaml.safe_load_all(path.read_text()):
            if document:
                self.create(document)

    def create(self, document: dict) -> dict:
        group = document["apiVersion"]
        metadata = document["metadata"]
        kind = document["kind"].lower()
        plural = kind + "es" if kind.endswith("s") else kind + "s"
        prefix = f"/apis/{group}" if "/" in group else f"/api/{group}"
        if kind.endswith("y"):
            plural = kind[:-1] + "ies"
        cluster_wide = {"namespace", "clusterrole", "clusterrolebinding", "persistentvolume",
                        "customresourcedefinition", "validatingadmissionpolicy",
                        "validatingadmissionpolicybinding"}  # fmt: skip
        if kind not in cluster_wide:
            prefix += f"/namespaces/{metadata.get('namespace', 'default')}"
        return self.api.create(f"{prefix}/{plural}", document)

    def namespace(self, name: str, labels: dict[str, str] | None = None) -> str:
        """Makes a namespace; returns the path of what is in it."""
        self.create({"apiVersion": "v1", "kind": "Namespace",
                     "metadata": {"name": name, "labels": labels or {}}})  # fmt: skip
        return f"/api/v1/namespaces/{name}"
