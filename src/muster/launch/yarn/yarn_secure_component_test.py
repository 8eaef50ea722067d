"""Jobs on a real YARN that wants Kerberos tickets: the submitter has one, its job delegation tokens.

Its NodeManagers show and aggregate no output: on a secure Hadoop that needs a native library, which no jar has."""

from __future__ import annotations

import pathlib
import re
import shutil
import time
from collections.abc import Iterator

import pytest

from testbed.daemons import run
from testbed.hadoop.kerberos import REALM, Kdc
from testbed.hadoop.secure import SecureHdfs
from testbed.hadoop.secure_yarn import SecureYarn
from testbed.hadoop.yarn_jobs import YarnJobs
from testbed.hadoop.yarn_training import Training
from testbed.muster import Muster

TOKEN_SECONDS = 40  # the longest life of a delegation token


class ShortLived(SecureHdfs):
    def hdfs_site(self) -> dict[str, object]:
        return {
            **super().hdfs_site(),
            "dfs.namenode.delegation.token.renew-interval": TOKEN_SECONDS * 500,
            "dfs.namenode.delegation.token.max-lifetime": TOKEN_SECONDS * 1000,
        }


def start(kind: type[SecureHdfs], kdc: Kdc, folder: pathlib.Path) -> Iterator[SecureYarn]:
    for hdfs in run(kind(folder, kdc)):
        yield from run(SecureYarn(hdfs))


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    yield from run(Kdc(pathlib.Path(tmp_path_factory.mktemp("kdc")) / "realm"))


@pytest.fixture(scope="module")
def secure(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureYarn]:
    yield from start(SecureHdfs, kdc, pathlib.Path(tmp_path_factory.mktemp("secure")))


def make_jobs(muster: Muster, yarn: SecureYarn, jar: str, folder: pathlib.Path) -> YarnJobs:
    jobs = YarnJobs(muster.binary, folder, yarn, jar)
    jobs.environment |= yarn.hdfs.kdc.get_ticket("tester", yarn.hdfs.user_keytab, folder / "cache")
    jobs.environment["HADOOP_USER_NAME"] = "somebody"  # who has no ticket
    return jobs


@pytest.fixture
def jobs(muster: Muster, secure: SecureYarn, jar: str, tmp_path: pathlib.Path) -> Iterator[YarnJobs]:
    jobs = make_jobs(muster, secure, jar, tmp_path)
    yield jobs
    jobs.close()


@pytest.fixture(scope="module")
def training(muster: Muster, tmp_path_factory: pytest.TempPathFactory) -> Training:
    return Training(muster, pathlib.Path(tmp_path_factory.mktemp("training")))


def test_two_workers_train_with_the_tokens_of_the_submission(jobs: YarnJobs, training: Training) -> None:
    url = training.put(jobs, "trained")
    result = jobs.call(*training.on_yarn(url, "trained"))
    assert result.returncode == 0, result.stderr + jobs.logs()
    training.check(jobs, url)
    jobs.wait_until_nothing_runs("trained")
    assert jobs.app("trained")["user"] == "tester"
    assert re.search(r"^trained +succeeded", jobs.ok("list", "--on", "yarn"), re.MULTILINE)


def test_a_task_has_a_file_of_tokens_and_no_ticket(jobs: YarnJobs) -> None:
    said = jobs.folder / "said"
    script = (
        f'exec > {said}; cat "$HADOOP_TOKEN_FILE_LOCATION"; stat -L -c "key %a" .muster/token; '
        # YARN's own file of tokens has YARN's modes: the folder of the application keeps others out.
        'stat -c "tokens %a" "$(dirname "$HADOOP_TOKEN_FILE_LOCATION")/.."; '
        'echo "ticket $KRB5CCNAME.$KRB5_CLIENT_KTNAME"'
    )
    result = jobs.call("run", "--on", "yarn", "--memory", "128Mi", "--name", "tokens", "--", "sh", "-c", script)
    assert result.returncode == 0, result.stderr + jobs.logs()
    found = said.read_bytes()
    assert b"HDFS_DELEGATION_TOKEN" in found and b"YARN_AM_RM_TOKEN" not in found
    for name, closed in ((b"tokens", b"0"), (b"key", b"00")):
        mode = re.search(rb"%s (\d+)$" % name, found, re.MULTILINE)
        assert mode and mode[1].endswith(closed), found
    assert b"ticket .\n" in found


def refuse(jobs: YarnJobs) -> str:
    result = jobs.call("run", "--on", "yarn", "--detach", "--name", "bad", "--", "true")
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result.stderr
    assert not (jobs.home / "jobs" / "bad").exists()
    return result.stderr


def test_no_ticket_names_kinit(jobs: YarnJobs) -> None:
    jobs.environment["KRB5CCNAME"] = str(jobs.folder / "none")
    assert "kinit" in refuse(jobs)


def test_an_expired_ticket_names_kinit(jobs: YarnJobs, secure: SecureYarn) -> None:
    hdfs = secure.hdfs
    jobs.environment |= hdfs.kdc.get_ticket("tester", hdfs.user_keytab, jobs.folder / "short", "-l", "2s")
    time.sleep(3)
    said = refuse(jobs)
    assert "expired" in said and "kinit" in said


def test_a_realm_that_is_not_the_cluster_s(jobs: YarnJobs, kdc: Kdc) -> None:
    conf = (kdc.folder / "krb5.conf").read_text()
    (jobs.folder / "krb5.conf").write_text(conf.replace(f"localhost = {REALM}", "localhost = OTHER.TEST"))
    jobs.environment["KRB5_CONFIG"] = str(jobs.folder / "krb5.conf")
    said = refuse(jobs)
    assert "OTHER.TEST" in said and "kinit" in said


def test_a_ticket_that_only_the_resource_manager_refuses(jobs: YarnJobs, secure: SecureYarn) -> None:
    """Its host is not the one by which the realm knows it."""
    conf = jobs.folder / "conf"
    shutil.copytree(pathlib.Path(jobs.environment["HADOOP_CONF_DIR"]), conf)
    site = (conf / "yarn-site.xml").read_text()
    (conf / "yarn-site.xml").write_text(site.replace(f"localhost:{secure.http_port}", f"127.0.0.1:{secure.http_port}"))
    jobs.environment["HADOOP_CONF_DIR"] = str(conf)
    said = refuse(jobs)
    assert "Kerberos for HTTP/127.0.0.1" in said and "kinit" in said


def test_a_keytab_outlives_the_tokens(
    muster: Muster, kdc: Kdc, jar: str, tmp_path: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The coordinator writes its journal on HDFS, and a task reads from there, long after the tokens' end."""
    keytab = kdc.add("traveller")
    for yarn in start(ShortLived, kdc, pathlib.Path(tmp_path_factory.mktemp("short"))):
        jobs = make_jobs(muster, yarn, jar, tmp_path)
        jobs.environment |= kdc.get_ticket("traveller", keytab, tmp_path / "cache")
        script = f"sleep {TOKEN_SECONDS + 30}; .muster/programs/muster fs ls {yarn.hdfs.url}/"
        flags = ["--on", "yarn", "--memory", "128Mi", "--restarts", 0]
        result = jobs.call("run", *flags, "--name", "long", "--keytab", keytab, "--", "sh", "-c", script)
        assert result.returncode == 0, result.stderr + jobs.logs()
        jobs.close()
