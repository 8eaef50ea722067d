"""Ports of this machine."""

from __future__ import annotations

import fcntl
import pathlib
import random
import socket
import tempfile
from typing import IO

# Below the ports that the kernel gives to outgoing connections and to servers that ask for any port.
PORTS = range(15000, 32000)
_claims: list[IO[str]] = []


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens, and which no other test gets while this process lives."""
    folder = pathlib.Path(tempfile.gettempdir()) / "muster-test-ports"
    folder.mkdir(exist_ok=True)
    for port in random.sample(PORTS, len(PORTS)):
        claim = open(folder / str(port), "w", encoding="utf-8")  # locked while it is open
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as free:
                free.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return port
    raise OSError(f"no port from {PORTS.start} to {PORTS.stop - 1} is free")


def free_address() -> str:
    return f"127.0.0.1:{free_port()}"
