"""Hosts with a private network between them, which tests can disturb (root only)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence

HOSTS = ("a", "b")
CLONE_NEWNET = 0x40000000


def available(make: Callable[[], Network] | None = None) -> str:
    """Returns why there can be no such network on this machine; "" if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    try:
        with (make or Network)() as network:
            network.lose(10)
    except (AssertionError, OSError) as error:
        return f"no network of its own can be made here: {error}"
    return ""


@contextlib.contextmanager
def inside(namespace: str) -> Iterator[None]:
    """This thread has the network of that namespace (its file), as have the processes that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    files = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in ("/proc/thread-self/ns/net", namespace)]
    own, there = files
    try:
        assert libc.setns(there, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert libc.setns(own, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
    finally:
        for file in files:
            os.close(file)


class Network:
    """The namespaces `a` and `b`, joined by a cable. A context manager."""

    def __init__(self, hosts: Sequence[str] = HOSTS) -> None:
        tag = f"{os.getpid() % 100000}"
        self.hosts = hosts
        self.names = {host: f"muster-{tag}-{host}" for host in hosts}
        self.addresses = {host: f"10.77.0.{number}" for number, host in enumerate(hosts, 1)}
        self._tag = tag

    def __enter__(self) -> Network:
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _build(self) -> None:
        for host in self.hosts:
            self._add(host)
        self._join()

    def _add(self, host: str) -> None:
        self.know(host, {})
        self._call("ip", "netns", "add", self.names[host])
        self._in(host, "ip", "link", "set", "lo", "up")
        self._in(host, "nft", "add table inet drill")
        chain = "add chain inet drill in { type filter hook input priority 0; }"
        self._in(host, "nft", chain)

    def _join(self) -> None:
        ends = {host: f"m{self._tag}{host}" for host in HOSTS}
        self._call("ip", "link", "add", ends["a"], "type", "veth", "peer", "name", ends["b"])
        for host in HOSTS:
            name = self.names[host]
            self._call("ip", "link", "set", ends[host], "netns", name)
            self._in(host, "ip", "address", "add", f"{self.addresses[host]}/24", "dev", ends[host])
            self._in(host, "ip", "link", "set", ends[host], "up")

    def __exit__(self, *_: object) -> None:
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
            shutil.rmtree(self._files(name), ignore_errors=True)

    def command(self, host: str, own_processes: bool = False) -> list[str]:
        """Returns the words before a command that make it run on that host. With `own_processes` it
        has a separate process namespace, so that no process outside can check whether it lives."""
        unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        return ["ip", "netns", "exec", self.names[host], *(unshare if own_processes else [])]

    def inside(self, host: str) -> contextlib.AbstractContextManager[None]:
        """This thread is on that host, as are the processes that it starts; names stay this machine's."""
        return inside(f"/var/run/netns/{self.names[host]}")

    def know(self, host: str, addresses: Mapping[str, str]) -> None:
        """Sets the names that can be resolved on that host; at first there are none."""
        lines = ["127.0.0.1 localhost"] + [f"{addresses[name]} {name}" for name in addresses]
        folder = self._files(self.names[host])
        folder.mkdir(parents=True, exist_ok=True)
        # Written in place: a command that runs there sees these files instead of those in /etc.
        (folder / "hosts").write_text("\n".join(lines) + "\n")
        (folder / "resolv.conf").write_text("")

    @staticmethod
    def _files(name: str) -> pathlib.Path:
        return pathlib.Path("/etc/netns", name)

    def lose(self, percent: int, *hosts: str) -> None:
        """Drops that many of a hundred packets to these hosts; with 100 they receive nothing."""
        for host in hosts or self.hosts:
            what = "drop" if percent == 100 else f"numgen random mod 100 < {percent} drop"
            self._in(host, "nft", f'add rule inet drill in iifname != "lo" {what}')

    def alter(self, number: int, host: str) -> None:
        """Changes two bytes of the larger packet with this number that arrives at the host. TCP
        does not notice, since checksums are not computed for such a cable."""
        which = f'iifname != "lo" meta length > 200 numgen inc mod 1000000 == {number}'
        self._in(host, "nft", f"add rule inet drill in {which} @th,800,16 set 0x5aa5")

    def cut_port(self, port: int) -> None:
        """Blocks a port for other hosts: nobody reaches its listener, or hears from it any more."""
        for host in self.hosts:
            for end in ("sport", "dport"):
                self._in(host, "nft", f'add rule inet drill in iifname != "lo" tcp {end} {port} drop')

    def replace(self, host: str) -> None:
        """Replaces the machine by another one with the same address, without a sign. Processes that
        ran on it must have been killed."""
        self._call("ip", "netns", "del", self.names[host])
        other = next(each for each in HOSTS if each != host)
        # Its end of the cable disappears with it, sooner or later.
        command = [*self.command(other), "ip", "link", "del", f"m{self._tag}{other}"]
        subprocess.run(command, capture_output=True, check=False)
        self._add(host)
        self._join()

    def heal(self) -> None:
        for host in self.hosts:
            self._in(host, "nft", "flush chain inet drill in")

    def _in(self, host: str, *command: str) -> str:
        return self._call(*self.command(host), *command)

    def _call(self, *command: str) -> str:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"{' '.join(command)}: {result.stderr}"
        return result.stdout
