"""A Kerberos realm on a loopback port: Debian's krb5-kdc with principals of the test bed."""

from __future__ import annotations

import os
import pathlib
import subprocess
import time

from testbed.ports import free_port

REALM = "MUSTER.TEST"
DEADLINE = 60.0
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"  # of kdb5_util and krb5kdc


class Kdc:
    """Started by start(), ended by stop()."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        # The realm OTHER.TEST is known, but nobody answers for it.
        (folder / "krb5.conf").write_text(f"""
[libdefaults]
  default_realm = {REALM}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {REALM} = {{
    kdc = 127.0.0.1:{self.port}
  }}
  OTHER.TEST = {{
    kdc = 127.0.0.1:1
  }}
[domain_realm]
  localhost = {REALM}
""")
        (folder / "kdc.conf").write_text(f"""
[realms]
  {REALM} = {{
    database_name = {folder}/principals
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
    kdc_listen = 127.0.0.1:{self.port}
    kdc_tcp_listen = 127.0.0.1:{self.port}
    max_life = 1h
  }}
""")

    @property
    def environment(self) -> dict[str, str]:
        return {"KRB5_CONFIG": str(self.folder / "krb5.conf"),
                "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf")}  # fmt: skip

    def call(self, *command: str) -> str:
        done = subprocess.run(
            command, capture_output=True, text=True,
            env={**os.environ, **self.environment, "PATH": f"{PATH}:{os.environ['PATH']}"},
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self) -> None:
        self.call("kdb5_util", "create", "-s", "-r", REALM, "-P", "test")
        with open(self.folder / "kdc.log", "ab") as log:
            self.process = subprocess.Popen(
                ["krb5kdc", "-n", "-r", REALM], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                env={**os.environ, **self.environment, "PATH": f"{PATH}:{os.environ['PATH']}"},
            )  # fmt: skip

    def add(self, *names: str) -> pathlib.Path:
        """Adds principals and returns the keytab of all of them."""
        keytab = self.folder / f"{names[0].replace('/', '-')}.keytab"
        for name in names:
            self.call("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {name}")
            self.call("kadmin.local", "-r", REALM, "-q", f"ktadd -k {keytab} {name}")
        return keytab

    def get_ticket(self, name: str, keytab: pathlib.Path, cache: pathlib.Path, *flags: str) -> dict[str, str]:
        """What a process sets that calls with the ticket."""
        end = time.monotonic() + DEADLINE
        while True:
            try:
                self.call("kinit", "-k", "-t", str(keytab), "-c", str(cache), *flags, name)
                break
            except AssertionError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
        return {**self.environment, "KRB5CCNAME": str(cache)}

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
