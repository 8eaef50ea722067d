"""A node of a cluster: namespaces of this machine in which pods run as processes (root only).

Each pod has a network namespace on one bridge, and each container a process namespace and a view of
the file system. All of them lie inside the node's own namespaces, whose first process reads a pipe
from this program: when this program ends, in whatever way, the kernel ends everything on the node.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import threading

from testbed import network

CONTAINER = pathlib.Path(__file__).with_name("container.py")

# Nothing that a pod mounts or writes below / is seen outside; folders of / are this machine's.
START = """
set -e
mount -t tmpfs -o mode=755 root /mnt
cd /mnt
for entry in /*; do
  case $entry in /proc|/run|/mnt|/lost+found) continue ;; esac
  if [ -L "$entry" ]; then cp -P "$entry" .
  elif [ -d "$entry" ]; then mkdir ".$entry"; mount --rbind "$entry" ".$entry"
  fi
done
mkdir proc run mnt before
mount -t proc proc proc
mount -t tmpfs -o mode=755 run run
mkdir run/netns run/lock
pivot_root . before
cd /
umount -l before
rmdir before
ip link set lo up
ip link add pods type bridge
ip address add 10.200.0.1/16 dev pods
ip link set pods up
echo ready
exec cat
"""
TOOLS = ("ip", "nsenter", "unshare", "setpriv", "pivot_root")


@functools.cache
def available() -> str:
    """Returns why this machine cannot run pods as processes; "" if it can."""
    if os.geteuid() != 0:
        return "pods as processes need root"
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        return f"pods as processes need {', '.join(missing)}: install util-linux and iproute2"
    try:
        node = Node()
        node.add("probe")
        node.stop()
    except (AssertionError, OSError) as error:
        return f"no namespaces can be made here: {error}"
    return ""


def child_of(process: int) -> int:
    """The only child; 0 if there is none."""
    try:
        children = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return 0
    return int(children[0]) if children else 0


class Node:
    address = "10.200.0.1"  # its own, for pods

    def __init__(self) -> None:
        flags = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self.process = subprocess.Popen(
            ["unshare", *flags, "sh", "-c", START],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert self.process.stdout and self.process.stderr
        if self.process.stdout.readline() != b"ready\n":
            said = self.process.stderr.read().decode(errors="replace")
            self.stop()
            raise AssertionError(f"start a node: {said}")
        self.first = child_of(self.process.pid)
        self.lock = threading.Lock()
        self.count = 0

    def command(self, *words: str) -> list[str]:
        """The command that runs these words on the node, outside of its pods."""
        return ["nsenter", f"--target={self.first}", "--mount", "--net", "--pid", "--", *words]

    def call(self, *words: str) -> None:
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"

    def inside(self) -> contextlib.AbstractContextManager[None]:
        """This thread has the network of the node, as have the processes that it starts."""
        return network.inside(f"/proc/{self.first}/ns/net")

    def add(self, pod: str) -> str:
        """Makes the network of a pod; returns its address."""
        with self.lock:
            self.count += 1
            number = self.count
        address = f"10.200.{1 + number // 250}.{1 + number % 250}"
        script = f"""
            set -e
            ip netns add {pod}
            ip link add v{number} type veth peer name eth0 netns {pod}
            ip link set v{number} master pods up
            ip -n {pod} address add {address}/16 dev eth0
            ip -n {pod} link set lo up
            ip -n {pod} link set eth0 up
        """
        self.call("sh", "-c", script)
        return address

    def remove(self, pod: str) -> None:
        """Its network goes; that it went with the whole node is no error."""
        subprocess.run(self.command("ip", "netns", "del", pod), capture_output=True, timeout=60)

    def start(self, pod: str, script: str) -> subprocess.Popen[bytes]:
        """Runs a shell script as the first process of a new container of that pod. What the script
        mounts is seen by it alone."""
        python = [sys.executable, "-I", "-S", str(CONTAINER), script]
        return subprocess.Popen(
            self.command("ip", "netns", "exec", pod, *python),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    @staticmethod
    def first_of(container: subprocess.Popen[bytes]) -> int:
        """The container's first process as this machine counts; 0: it has ended, or not begun."""
        outer = child_of(container.pid)
        return child_of(outer) if outer else 0

    def stop(self) -> None:
        """Ends all that runs on the node."""
        self.process.kill()
        self.process.communicate()
