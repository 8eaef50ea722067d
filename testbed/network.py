"""Two hosts with a network of their own between them, that can be made bad (root only)."""

from __future__ import annotations

import os
import subprocess

HOSTS = ("a", "b")


def available() -> str:
    """Why there can be no such network here, or nothing."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    try:
        with Network() as network:
            network.lose(10)
    except (AssertionError, OSError) as error:
        return f"no network of its own can be made here: {error}"
    return ""


class Network:
    """Namespaces `a` and `b`, joined by a cable. A context manager."""

    def __init__(self) -> None:
        tag = f"{os.getpid() % 100000}"
        self.names = {host: f"muster-{tag}-{host}" for host in HOSTS}
        self.addresses = {"a": "10.77.0.1", "b": "10.77.0.2"}
        self._tag = tag

    def __enter__(self) -> Network:
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _build(self) -> None:
        for host in HOSTS:
            self._call("ip", "netns", "add", self.names[host])
        ends = {host: f"m{self._tag}{host}" for host in HOSTS}
        self._call("ip", "link", "add", ends["a"], "type", "veth", "peer", "name", ends["b"])
        for host in HOSTS:
            name = self.names[host]
            self._call("ip", "link", "set", ends[host], "netns", name)
            self._in(host, "ip", "address", "add", f"{self.addresses[host]}/24", "dev", ends[host])
            self._in(host, "ip", "link", "set", ends[host], "up")
            self._in(host, "ip", "link", "set", "lo", "up")
            self._in(host, "nft", "add table inet drill")
            chain = "add chain inet drill in { type filter hook input priority 0; }"
            self._in(host, "nft", chain)

    def __exit__(self, *_: object) -> None:
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def command(self, host: str) -> list[str]:
        """In front of a command: it runs on that host."""
        return ["ip", "netns", "exec", self.names[host]]

    def lose(self, percent: int, *hosts: str) -> None:
        """That many of a hundred packets do not arrive at these hosts; 100: it hears nothing."""
        for host in hosts or HOSTS:
            what = "drop" if percent == 100 else f"numgen random mod 100 < {percent} drop"
            self._in(host, "nft", f'add rule inet drill in iifname != "lo" {what}')

    def alter(self, number: int, host: str) -> None:
        """Two bytes of the so many-th larger packet that comes to the host are others. TCP does not
        notice: over such a cable nobody computes its sums."""
        which = f'iifname != "lo" meta length > 200 numgen inc mod 1000000 == {number}'
        self._in(host, "nft", f"add rule inet drill in {which} @th,800,16 set 0x5aa5")

    def heal(self) -> None:
        for host in HOSTS:
            self._in(host, "nft", "flush chain inet drill in")

    def _in(self, host: str, *command: str) -> None:
        self._call(*self.command(host), *command)

    def _call(self, *command: str) -> None:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"{' '.join(command)}: {result.stderr}"
