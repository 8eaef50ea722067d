"""A YARN whose daemons and users have Kerberos principals, beside a SecureHdfs."""

from __future__ import annotations

import json
import os
import subprocess

from testbed.hadoop.kerberos import REALM
from testbed.hadoop.secure import KERBEROS, SecureHdfs
from testbed.hadoop.yarn import Yarn


class SecureYarn(Yarn):
    """Its NodeManagers run containers as themselves (DefaultContainerExecutor), since LinuxContainerExecutor
    needs a native program that belongs to root."""

    hdfs: SecureHdfs

    def __init__(self, hdfs: SecureHdfs, nodes: int = 2, **properties: object):
        self.keytab = hdfs.kdc.add("rm/localhost", "nm/localhost")
        (hdfs.folder / "signature-secret").write_text("test bed")
        super().__init__(hdfs, nodes, **properties)

    @property
    def url(self) -> str:
        return f"http://localhost:{self.http_port}"

    def host_of(self, number: int) -> str:
        return "localhost"

    def site(self) -> dict[str, object]:
        return {
            "yarn.resourcemanager.hostname": "localhost",
            "yarn.resourcemanager.webapp.address": f"localhost:{self.http_port}",
            "yarn.resourcemanager.principal": f"rm/localhost@{REALM}",
            "yarn.resourcemanager.keytab": self.keytab,
            "yarn.nodemanager.principal": f"nm/localhost@{REALM}",
            "yarn.nodemanager.keytab": self.keytab,
            "yarn.resourcemanager.webapp.spnego-principal": f"HTTP/localhost@{REALM}",
            "yarn.resourcemanager.webapp.spnego-keytab-file": self.hdfs.keytab,
            "yarn.nodemanager.webapp.spnego-principal": f"HTTP/localhost@{REALM}",
            "yarn.nodemanager.webapp.spnego-keytab-file": self.hdfs.keytab,
            "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
            "hadoop.http.authentication.signature.secret.file": self.hdfs.folder / "signature-secret",
            # Without the native library a secure NodeManager ends when it is to aggregate its first output.
            "yarn.log-aggregation-enable": "false",
            # Where this test bed's realm is, which containers find out by nothing else.
            "yarn.nodemanager.env-whitelist": "JAVA_HOME,PATH,LANG,JAVA_TOOL_OPTIONS,KRB5_CONFIG",
        }

    def run(self, name: str, program: str, *properties: str) -> None:
        options = " ".join([*KERBEROS, f"-Djava.security.krb5.conf={self.hdfs.kdc.folder}/krb5.conf"])
        before = {key: os.environ.get(key) for key in ("JAVA_TOOL_OPTIONS", "KRB5_CONFIG")}
        os.environ |= {"JAVA_TOOL_OPTIONS": options, **self.hdfs.kdc.environment}
        try:
            super().run(name, program, *properties)
        finally:
            for key, value in before.items():
                if value is None:
                    os.environ.pop(key, None)
                else:
                    os.environ[key] = value

    def fetch(self, method: str, path: str, body: object = None) -> bytes:
        data = [] if body is None else ["--data", json.dumps(body), "--header", "Content-Type: application/json"]
        done = subprocess.run(
            ["curl", "--silent", "--show-error", "--fail-with-body", "--negotiate", "--user", ":",
             "--request", method, *data, self.url + path],
            capture_output=True, env={**os.environ, **self.hdfs.ticket},
        )  # fmt: skip
        if done.returncode != 0:
            raise OSError(done.stderr.decode() + done.stdout.decode())
        return done.stdout
