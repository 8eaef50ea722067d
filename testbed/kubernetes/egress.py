"""How an API server reaches pods whose network is a namespace of a node of this machine: it asks this
program for each connection to its cluster (HTTP CONNECT), which makes it there.
"""

from __future__ import annotations

import pathlib
import shutil
import socket
import socketserver
import tempfile
import threading

from testbed.kubernetes.node import Node

CONFIG = """
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %s}}
"""


class Egress:
    """`node` is where the addresses of pods are; others are this machine's own."""

    def __init__(self, folder: pathlib.Path):
        self.node: Node | None = None
        egress = self

        class Handler(socketserver.StreamRequestHandler):
            rbufsize = 0  # what follows the request is the peer's

            def handle(self) -> None:
                line = self.rfile.readline().decode()
                while self.rfile.readline().strip():
                    pass  # its fields
                egress.forward(self.connection, line)

        # The path of a socket has 107 letters at most.
        self.sockets = pathlib.Path(tempfile.mkdtemp(prefix="egress-"))
        path = self.sockets / "socket"
        self.server = socketserver.ThreadingUnixStreamServer(str(path), Handler)
        self.server.daemon_threads = True
        self.config = folder / "egress.yaml"
        self.config.write_text(CONFIG % path)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        shutil.rmtree(self.sockets)

    def forward(self, client: socket.socket, line: str) -> None:
        """Serves one request, "CONNECT 10.200.1.1:6006 HTTP/1.1"."""
        host, _, port = line.split()[1].rpartition(":")
        try:
            peer = self.connect(host, int(port))
        except OSError as error:
            client.sendall(f"HTTP/1.1 502 {error.strerror}\r\n\r\n".encode())
            return
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        back = threading.Thread(target=pump, args=(peer, client), daemon=True)
        back.start()
        pump(client, peer)
        back.join()

    def connect(self, host: str, port: int) -> socket.socket:
        if not host.startswith("10.200.") or self.node is None:
            return socket.create_connection((host, port), timeout=10)
        made: list[socket.socket | OSError] = []
        thread = threading.Thread(target=connect_on, args=(self.node, host, port, made))
        thread.start()
        thread.join()
        if isinstance(made[0], OSError):
            raise made[0]
        return made[0]


def connect_on(node: Node, host: str, port: int, made: list[socket.socket | OSError]) -> None:
    """Connects in the node's network. Only the calling thread goes there; the socket may be used by any."""
    try:
        with node.inside():
            made.append(socket.create_connection((host, port), timeout=10))
    except OSError as error:
        made.append(error)


def pump(source: socket.socket, sink: socket.socket) -> None:
    source.settimeout(None)
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one side has gone
