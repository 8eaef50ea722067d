"""An HDFS that wants Kerberos tickets or delegation tokens, one that speaks TLS only, and one that does both."""

from __future__ import annotations

import os
import pathlib
import ssl
import subprocess
import urllib.request
from typing import Sequence

from testbed.hadoop.cluster import Hdfs, configuration
from testbed.hadoop.kerberos import REALM, Kdc
from testbed.ports import free_port

KERBEROS = [f"--add-{way}=java.security.jgss/sun.security.krb5=ALL-UNNAMED" for way in ("opens", "exports")]
PASSWORD = "test-bed"  # of key stores that only this test bed has


class SecureHdfs(Hdfs):
    """Calls of the test bed itself have the ticket of the user hdfs."""

    def __init__(self, folder: pathlib.Path, kdc: Kdc):
        self.kdc = kdc
        self.keytab = kdc.add("hdfs/localhost", "HTTP/localhost")
        self.user_keytab = kdc.add("tester", "hdfs")
        super().__init__(folder, data_nodes=1)
        self.ticket = kdc.get_ticket("hdfs", self.user_keytab, folder / "hdfs.cache")

    @property
    def url(self) -> str:
        return f"hdfs://localhost:{self.rpc_port}"

    @property
    def environment(self) -> dict[str, str]:
        return {"HADOOP_CONF_DIR": str(self.folder / "conf"), **self.kdc.environment}

    def core_site(self) -> dict[str, object]:
        return {
            **super().core_site(),
            "hadoop.proxyuser.tester.hosts": "*",
            "hadoop.proxyuser.tester.groups": "*",
            "hadoop.security.authentication": "kerberos",
            "hadoop.http.authentication.type": "kerberos",
            "hadoop.http.authentication.kerberos.principal": f"HTTP/localhost@{REALM}",
            "hadoop.http.authentication.kerberos.keytab": self.keytab,
        }

    def hdfs_site(self) -> dict[str, object]:
        site = super().hdfs_site()
        for kind in ("namenode", "datanode"):
            site[f"dfs.{kind}.kerberos.principal"] = f"hdfs/localhost@{REALM}"
            site[f"dfs.{kind}.keytab.file"] = self.keytab
        return {
            **site,
            "dfs.namenode.http-address": f"localhost:{self.http_port}",
            "dfs.datanode.hostname": "localhost",
            "dfs.web.authentication.kerberos.principal": f"HTTP/localhost@{REALM}",
            "dfs.web.authentication.kerberos.keytab": self.keytab,
            "dfs.block.access.token.enable": "true",
            "dfs.permissions.superusergroup": "hdfs",
            "ignore.secure.ports.for.testing": "true",
        }

    def java(self, node: str, program: str, *arguments: str, properties: Sequence[str] = ()) -> list[str]:
        flags = [*KERBEROS, f"-Djava.security.krb5.conf={self.kdc.folder}/krb5.conf", *properties]
        return super().java(node, program, *arguments, properties=flags)

    @property
    def web_url(self) -> str:
        return f"http://localhost:{self.http_port}"

    def call(self, method: str, path: str, op: str, user: str = "", **parameters: str) -> bytes:
        query = "&".join([f"op={op}", *(f"{k}={v}" for k, v in parameters.items())])
        return self.fetch(method, f"/webhdfs/v1{path}?{query}")

    def curl_flags(self) -> list[str]:
        return []

    def fetch(self, method: str, target: str) -> bytes:
        done = subprocess.run(
            ["curl", "--silent", "--show-error", "--fail-with-body", "--location", "--negotiate",
             "--user", ":", *self.curl_flags(), "--request", method, self.web_url + target],
            capture_output=True, env={**os.environ, **self.ticket},
        )  # fmt: skip
        if done.returncode != 0:
            raise OSError(done.stderr.decode() + done.stdout.decode())
        return done.stdout


class TlsHdfs(Hdfs):
    """Its web servers speak TLS only, with certificates of an authority of its own."""

    def __init__(self, folder: pathlib.Path):
        self.https_port = free_port()
        folder.mkdir(exist_ok=True)
        make_certificates(folder)
        super().__init__(folder, data_nodes=1)
        write_stores(folder)

    @property
    def web_url(self) -> str:
        return f"https://127.0.0.1:{self.https_port}"

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "SSL_CERT_FILE": str(authority(self.folder))}

    def hdfs_site(self) -> dict[str, object]:
        return {
            **super().hdfs_site(),
            "dfs.http.policy": "HTTPS_ONLY",
            "dfs.namenode.https-address": f"127.0.0.1:{self.https_port}",
            "dfs.datanode.https.address": "127.0.0.1:0",
        }

    def fetch(self, method: str, target: str) -> bytes:
        request = urllib.request.Request(self.web_url + target, method=method)
        trust = ssl.create_default_context(cafile=str(authority(self.folder)))
        with urllib.request.urlopen(request, timeout=10, context=trust) as answer:
            return bytes(answer.read())


class SecureTlsHdfs(SecureHdfs):
    """A SecureHdfs whose web servers speak TLS only."""

    def __init__(self, folder: pathlib.Path, kdc: Kdc):
        self.https_port = free_port()
        make_certificates(folder)
        super().__init__(folder, kdc)
        write_stores(folder)

    @property
    def web_url(self) -> str:
        return f"https://localhost:{self.https_port}"

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "SSL_CERT_FILE": str(authority(self.folder))}

    def hdfs_site(self) -> dict[str, object]:
        return {
            **super().hdfs_site(),
            "dfs.http.policy": "HTTPS_ONLY",
            "dfs.namenode.https-address": f"localhost:{self.https_port}",
            "dfs.datanode.https.address": "127.0.0.1:0",
        }

    def curl_flags(self) -> list[str]:
        return ["--cacert", str(authority(self.folder))]


def authority(folder: pathlib.Path) -> pathlib.Path:
    return folder / "authority.pem"


def make_certificates(folder: pathlib.Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
         "-keyout", folder / "key.pem", "-out", authority(folder)],
        check=True, capture_output=True,
    )  # fmt: skip
    for kind, more in {"keystore": ["-inkey", folder / "key.pem"], "truststore": ["-nokeys"]}.items():
        subprocess.run(
            ["openssl", "pkcs12", "-export", "-in", authority(folder), *more, "-name", "server",
             "-passout", f"pass:{PASSWORD}", "-out", folder / f"{kind}.p12"],
            check=True, capture_output=True,
        )  # fmt: skip


def write_stores(folder: pathlib.Path) -> None:
    """Tells the daemons where the certificates are."""
    stores = {
        f"ssl.server.{kind}.{key}": value
        for kind in ("keystore", "truststore")
        for key, value in {
            "location": folder / f"{kind}.p12", "password": PASSWORD, "type": "pkcs12"
        }.items()
    }  # fmt: skip
    stores["ssl.server.keystore.keypassword"] = PASSWORD
    (folder / "conf/ssl-server.xml").write_text(configuration(stores))
