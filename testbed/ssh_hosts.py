"""Hosts of a network that sshd serves, with a client's configuration for them."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import time

from testbed.network import HOSTS, Network

PORT = 2222
SERVER = """
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
SetEnv TMPDIR={temporary}
"""
CLIENT = """
UserKnownHostsFile {folder}/known_hosts
IdentitiesOnly yes
Port {port}
Host a
  HostName {a}
  IdentityFile {folder}/user_key
Host b
  HostName {b}
  IdentityFile {folder}/user_key
Host stranger
  HostName {b}
  IdentityFile {folder}/other_key
"""


def available() -> str:
    """Returns why there can be no sshd on this machine; "" if there can."""
    if shutil.which("sshd", path="/usr/sbin:/usr/bin") is None:
        return "needs openssh-server"
    return ""


class SshHosts:
    """Runs sshd on both hosts of a network. A context manager."""

    def __init__(self, network: Network, folder: pathlib.Path) -> None:
        self.network = network
        self.folder = folder / "ssh"
        self.temporary = {host: self.folder / f"tmp-{host}" for host in HOSTS}
        self._servers: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def command(self) -> str:
        """Returns the value for --ssh."""
        return f"ssh -F {self.folder}/client"

    def __enter__(self) -> SshHosts:
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        self.folder.mkdir()
        for name in ("host_key", "user_key", "other_key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)]
            subprocess.run(command, check=True)
        known = (self.folder / "host_key.pub").read_text()
        addresses = self.network.addresses
        (self.folder / "known_hosts").write_text(
            "".join(f"[{address}]:{PORT} {known}" for address in addresses.values())
        )
        text = CLIENT.format(folder=self.folder, port=PORT, **addresses)
        (self.folder / "client").write_text(text)
        for host in HOSTS:
            self.temporary[host].mkdir()
            self.start(host)
        return self

    def __exit__(self, *_: object) -> None:
        for host in list(self._servers):
            self.stop(host)

    def start(self, host: str) -> None:
        address = self.network.addresses[host]
        config = self.folder / f"server-{host}"
        config.write_text(
            SERVER.format(
                port=PORT, address=address, folder=self.folder, temporary=self.temporary[host]
            )
        )
        command = [*self.network.command(host), "/usr/sbin/sshd", "-D", "-e", "-f", str(config)]
        log = (self.folder / f"server-{host}.log").open("ab")
        self._servers[host] = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        deadline = time.monotonic() + 30
        probe = [*self.network.command(host), "bash", "-c", f"</dev/tcp/{address}/{PORT}"]
        while subprocess.run(probe, capture_output=True, check=False).returncode != 0:
            assert time.monotonic() < deadline, "sshd does not listen"
            time.sleep(0.05)

    def stop(self, host: str) -> None:
        """Stops sshd: nobody can connect any more, but existing connections remain."""
        server = self._servers.pop(host)
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()

    def left(self) -> list[str]:
        """Returns all files of any job on the hosts."""
        return [str(path) for folder in self.temporary.values() for path in folder.iterdir()]

    def agents(self, host: str) -> list[int]:
        """Returns the processes of any job on that host: agents, tasks, and their shells."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                environment = (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"TMPDIR={self.temporary[host]}".encode() in environment and state != "Z":
                found.append(int(entry.name))
        return found
