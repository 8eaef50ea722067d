"""Objects over a unix socket, between processes of one user on one machine.

The socket lies in a folder of mode 0700, and each side checks that its peer has the same user: what is
received is unpickled.
"""

from __future__ import annotations

import os
import pickle
import select
import socket
import struct
import threading
from typing import Any, Optional

_LENGTHS = struct.Struct("<QQ")  # of a pickled message, and of the bytes after it
_READ_BYTES = 1 << 18
_MOST_BYTES = 1 << 31  # of a message, and of the bytes after it: Arrow's batches cannot have more
_FIRST_BYTES = 1 << 22  # for the bytes after a message; more when these have come
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


class Closed(Exception):
    """The peer has closed the channel, did not read for the channel's send timeout, or sends what is no message."""


def listen(folder: str, name: str) -> socket.socket:
    """A listening socket NAME in the folder, in place of an earlier one there."""
    path = os.path.join(folder, name)
    if os.path.exists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _Folder(folder) as reached:
        listener.bind(f"{reached}/{name}")
    listener.listen(64)
    return listener


def connect(path: str, send_seconds: float) -> Channel:
    """Raises OSError if nobody listens there."""
    folder, name = os.path.split(path)
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _Folder(folder) as reached:
            peer.connect(f"{reached}/{name}")
        return Channel(peer, send_seconds)
    except BaseException:
        peer.close()
        raise


class _Folder:
    """A short name of a folder: the path of a socket has at most 107 bytes."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def __enter__(self) -> str:
        return f"/proc/self/fd/{self._descriptor}"

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)


class Channel:
    """Any thread may send; one may receive at the same time."""

    def __init__(self, peer: socket.socket, send_seconds: float) -> None:
        """Raises PermissionError if the peer belongs to another user."""
        size = _CREDENTIALS.size
        credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        if _CREDENTIALS.unpack(credentials)[1] != os.getuid():
            raise PermissionError("the other end of a feed's socket belongs to another user")
        whole = int(send_seconds)
        timeout = struct.pack("ll", whole, int((send_seconds - whole) * 1e6))
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
        self._peer = peer
        self._sending = threading.Lock()
        self._received = bytearray()
        self._message: Any = ()  # the last one
        self._data: Optional[bytearray] = None  # the bytes after it, while they are received
        self._data_size = 0  # how many of them are there
        self._data_end = 0  # how many there will be

    def send(self, message: Any, data: Any = b"") -> int:
        """Returns the size of what was sent. Raises Closed, and ValueError if it has too many bytes.

        data: bytes, or another buffer, that are not pickled. The peer gets them as the last item of the
        message, which must be a tuple then.
        """
        body = pickle.dumps(message, protocol=4)
        size = memoryview(data).nbytes
        if max(len(body), size) > _MOST_BYTES:
            raise ValueError(
                f"{max(len(body), size)} bytes are too many for a feed: a row, or its result, has at most {_MOST_BYTES}"
            )
        try:
            with self._sending:
                self._peer.sendall(_LENGTHS.pack(len(body), size) + body)
                if size:
                    self._peer.sendall(data)
        except OSError as error:  # BlockingIOError after the send timeout
            raise Closed(str(error)) from None
        return len(body) + size

    def receive(self, seconds: float) -> Optional[Any]:
        """The next message; None if it has not arrived after so many seconds. Raises Closed."""
        while True:
            message = self._take()
            if message is not None:
                return message
            poll = select.poll()
            poll.register(self._peer, select.POLLIN)
            if not poll.poll(seconds * 1000):
                return None
            self._read()

    def _read(self) -> None:
        try:
            if self._data is not None:
                size = self._peer.recv_into(self._room(self._data))
                self._data_size += size
            else:
                part = self._peer.recv(_READ_BYTES)
                size = len(part)
                self._received += part
        except OSError as error:
            raise Closed(str(error)) from None
        if not size:
            raise Closed("the other end has closed the channel")

    def _room(self, data: bytearray) -> memoryview:
        """Where the next bytes of `data` go. Memory grows with what comes, not with the length that is said."""
        if self._data_size == len(data):
            more = min(len(data), self._data_end - len(data))
            data.extend(bytes(more))
        return memoryview(data)[self._data_size :]

    def _take(self) -> Optional[Any]:
        """The message that was received; None if it, or the bytes after it, are not all there yet."""
        if self._data is None:
            if len(self._received) < _LENGTHS.size:
                return None
            size, data_size = _LENGTHS.unpack_from(self._received)
            if max(size, data_size) > _MOST_BYTES:
                raise Closed(f"the other end says that {max(size, data_size)} bytes follow: it is no feed of Muster")
            end = _LENGTHS.size + size
            if len(self._received) < end:
                return None
            self._message = pickle.loads(bytes(self._received[_LENGTHS.size : end]))
            del self._received[:end]
            if not data_size:
                return self._message
            self._data_end = data_size
            self._data = bytearray(min(data_size, max(_FIRST_BYTES, len(self._received))))
            self._data_size = min(data_size, len(self._received))
            self._data[: self._data_size] = self._received[: self._data_size]
            del self._received[: self._data_size]
        if self._data_size < self._data_end:
            return None
        message, self._data = (*self._message, self._data), None
        return message

    def close(self) -> None:
        try:
            self._peer.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits in receive()
        except OSError:
            pass  # the peer was first
        self._peer.close()
