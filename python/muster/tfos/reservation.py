"""A server where the nodes of a cluster report, and where a stream's end can be asked for.

Clusters of muster.tfos.TFCluster report elsewhere (muster.tfos.nodes). This server hears the request to stop
of a program outside: Client((host, port)).request_stop(). Its messages are JSON, each after its length.
Who reaches its port can send them: they carry nothing that is run.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import socketserver
import struct
import threading
import time
from typing import Any, Dict, List, Optional, Tuple

from muster.tfos import util

logger = logging.getLogger(__name__)

TFOS_SERVER_PORT = "TFOS_SERVER_PORT"  # a port, or a range of them: 9997-9999
TFOS_SERVER_HOST = "TFOS_SERVER_HOST"
_LENGTH = struct.Struct(">I")
_MESSAGE_BYTES = 1 << 20
_ANSWER_SECONDS = 30.0
_IDLE_SECONDS = 600.0  # after which a client that says nothing is left
_POLL_SECONDS = 1.0


class Reservations:
    """What nodes have reported. All methods may be called by any thread."""

    def __init__(self, required: int) -> None:
        self.required = required
        self._change = threading.Condition()
        self._found: List[Any] = []

    def add(self, meta: Any) -> None:
        with self._change:
            self._found.append(meta)
            self._change.notify_all()

    def done(self) -> bool:
        return self.remaining() <= 0

    def get(self) -> List[Any]:
        with self._change:
            return list(self._found)

    def remaining(self) -> int:
        with self._change:
            return self.required - len(self._found)

    def wait(self, seconds: float) -> bool:
        """Whether all have reported after at most so many seconds."""
        with self._change:
            return self._change.wait_for(lambda: len(self._found) >= self.required, seconds)


class Server:
    """Waits for `count` nodes. `done`: whether stop() was called, here or by a client."""

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"a server waits for at least one node, not {count}")
        self.reservations = Reservations(count)
        self.done = False
        self._listener: Optional[socketserver.ThreadingTCPServer] = None

    def start(self) -> Tuple[str, int]:
        """Listens in threads; returns the address for clients. Raises OSError without a free port."""
        listener = self.start_listening_socket()
        server = socketserver.ThreadingTCPServer(listener.getsockname(), _handler(self), False)
        server.daemon_threads = True
        server.socket.close()
        server.socket = listener
        self._listener = server
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = (self.get_server_ip(), int(listener.getsockname()[1]))
        logger.info("a server for reservations, and for requests to stop, listens at %s:%d", *address)
        return address

    def await_reservations(
        self, sc: Any = None, status: Optional[Dict[str, Any]] = None, timeout: float = 600
    ) -> List[Any]:
        """What all nodes have reported. Raises RuntimeError with status["error"], TimeoutError after timeout."""
        end = time.monotonic() + timeout
        while not self.reservations.wait(_POLL_SECONDS):
            if status and "error" in status:
                raise RuntimeError(str(status["error"]))
            if time.monotonic() > end:
                raise TimeoutError(f"after {timeout:g} s {self.reservations.remaining()} nodes have not reported")
        return self.reservations.get()

    def get_server_ip(self) -> str:
        return os.environ.get(TFOS_SERVER_HOST) or util.get_ip_address()

    def get_server_ports(self) -> List[int]:
        """The ports of TFOS_SERVER_PORT, one of which is taken; 0, any port, without it."""
        text = os.environ.get(TFOS_SERVER_PORT, "0")
        first, dash, last = text.partition("-")
        try:
            return list(range(int(first), int(last) + 1)) if dash else [int(first)]
        except ValueError:
            raise ValueError(f"{TFOS_SERVER_PORT}='{text}': a port is wanted, or a range: 9997-9999") from None

    def start_listening_socket(self) -> socket.socket:
        """A socket at the first port that is free."""
        ports = self.get_server_ports()
        for port in ports:
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("", port))
                listener.listen(64)
                return listener
            except OSError as error:
                listener.close()
                logger.warning("port %d: %s", port, error)
        raise OSError(f"none of these ports is free ({TFOS_SERVER_PORT}): {', '.join(map(str, ports))}")

    def stop(self) -> None:
        """Listens no more."""
        self.done = True
        server, self._listener = self._listener, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def answer(self, message: Dict[str, Any]) -> Any:
        kind = message.get("type")
        if kind == "REG":
            self.reservations.add(message.get("data"))
            return "OK"
        if kind == "QUERY":
            return self.reservations.done()
        if kind == "QINFO":
            return self.reservations.get()
        if kind == "STOP":
            self.stop()
            return "OK"
        return "ERR"


class Client:
    """Talks to a Server at (host, port). Raises OSError where nobody listens, or answers, there."""

    def __init__(self, server_addr: Tuple[str, int]) -> None:
        self.server_addr = server_addr
        self._socket = socket.create_connection(server_addr, _ANSWER_SECONDS)

    def register(self, reservation: Dict[str, Any]) -> Any:
        return self._request("REG", reservation)

    def get_reservations(self) -> List[Any]:
        found: List[Any] = self._request("QINFO")
        return found

    def await_reservations(self, timeout: float = 600) -> List[Any]:
        """What all nodes have reported. Raises TimeoutError."""
        end = time.monotonic() + timeout
        while not self._request("QUERY"):
            if time.monotonic() > end:
                raise TimeoutError(f"after {timeout:g} s not all nodes have reported to {self.server_addr}")
            time.sleep(_POLL_SECONDS)
        return self.get_reservations()

    def request_stop(self) -> Any:
        return self._request("STOP")

    def close(self) -> None:
        self._socket.close()

    def _request(self, kind: str, data: Any = None) -> Any:
        _send(self._socket, {"type": kind, "data": data})
        return _receive(self._socket)


def _handler(server: Server) -> Any:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(_IDLE_SECONDS)
            try:
                while True:
                    message = _receive(self.request)
                    _send(self.request, server.answer(message if isinstance(message, dict) else {}))
            except (OSError, ValueError):
                pass  # the client has gone, or is none

    return Handler


def _send(peer: socket.socket, message: Any) -> None:
    body = json.dumps(message).encode()
    peer.sendall(_LENGTH.pack(len(body)) + body)


def _receive(peer: socket.socket) -> Any:
    """Raises OSError at the end, ValueError for what is no message."""
    (size,) = _LENGTH.unpack(_exactly(peer, _LENGTH.size))
    if size > _MESSAGE_BYTES:
        raise ValueError(f"a message of {size} bytes")
    return json.loads(_exactly(peer, size))


def _exactly(peer: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        part = peer.recv(size - len(read))
        if not part:
            raise ConnectionError("the other end has closed the connection")
        read += part
    return read
