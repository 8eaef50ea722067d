"""A proxy between an operator and the API server, by which a test ends the operator at one call.

It listens for plain HTTP on loopback, and speaks TLS with the API server.
"""

from __future__ import annotations

import socket
import ssl
import threading
from typing import Callable

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
        plain = socket.create_connection(("127.0.0.1", self.cluster.port))
        server = self.context.wrap_socket(plain, server_hostname="127.0.0.1")
        ending = threading.Event()
        threading.Thread(target=self.answers, args=(server, client, ending), daemon=True).start()
        try:
            self.requests(client, server, ending)
        except OSError:
            pass
        for end in (client, server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def requests(
        self, client: socket.socket, server: ssl.SSLSocket, ending: threading.Event
    ) -> None:
        received = b""
        while True:
            while b"\r\n\r\n" not in received:
                more = client.recv(65536)
                if not more:
                    return
                received += more
            head, _, rest = received.partition(b"\r\n\r\n")
            size = 0
            for line in head.split(b"\r\n")[1:]:
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    size = int(value)
            while len(rest) < size:
                more = client.recv(65536)
                if not more:
                    return
                rest += more
            self.count(head, ending)
            server.sendall(head + b"\r\n\r\n" + rest[:size])
            received = rest[size:]

    def count(self, head: bytes, ending: threading.Event) -> None:
        method, target, _ = head.split(b"\r\n")[0].split(b" ")
        if method not in CHANGING or b"/leases" in target:
            return
        with self.lock:
            self.calls.append(f"{method.decode()} {target.decode()}")
            if len(self.calls) == self.last:
                ending.set()

    def answers(
        self, server: ssl.SSLSocket, client: socket.socket, ending: threading.Event
    ) -> None:
        """Passes answers on; the last one comes only when `at_last` has returned."""
        try:
            while answer := server.recv(65536):
                if ending.is_set():
                    ending.clear()
                    self.at_last()
                client.sendall(answer)
        except OSError:
            pass
        try:
            client.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
