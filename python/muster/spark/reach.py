"""How processes on executors reach the servers of their driver: by loopback, or from other machines by TLS.

A token travels to executors in what Spark sends to its tasks. So servers listen beyond loopback only where Spark
encrypts that, and then with certificates that the driver makes for each job.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import ssl
import subprocess
import urllib.request
from typing import Any, Dict, Mapping, NamedTuple, Optional

from muster import binary
from muster.spark.own_folder import OwnFolder

LOOPBACK = "127.0.0.1"
# Settings of which one makes Spark encrypt what it sends to tasks.
_ENCRYPTIONS = (
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.rpc.enabled",
)
_CERTIFY_SECONDS = 60.0


class Reach(NamedTuple):
    """A server of the driver, for those who ask it. Plain data, which travels in what Spark sends to its tasks."""

    url: str
    token: str
    authority: str = ""  # the certificate (PEM) that the server's is signed with; "": no TLS

    def post(self, body: Mapping[str, Any], seconds: float, path: str = "") -> Dict[str, Any]:
        """The answer to a JSON body. Raises OSError or ValueError where none came."""
        return self._call(path, json.dumps(body).encode(), seconds)

    def get(self, path: str, seconds: float) -> Dict[str, Any]:
        return self._call(path, None, seconds)

    def _call(self, path: str, body: Optional[bytes], seconds: float) -> Dict[str, Any]:
        request = urllib.request.Request(
            self.url + path, body,
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"},
        )  # fmt: skip
        context = _trusting(self.authority) if self.authority else None
        with urllib.request.urlopen(request, timeout=seconds, context=context) as answer:
            found: Dict[str, Any] = json.load(answer)
            return found


@functools.lru_cache(maxsize=4)
def _trusting(authority: str) -> ssl.SSLContext:
    """Places ask many times a second: the certificate is parsed once."""
    return ssl.create_default_context(cadata=authority)


class Home:
    """Where the driver's servers of a job listen. remove() removes its certificates."""

    def __init__(self, host: str = LOOPBACK) -> None:
        """host: by which executors reach the driver; 127.0.0.1: on its machine alone, without TLS."""
        self.host = host
        self._own: Optional[OwnFolder] = None
        self.folder: Optional[pathlib.Path] = None  # of certificates, as `muster certs` makes them
        self.authority = ""
        if host != LOOPBACK:
            self._own = OwnFolder()
            self.folder = self._own.path
            try:
                self._certify(self.folder)
            except BaseException:
                self.remove()
                raise

    @classmethod
    def of(cls, context: Any) -> Home:
        """For the jobs of a SparkContext: beyond loopback where executors may be on other machines and Spark
        encrypts what it sends to them."""
        is_local = context.master.partition("[")[0] == "local"
        conf = context.getConf()
        if is_local or all(conf.get(name, "false") != "true" for name in _ENCRYPTIONS):
            return cls()
        return cls(conf.get("spark.driver.host", LOOPBACK))

    def _certify(self, folder: pathlib.Path) -> None:
        done = subprocess.run(
            [binary.find(), "certs", "--out", str(folder), "--host", self.host],
            capture_output=True, text=True, timeout=_CERTIFY_SECONDS,
        )  # fmt: skip
        if done.returncode != 0:
            raise binary.MusterError(done.stderr.strip() or "certificates of the job cannot be made")
        self.authority = (folder / "ca.pem").read_text(encoding="ascii")

    def server_context(self) -> Optional[ssl.SSLContext]:
        """Of a server of the driver; None without TLS."""
        if self.folder is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.folder / "server.pem", self.folder / "server-key.pem")
        return context

    def remove(self) -> None:
        if self._own is not None:
            self._own.remove()


def machine_id() -> str:
    """The same for all processes that reach one loopback: those of a machine, or of one network namespace of it."""
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {os.readlink('/proc/self/ns/net')}"


class OtherMachineError(RuntimeError):
    """A place is on another machine than its driver, where the job's token would come as clear text."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"an executor runs on {host}, another machine than the driver, and Spark does not encrypt what it sends "
            "there: set spark.authenticate and spark.network.crypto.enabled to true (on a standalone cluster also "
            "spark.authenticate.secret, the same everywhere), so that the job's token is no clear text"
        )
