"""Keys and certificates of an API server and a client of it, made by openssl."""

from __future__ import annotations

import pathlib
import subprocess


def openssl(*arguments: object) -> None:
    subprocess.run(
        ["openssl", *map(str, arguments)], check=True, capture_output=True, text=True, timeout=60
    )


def make_certificates(folder: pathlib.Path) -> None:
    """ca.crt, server.{crt,key}, client.{crt,key} (the administrator), accounts.{key,pub}."""
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *new_key, "-days", 2, "-subj", "/CN=muster-test",
            "-keyout", folder / "ca.key", "-out", folder / "ca.crt",
            "-addext", "keyUsage=critical,keyCertSign")  # fmt: skip
    (folder / "extensions").write_text(
        "[server]\nsubjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth\n"
        "[client]\nextendedKeyUsage=clientAuth\n"
    )
    subjects = {"server": "/CN=kube-apiserver", "client": "/O=system:masters/CN=root"}
    for name, subject in subjects.items():
        openssl("req", *new_key, "-subj", subject,
                "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr")  # fmt: skip
        openssl("x509", "-req", "-in", folder / f"{name}.csr", "-days", 2, "-CAcreateserial",
                "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key",
                "-extfile", folder / "extensions", "-extensions", name,
                "-out", folder / f"{name}.crt")  # fmt: skip
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-out", folder / "accounts.key")  # fmt: skip
    openssl("pkey", "-in", folder / "accounts.key", "-pubout", "-out", folder / "accounts.pub")
