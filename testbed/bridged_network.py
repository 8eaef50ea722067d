"""Any number of hosts with a private network, which counts what they send each other (root only)."""

from __future__ import annotations

import dataclasses
import json

from testbed.network import Network

HEADERS = 20 + 20 + 12  # bytes: of IPv4 and of TCP, with the timestamps that Linux adds
# Counted are segments that have data (the smallest frame has 56 bytes, while an acknowledgement may
# have 24 bytes of options), and those that begin with a frame (docs/formats/frames.md): one of a
# view or, with generation 0, one of the membership.
COUNTERS = {
    "data": f"meta length > {HEADERS + 24}",
    "frames": "@ih,0,32 0x4d554631 @ih,64,64 != 0",
    "membership": "@ih,0,32 0x4d554631 @ih,64,64 0",
}
RULE = """add counter inet drill {0}
add rule inet drill in iifname != "lo" meta l4proto tcp {1} counter name {0}
"""


@dataclasses.dataclass(frozen=True)
class Traffic:
    """What all hosts together got from each other. Messages of the membership, most of which are
    heartbeats, are left out: their number depends on how long a training takes."""

    frames: float  # with which a segment begins: almost all, as a frame is sent when it is written
    bytes: float  # of segments, without their headers

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(self.frames - other.frames, self.bytes - other.bytes)

    def __mul__(self, factor: float) -> Traffic:
        return Traffic(self.frames * factor, self.bytes * factor)

    def __truediv__(self, divisor: float) -> Traffic:
        return self * (1 / divisor)


class BridgedNetwork(Network):
    """A namespace for each host, and one for the bridge that joins them. A context manager."""

    def _join(self) -> None:
        self.names["bridge"] = bridge = f"muster-{self._tag}-bridge"
        self._call("ip", "netns", "add", bridge)
        self._in("bridge", "ip", "link", "add", "name", "bridge", "type", "bridge")
        self._in("bridge", "ip", "link", "set", "bridge", "up")
        for host in self.hosts:
            cable = ["type", "veth", "peer", "name", host, "netns", bridge]
            self._in(host, "ip", "link", "add", "eth0", *cable)
            self._in("bridge", "ip", "link", "set", "dev", host, "master", "bridge", "up")
            self._in(host, "ip", "address", "add", f"{self.addresses[host]}/24", "dev", "eth0")
            self._in(host, "ip", "link", "set", "eth0", "up")
            self._in(host, "nft", "".join(RULE.format(name, what) for name, what in COUNTERS.items()))

    def traffic(self) -> Traffic:
        """Returns what was counted until now."""
        packets, size = dict.fromkeys(COUNTERS, 0), dict.fromkeys(COUNTERS, 0)
        for host in self.hosts:
            for each in json.loads(self._in(host, "nft", "-j", "list counters"))["nftables"]:
                if counter := each.get("counter"):
                    packets[counter["name"]] += counter["packets"]
                    size[counter["name"]] += counter["bytes"] - HEADERS * counter["packets"]
        return Traffic(packets["frames"], size["data"] - size["membership"])
