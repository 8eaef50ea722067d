"""A proxy between an operator and the API server, by which a test makes calls fail, or ends or
stops the operator at one call.

It listens for plain HTTP on loopback, and speaks TLS with the API server.
"""

from __future__ import annotations

import dataclasses
import json
import socket
import ssl
import threading
from typing import BinaryIO, Callable, Iterator

from testbed.kubernetes.cluster import Cluster

CHANGING = ("POST", "PUT", "PATCH", "DELETE")


@dataclasses.dataclass
class Call:
    method: str
    target: str
    body: bytes
    authorization: str

    @property
    def is_watch(self) -> bool:
        return "watch=1" in self.target

    @property
    def is_change(self) -> bool:
        """Of anything but leases."""
        return self.method in CHANGING and "/leases" not in self.target


class Proxy:
    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.context = ssl.create_default_context(cafile=str(cluster.folder / "ca.crt"))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.server = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.lock = threading.Lock()
        self.clients: list[socket.socket] = []
        self.calls: list[str] = []  # that change anything, but for leases
        self.last = 0  # the call at whose answer `at_last` is called; 0: none
        self.at_last: Callable[[], object] = lambda: None
        # Called with each call before it is sent, and may take its time. It returns what becomes of
        # the call: "" (it is done), an HTTP status, "cut" (it is not done, the connection ends),
        # "lost" (it is done, the connection ends), "timeout" (it is done without an answer).
        self.judge: Callable[[Call], str] = lambda call: ""
        # A namespace and another one of as many letters: Leases that are asked for in the first are those
        # of the second, so that two operators both hold the Lease of one name, and lead.
        self.leases = (b"", b"")
        self.repeats_events = False  # each event of a watch comes twice, and once more later
        threading.Thread(target=self.serve, daemon=True).start()

    def begin(self, last: int, at_last: Callable[[], object]) -> None:
        with self.lock:
            self.calls, self.last, self.at_last = [], last, at_last

    def cut(self) -> None:
        """Ends all connections."""
        with self.lock:
            clients, self.clients = self.clients, []
        for client in clients:
            shut(client)

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
        try:
            plain = socket.create_connection(("127.0.0.1", self.cluster.port))
            server = self.context.wrap_socket(plain, server_hostname="127.0.0.1")
        except OSError:
            client.close()
            return
        with self.lock:
            self.clients.append(client)
        asked, answered = client.makefile("rb"), server.makefile("rb")
        try:
            while head := read_head(asked):
                if not self.pass_on(head, asked, answered, client, server):
                    break
        except OSError:
            pass
        shut(client)
        shut(server)

    def pass_on(
        self,
        head: bytes,
        asked: BinaryIO,
        answered: BinaryIO,
        client: socket.socket,
        server: ssl.SSLSocket,
    ) -> bool:
        """Whether the connection can be used again."""
        body = asked.read(body_size(head))
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        call = Call(method, target, body, find_field(head, b"authorization").decode())
        fault = self.judge(call)
        if fault == "cut":
            return False
        if fault.isdigit():
            client.sendall(refusal(fault))
            return True
        is_last = self.count(call)
        if "/leases" in target and self.leases[0]:
            assert len(self.leases[0]) == len(self.leases[1])
            head, body = (part.replace(*self.leases) for part in (head, body))
        server.sendall(head + body)
        answer = read_head(answered)
        if is_last:
            self.at_last()
        if not answer or fault == "lost":
            return False
        pieces = body_pieces(answer, answered)
        if fault == "timeout":
            list(pieces)
            client.recv(1)  # until the client gives up
            return False
        client.sendall(answer)
        for piece in repeat(pieces) if self.repeats_events and call.is_watch else pieces:
            client.sendall(piece)
        return True

    def count(self, call: Call) -> bool:
        """Whether this call is the last one."""
        if not call.is_change:
            return False
        with self.lock:
            self.calls.append(f"{call.method} {call.target}")
            return len(self.calls) == self.last


def second_lease(cluster: Cluster, namespace: str) -> Proxy:
    """By this proxy another operator of a namespace leads, too, and believes to have the same Lease."""
    proxy = Proxy(cluster)
    other = f"{namespace[:-1]}0"
    cluster.namespace(other)
    proxy.leases = (namespace.encode(), other.encode())
    return proxy


def shut(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def refusal(status: str) -> bytes:
    body = json.dumps({"kind": "Status", "status": "Failure", "code": int(status),
                       "message": "a fault of the test", "reason": "Test"}).encode()  # fmt: skip
    wait = "Retry-After: 1\r\n" if status == "429" else ""
    return (
        f"HTTP/1.1 {status} Fault\r\nContent-Type: application/json\r\n{wait}"
        f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    )


def repeat(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Each event at once a second time, and again after the next one."""
    before = b""
    for piece in pieces:
        yield piece
        if piece.endswith(b"\n\r\n"):  # whole lines
            yield piece
            if before:
                yield before
            before = piece


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
