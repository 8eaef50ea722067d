"""What a container wrote, and a kubelet's answer to who asks for it."""

from __future__ import annotations

import datetime
import http.server
import pathlib
import ssl
import threading
import time
import urllib.parse
from typing import Callable, Iterator, Optional

Line = tuple[float, bytes]


def timestamp(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


def parse_time(text: str) -> float:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class ContainerLog:
    """Lines of one run of a container, each with the time at which it was read."""

    def __init__(self) -> None:
        self.begun = time.time()  # the container starts now
        self.lines: list[Line] = []
        self.ended = False
        self.changed = threading.Condition()

    def add(self, line: bytes) -> None:
        with self.changed:
            self.lines.append((time.time(), line))
            self.changed.notify_all()

    def end(self) -> None:
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def text(self) -> str:
        return b"".join(line for _, line in self.lines).decode(errors="replace")

    def read(self, query: dict[str, str]) -> Iterator[bytes]:
        """By the query of Kubernetes' pods/log, piece by piece."""
        with self.changed:
            first = self.lines[:]
        position = len(first)
        since = 0.0
        if "sinceSeconds" in query:
            since = time.time() - float(query["sinceSeconds"])
        if "sinceTime" in query:
            since = parse_time(query["sinceTime"])
        if "tailLines" in query:
            first = first[max(0, len(first) - int(query["tailLines"])) :]
        left = int(query.get("limitBytes", 1 << 40))
        follows = query.get("follow") in ("true", "1")
        stamps = query.get("timestamps") in ("true", "1")
        lines = [line for line in first if line[0] >= since]
        while left > 0:
            pieces = (timestamp(when).encode() + b" " + text if stamps else text
                      for when, text in lines)  # fmt: skip
            piece = b"".join(pieces)[:left]
            left -= len(piece)
            if piece:
                yield piece
            with self.changed:
                while follows and position == len(self.lines) and not self.ended:
                    self.changed.wait(1)
                lines = self.lines[position:]
                position += len(lines)
            if not follows or not lines:
                return


# (namespace, pod, container, whether of the run before) -> its log; None: there is none.
FindLog = Callable[[str, str, str, bool], Optional[ContainerLog]]


class LogServer:
    """A kubelet's port, of which an API server uses /containerLogs."""

    def __init__(self, certificates: pathlib.Path, find: FindLog):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                address = urllib.parse.urlsplit(self.path)
                query = dict(urllib.parse.parse_qsl(address.query))
                words = address.path.strip("/").split("/")
                if len(words) != 4 or words[0] != "containerLogs":
                    return self.send_error(404)
                log = find(words[1], words[2], words[3], query.get("previous") == "true")
                if log is None:
                    return self.send_error(404, f"container {words[3]} has no such log")
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    for piece in log.read(query):
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                        self.wfile.flush()
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    self.close_connection = True  # the asker went away

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "server.crt", certificates / "server.key")
        # The handshake is the connection's own thread's.
        self.server.socket = context.wrap_socket(
            self.server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.port = int(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
