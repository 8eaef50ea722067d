"""HDFS that wants to know who calls: Kerberos tickets, delegation tokens; and HDFS by TLS."""

from __future__ import annotations

import os
import pathlib
import subprocess
import time
from collections.abc import Iterator

import pytest

from testbed.daemons import run
from testbed.hadoop.kerberos import REALM, Kdc
from testbed.hadoop.secure import SecureHdfs, SecureTlsHdfs, TlsHdfs
from testbed.muster import Muster

MODEL = """
inputs: {x: float, y: int}
label: y
columns: {x: {numeric: x}}
model: {type: dnn, dnn: {columns: [x], hidden_units: [4]}}
train: {batch_size: 4}
"""


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    yield from run(Kdc(pathlib.Path(tmp_path_factory.mktemp("kdc")) / "realm"))


@pytest.fixture(scope="module")
def secure(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureHdfs]:
    yield from run(SecureHdfs(pathlib.Path(tmp_path_factory.mktemp("secure")), kdc))


@pytest.fixture
def place(secure: SecureHdfs, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The environment of a person who has not called kinit."""
    for name, value in secure.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KRB5CCNAME", str(secure.folder / "no.cache"))
    # Another name than the ticket's is of no use.
    monkeypatch.setenv("HADOOP_USER_NAME", "root")
    return f"{secure.url}/{request.node.name}"


@pytest.fixture
def ticket(secure: SecureHdfs, place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> str:
    got = secure.kdc.get_ticket("tester", secure.user_keytab, tmp_path / "cache")
    monkeypatch.setenv("KRB5CCNAME", got["KRB5CCNAME"])
    return place


def write_model(folder: pathlib.Path) -> None:
    (folder / "model.yaml").write_text(MODEL)
    (folder / "rows.csv").write_text("x,y\n" + "1,1\n0,0\n" * 20)


def test_a_ticket_is_enough_to_train(secure, ticket, muster, tmp_path) -> None:
    write_model(tmp_path)
    muster.run("fs", "mkdir", ticket)
    muster.run("fs", "put", tmp_path / "rows.csv", ticket)
    muster.run("train", tmp_path / "model.yaml", f"{ticket}/model", "--train", f"{ticket}/rows.csv")
    assert "dnn" in muster.run("inspect", f"{ticket}/model")
    owner = secure.call("GET", f"/{ticket.rsplit('/', 1)[1]}", "GETFILESTATUS")
    assert b'"owner":"tester"' in owner


def test_no_ticket_names_kinit(place, muster) -> None:
    said = muster.fail("fs", "ls", place)
    assert "Kerberos for HTTP/localhost" in said and "kinit" in said
    assert len(said.splitlines()) == 1


def test_an_expired_ticket_names_kinit(secure, place, muster, tmp_path, monkeypatch) -> None:
    got = secure.kdc.get_ticket("tester", secure.user_keytab, tmp_path / "cache", "-l", "2s")
    monkeypatch.setenv("KRB5CCNAME", got["KRB5CCNAME"])
    time.sleep(3)
    said = muster.fail("fs", "ls", place)
    assert "expired" in said and "kinit" in said, said


def test_a_keytab_of_the_client_is_used_without_kinit(secure, place, muster, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "made"))
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(secure.user_keytab))
    muster.run("fs", "mkdir", place)


def test_a_wrong_realm_is_named(secure, ticket, muster, tmp_path, monkeypatch) -> None:
    conf = (secure.kdc.folder / "krb5.conf").read_text()
    port = f":{secure.kdc.port}"
    for old, new, words in (
        (f"localhost = {REALM}", "localhost = OTHER.TEST", ("OTHER.TEST", "kinit")),
        (port, ":1", (REALM, "krb5.conf")),  # nobody answers for the realm
    ):
        (tmp_path / "krb5.conf").write_text(conf.replace(old, new))
        monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
        said = muster.fail("fs", "ls", ticket)
        assert len(said.splitlines()) == 1, said
        for word in ("Kerberos for HTTP/localhost", *words):
            assert word in said, said


def dt_util(secure: SecureHdfs, *words: object) -> str:
    command = secure.java("admin", "org.apache.hadoop.security.token.DtUtilShell", *map(str, words))
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_delegation_token_stands_for_a_ticket(secure, ticket, muster, tmp_path, monkeypatch) -> None:
    write_model(tmp_path)
    muster.run("fs", "mkdir", ticket)
    token = tmp_path / "token"
    muster.run("fs", "token", "get", secure.url, token)
    assert (os.stat(token).st_mode & 0o777) == 0o600
    assert "HDFS_DELEGATION_TOKEN" in dt_util(secure, "print", token)  # Hadoop reads the file, too
    assert "valid until 2" in muster.run("fs", "token", "renew", secure.url, token)
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "none"))
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(token))
    muster.run("fs", "put", tmp_path / "rows.csv", ticket)
    muster.run("train", tmp_path / "model.yaml", f"{ticket}/model", "--train", f"{ticket}/rows.csv")
    got = secure.kdc.get_ticket("tester", secure.user_keytab, tmp_path / "cache")
    with monkeypatch.context() as with_ticket:
        with_ticket.setenv("KRB5CCNAME", got["KRB5CCNAME"])
        muster.run("fs", "token", "cancel", secure.url, token)
    said = muster.fail("fs", "ls", ticket)
    assert "HADOOP_TOKEN_FILE_LOCATION is not valid" in said and "kinit" in said, said
    with monkeypatch.context() as with_ticket:
        with_ticket.setenv("KRB5CCNAME", got["KRB5CCNAME"])
        muster.run("fs", "ls", ticket)  # by the ticket
    token.write_bytes(b"HDTS\0\5")
    assert "damaged" in muster.fail("fs", "ls", ticket)


def test_a_token_that_somebody_else_renews(secure, ticket, muster, tmp_path) -> None:
    muster.run("fs", "token", "get", secure.url, tmp_path / "token", "--renewer", "hdfs")
    said = muster.fail("fs", "token", "renew", secure.url, tmp_path / "token")
    assert "renew" in said and "tester" in said, said


def test_a_user_with_a_ticket_calls_for_another(secure, ticket, muster, tmp_path, monkeypatch) -> None:
    (tmp_path / "x").write_text("x")
    muster.run("fs", "mkdir", ticket)
    path = f"/{ticket.rsplit('/', 1)[1]}"
    secure.call("PUT", path, "SETPERMISSION", permission="777")
    monkeypatch.setenv("HADOOP_PROXY_USER", "other")  # whom tester may call for, by core-site.xml
    muster.run("fs", "put", tmp_path / "x", ticket)
    (made,) = muster.json("fs", "ls", f"{ticket}/x")
    assert made["owner"] == "other"
    got = secure.kdc.get_ticket("hdfs", secure.user_keytab, tmp_path / "cache")
    monkeypatch.setenv("KRB5CCNAME", got["KRB5CCNAME"])
    said = muster.fail("fs", "ls", ticket)
    assert "hdfs" in said and "is not allowed to impersonate other" in said, said
    assert len(said.splitlines()) == 1


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsHdfs]:
    yield from run(TlsHdfs(pathlib.Path(tmp_path_factory.mktemp("tls"))))


def test_tls_only(tls: TlsHdfs, muster: Muster, tmp_path: pathlib.Path, monkeypatch) -> None:
    for name, value in tls.environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "x").write_bytes(b"x" * 3_000_000)
    for place in (f"swebhdfs://127.0.0.1:{tls.https_port}", tls.url):
        muster.run("fs", "put", "--force", tmp_path / "x", f"{place}/x")
        assert len(muster.run("fs", "cat", f"{place}/x")) == 3_000_000
    monkeypatch.delenv("SSL_CERT_FILE")
    said = muster.fail("fs", "ls", f"swebhdfs://127.0.0.1:{tls.https_port}/")
    assert "certificate" in said and len(said.splitlines()) == 1, said


@pytest.fixture(scope="module")
def secure_tls(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureTlsHdfs]:
    yield from run(SecureTlsHdfs(pathlib.Path(tmp_path_factory.mktemp("secure-tls")), kdc))


def test_tickets_and_tokens_by_tls(secure_tls, muster, tmp_path, monkeypatch) -> None:
    ticket = secure_tls.kdc.get_ticket("tester", secure_tls.user_keytab, tmp_path / "cache")
    for name, value in {**secure_tls.environment, **ticket}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "x").write_bytes(b"x" * 3_000_000)
    for place in (f"swebhdfs://localhost:{secure_tls.https_port}", secure_tls.url, "swebhdfs://", "hdfs:"):
        muster.run("fs", "put", "--force", tmp_path / "x", f"{place}/x")
        assert len(muster.run("fs", "cat", f"{place}/x")) == 3_000_000
    (made,) = muster.json("fs", "ls", "hdfs:/x")
    assert made["owner"] == "tester"
    muster.run("fs", "token", "get", "hdfs:/", tmp_path / "token")
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "none"))
    said = muster.fail("fs", "ls", "hdfs:/")
    assert "Kerberos for HTTP/localhost" in said and "kinit" in said
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "token"))
    assert len(muster.run("fs", "cat", "hdfs:/x")) == 3_000_000
