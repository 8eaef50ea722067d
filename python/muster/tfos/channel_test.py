"""What a channel takes from its peer."""

from __future__ import annotations

import socket
import struct
import threading
import tracemalloc
from typing import Iterator, Tuple

import pytest

from muster.tfos import channel
from muster.tfos.channel import Channel, Closed


@pytest.fixture
def pair() -> Iterator[Tuple[Channel, socket.socket]]:
    """A channel, and its peer without one."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    made = Channel(here, 10)
    yield made, there
    made.close()
    there.close()


def test_bytes_of_any_size_come_whole(pair: Tuple[Channel, socket.socket]) -> None:
    ours, there = pair
    theirs = Channel(there, 60)
    sizes = [1, channel._FIRST_BYTES, channel._FIRST_BYTES + 1, 5 * channel._FIRST_BYTES, 10]
    sent = [bytes([number]) * size for number, size in enumerate(sizes, 1)]

    def send() -> None:
        for data in sent:
            theirs.send(("data", len(data)), data)
        theirs.send(("end",))

    thread = threading.Thread(target=send)
    thread.start()
    for data in sent:
        assert ours.receive(60) == ("data", len(data), data)
    assert ours.receive(60) == ("end",)
    thread.join()


@pytest.mark.parametrize("lengths", [(1 << 40, 0), (4, 1 << 63)])
def test_a_length_that_no_message_has(pair: Tuple[Channel, socket.socket], lengths: Tuple[int, int]) -> None:
    ours, there = pair
    there.sendall(struct.pack("<QQ", *lengths))
    with pytest.raises(Closed, match=f"{max(lengths)} bytes follow: it is no feed of Muster"):
        ours.receive(10)


def test_memory_follows_what_comes(pair: Tuple[Channel, socket.socket]) -> None:
    ours, there = pair
    there.sendall(struct.pack("<QQ", 4, 1 << 31) + b"\x80\x04).abc")  # an empty tuple, then three of 2 GiB
    tracemalloc.start()
    assert ours.receive(0.2) is None
    assert tracemalloc.get_traced_memory()[1] < 3 * channel._FIRST_BYTES
    tracemalloc.stop()


def test_too_much_is_not_sent(pair: Tuple[Channel, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "_MOST_BYTES", 100)
    with pytest.raises(ValueError, match="1000 bytes are too many for a feed"):
        pair[0].send(("data",), bytes(1000))
