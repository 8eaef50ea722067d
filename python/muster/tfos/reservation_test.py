"""muster.tfos.reservation: what its server and its clients do, on sockets of this machine."""

from __future__ import annotations

import socket
import struct
import threading
from typing import Any, Iterator

import pytest

from muster.tfos import reservation, util
from muster.tfos.reservation import Client, Reservations, Server
from testbed.ports import free_port


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """It waits for two nodes."""
    monkeypatch.setenv(reservation.TFOS_SERVER_HOST, "127.0.0.1")
    made = Server(2)
    yield made
    made.stop()


def test_reservations_are_counted() -> None:
    found = Reservations(2)
    found.add({"node": "first"})
    assert (found.done(), found.remaining()) == (False, 1)
    found.add({"node": "second"})
    assert (found.done(), found.remaining()) == (True, 0)
    assert found.get() == [{"node": "first"}, {"node": "second"}]


def test_nodes_find_each_other(server: Server) -> None:
    address = server.start()
    seen = []

    def join(name: str) -> None:
        client = Client(address)
        assert client.register({"node": name}) == "OK"
        seen.append(sorted(node["node"] for node in client.await_reservations(timeout=60)))
        client.close()

    nodes = [threading.Thread(target=join, args=(name,)) for name in ("a", "b")]
    for node in nodes:
        node.start()
    assert len(server.await_reservations(timeout=60)) == 2
    for node in nodes:
        node.join(60)
    assert seen == [["a", "b"], ["a", "b"]]
    assert not server.done


def test_nodes_that_do_not_come(server: Server) -> None:
    client = Client(server.start())
    client.register({"node": "only"})
    assert client.get_reservations() == [{"node": "only"}]
    with pytest.raises(TimeoutError, match="not all nodes have reported"):
        client.await_reservations(timeout=0)
    with pytest.raises(TimeoutError, match="after 0 s 1 nodes have not reported"):
        server.await_reservations(timeout=0)
    with pytest.raises(RuntimeError, match="a node has failed"):
        server.await_reservations(status={"error": "a node has failed"})
    client.close()


def test_a_request_to_stop_ends_the_server(server: Server) -> None:
    address = server.start()
    client = Client(address)
    assert client.request_stop() == "OK"
    assert server.done
    client.close()
    with pytest.raises(OSError):
        Client(address)


def test_what_is_no_message_does_no_harm(server: Server) -> None:
    address = server.start()
    for sent in (b"GET / HTTP/1.0\r\n\r\n", struct.pack(">I", 1 << 31), struct.pack(">I", 3) + b"xyz"):
        with socket.create_connection(address, 60) as peer:
            peer.sendall(sent)
            assert peer.recv(1) == b""  # the server hangs up
    with socket.create_connection(address, 60) as peer:
        peer.sendall(struct.pack(">I", 2) + b"[]")
        assert peer.recv(100)[4:] == b'"ERR"'
    assert not server.done


def test_the_address_is_that_of_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert server.get_server_ip() == "127.0.0.1"
    monkeypatch.delenv(reservation.TFOS_SERVER_HOST)
    assert server.get_server_ip() == util.get_ip_address()
    assert server.get_server_ports() == [0]
    monkeypatch.setenv(reservation.TFOS_SERVER_PORT, "4100-4102")
    assert server.get_server_ports() == [4100, 4101, 4102]
    monkeypatch.setenv(reservation.TFOS_SERVER_PORT, "some")
    with pytest.raises(ValueError, match="TFOS_SERVER_PORT='some': a port is wanted, or a range"):
        server.get_server_ports()


def test_a_port_that_is_taken_is_passed_over(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, other = two_ports()
    with taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(server, "get_server_ports", lambda: [port, other])
        assert server.start()[1] == other
        monkeypatch.setattr(server, "get_server_ports", lambda: [port])
        with pytest.raises(OSError, match=f"none of these ports is free .TFOS_SERVER_PORT.: {port}"):
            server.start_listening_socket()


def two_ports() -> Any:
    """A socket that listens, and a port that is free."""
    taken = socket.create_server(("", free_port()))
    return taken, free_port()


def test_files_in_paths(tmp_path: Any) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "tool").touch()
    path = f"{tmp_path}/a:{tmp_path}/b"
    assert util.find_in_path(path, "tool") == f"{tmp_path}/b/tool"
    assert util.find_in_path(path, "other") is False
