"""A pod's volumes as folders of this machine, and the environment of its containers."""

from __future__ import annotations

import base64
import dataclasses
import os
import pathlib
import re
import shlex

from testbed.kubernetes.api import Api, Object


class NotYet(Exception):
    """A container cannot be made now; its status says why."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclasses.dataclass
class Image:
    """What an image would bring: folders (path in the container -> folder here) and variables."""

    folders: dict[str, str] = dataclasses.field(default_factory=dict)
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    command: list[str] = dataclasses.field(default_factory=list)


class PodFiles:
    def __init__(self, api: Api, pod: Object, folder: pathlib.Path, claims: pathlib.Path):
        self.api = api
        self.pod = pod
        self.folder = folder
        self.claims = claims
        self.core = f"/api/v1/namespaces/{pod['metadata']['namespace']}"
        self.security: Object = pod["spec"].get("securityContext", {})

    def find(self, plural: str, name: str) -> Object:
        found = self.api.find(f"{self.core}/{plural}/{name}")
        if found is None:
            raise NotYet("CreateContainerConfigError", f'{plural[:-1]} "{name}" not found')
        return found

    def volume(self, volume: Object) -> pathlib.Path:
        """The folder of a volume, which is made where it is not there."""
        folder = self.folder / volume["name"]
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            if self.api.find(f"{self.core}/persistentvolumeclaims/{claim}") is None:
                raise NotYet("ContainerCreating", f'persistentvolumeclaim "{claim}" not found')
            folder = self.claims / claim
        elif "hostPath" in volume:
            return pathlib.Path(volume["hostPath"]["path"])
        elif "secret" in volume:
            source = volume["secret"]
            secret = self.find("secrets", source["secretName"])
            self.project(folder, source, secret.get("data", {}), source.get("defaultMode", 0o644))
            return folder
        elif "configMap" in volume:
            source = volume["configMap"]
            data = self.find("configmaps", source["name"]).get("data", {})
            encoded = {k: base64.b64encode(v.encode()).decode() for k, v in data.items()}
            self.project(folder, source, encoded, source.get("defaultMode", 0o644))
            return folder
        elif "emptyDir" not in volume:
            raise NotYet("CreateContainerConfigError", f"this kubelet has no volume like {volume}")
        folder.mkdir(parents=True, exist_ok=True)
        self.own(folder, 0o2770)
        return folder

    def own(self, path: pathlib.Path, mode: int) -> None:
        """As a kubelet does for fsGroup; without it a volume is everybody's."""
        group = self.security.get("fsGroup")
        if group is None:
            path.chmod(0o777)
            return
        os.chown(path, 0, group)
        path.chmod(mode | (path.stat().st_mode & 0o777))

    def project(self, folder: pathlib.Path, source: Object, data: Object, mode: int) -> None:
        """Files of root behind links, as a kubelet's atomic writer leaves them."""
        group = self.security.get("fsGroup")
        version = folder / "..2020_01_01"
        version.mkdir(parents=True, exist_ok=True)
        items = source.get("items") or [{"key": key, "path": key} for key in data]
        for item in items:
            path = version / item["path"]
            path.write_bytes(base64.b64decode(data[item["key"]]))
            wanted = item.get("mode", mode)
            path.chmod(wanted if group is None else wanted | 0o440)
            os.chown(path, 0, 0 if group is None else group)
            link = folder / item["path"]
            if not link.is_symlink():
                link.symlink_to(f"..data/{item['path']}")
        if not (folder / "..data").is_symlink():
            (folder / "..data").symlink_to(version.name)

    def environment(self, container: Object, address: str) -> dict[str, str]:
        values: dict[str, str] = {}
        for source in container.get("envFrom", []):
            if "secretRef" in source:
                data = self.find("secrets", source["secretRef"]["name"]).get("data", {})
                values.update({k: base64.b64decode(v).decode() for k, v in data.items()})
            if "configMapRef" in source:
                values.update(self.find("configmaps", source["configMapRef"]["name"])["data"])
        for entry in container.get("env", []):
            if "valueFrom" in entry:
                values[entry["name"]] = self.value_from(entry["valueFrom"], address)
            else:
                values[entry["name"]] = expand(entry.get("value", ""), values)
        return values

    def value_from(self, source: Object, address: str) -> str:
        if "secretKeyRef" in source:
            name, key = source["secretKeyRef"]["name"], source["secretKeyRef"]["key"]
            return base64.b64decode(self.find("secrets", name)["data"][key]).decode()
        if "configMapKeyRef" in source:
            name, key = source["configMapKeyRef"]["name"], source["configMapKeyRef"]["key"]
            return str(self.find("configmaps", name)["data"][key])
        path = source["fieldRef"]["fieldPath"]
        if path in ("status.podIP", "status.hostIP"):
            return address
        if entry := re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", path):
            return str(self.pod["metadata"].get(entry[1], {}).get(entry[2], ""))
        found: Object = self.pod
        for word in path.split("."):
            found = found[word]
        return str(found)

    def script(self, container: Object, image: Image, address: str, hosts: pathlib.Path) -> str:
        """The shell script that becomes the container's process."""
        quote = shlex.quote
        lines = ["set -e", f"echo {quote(self.pod['metadata']['name'])} >/proc/sys/kernel/hostname",
                 f"mount --bind {quote(str(hosts))} /etc/hosts",
                 "mount --bind /dev/null /etc/resolv.conf"]  # fmt: skip
        for path, source in image.folders.items():
            lines.append(f"mkdir -p {quote(path)}; mount --bind {quote(source)} {quote(path)}")
        volumes = {v["name"]: v for v in self.pod["spec"].get("volumes", [])}
        for mount in container.get("volumeMounts", []):
            source = str(self.volume(volumes[mount["name"]]) / mount.get("subPath", ""))
            path = mount["mountPath"]
            lines.append(f"mkdir -p {quote(path)}; mount --bind {quote(source)} {quote(path)}")
            if mount.get("readOnly"):
                lines.append(f"mount -o remount,bind,ro {quote(path)}")
        values = {"PATH": os.environ["PATH"], "HOME": "/tmp", **image.environment,
                  "HOSTNAME": self.pod["metadata"]["name"],
                  **self.environment(container, address)}  # fmt: skip
        words = container.get("command") or image.command
        words = [expand(word, values) for word in [*words, *container.get("args", [])]]
        variables = [f"{name}={value}" for name, value in values.items()]
        lines.append(f"cd {quote(container.get('workingDir', '/'))}")
        lines.append("exec " + " ".join(map(quote, [*self.user(container), "env", "-i", *variables,
                                                    *words])))  # fmt: skip
        return "\n".join(lines)

    def user(self, container: Object) -> list[str]:
        """fsGroup is a group of every user, root too."""
        context = {**self.security, **container.get("securityContext", {})}
        user = context.get("runAsUser", 0)
        groups = [*self.security.get("supplementalGroups", []), self.security.get("fsGroup")]
        listed = ",".join(str(group) for group in groups if group is not None)
        if user == 0 and not listed:
            return []
        return ["setpriv", f"--reuid={user}", f"--regid={context.get('runAsGroup', 0)}",
                f"--groups={listed}" if listed else "--clear-groups"]  # fmt: skip


def expand(text: str, values: dict[str, str]) -> str:
    """$(NAME) of a variable that is known; $$ is $."""

    def replace(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return values.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)", replace, text)
