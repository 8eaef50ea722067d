"""A proxy between an operator and the API server, by which a test ends the operator at one call.

It listens for plain HTTP on loopback, and speaks TLS with the API server.
"""

from __future__ import annotations

import socket
import ssl
import threading
from typing import BinaryIO, Callable, Iterator

from testbed.kubernetes.cluster import Cluster

CHANGING = (b"POST", b"PUT", b"PATCH", b"DELETE")


class Proxy:
    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.context = ssl.create_default_context(cafile=str(cluster.folder / "ca.crt"))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.server = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.lock = threading.Lock()
        self.calls: list[str] = []  # that change anything, but for leases
        self.last = 0  # the call at whose answer `at_last` is called; 0: none
        self.at_last: Callable[[], object] = lambda: None
        threading.Thread(target=self.serve, daemon=True).start()

    def begin(self, last: int, at_last: Callable[[], object]) -> None:
        with self.lock:
            self.calls, self.last, self.at_last = [], last, at_last

    def stop(self) -> None:
        self.listener.close()

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.relay, args=(client,), daemon=True).start()

    def relay(self, client: socket.socket) -> None:
        """One call after the other: a TLS connection is not for two threads at a time."""
        plain = socket.create_connection(("127.0.0.1", self.cluster.port))
        server = self.context.wrap_socket(plain, server_hostname="127.0.0.1")
        asked, answered = client.makefile("rb"), server.makefile("rb")
        try:
            while head := read_head(asked):
                is_last = self.count(head)
                server.sendall(head + asked.read(body_size(head)))
                answer = read_head(answered)
                if is_last:
                    self.at_last()
                if not answer:
                    break
                client.sendall(answer)
                for piece in body_pieces(answer, answered):
                    client.sendall(piece)
        except OSError:
            pass
        for end in (client, server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def count(self, head: bytes) -> bool:
        """Whether this call is the last one."""
        method, target, _ = head.split(b"\r\n")[0].split(b" ")
        if method not in CHANGING or b"/leases" in target:
            return False
        with self.lock:
            self.calls.append(f"{method.decode()} {target.decode()}")
            return len(self.calls) == self.last


def read_head(stream: BinaryIO) -> bytes:
    """Request or answer up to its body; nothing at the end of the connection."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            return b""
        head += line
    return head


def find_field(head: bytes, wanted: bytes) -> bytes:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == wanted:
            return value.strip()
    return b""


def body_size(head: bytes) -> int:
    return int(find_field(head, b"content-length") or 0)


def body_pieces(head: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """The body's bytes as they come; those of a watch come one by one."""
    if find_field(head, b"transfer-encoding") != b"chunked":
        yield stream.read(body_size(head))
        return
    while size := stream.readline():
        length = int(size, 16)
        yield size + stream.read(length + 2)
        if length == 0:
            return
