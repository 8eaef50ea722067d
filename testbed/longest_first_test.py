"""Test files are started in the order of the time that they take."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from testbed import longest_first

ROOT = pathlib.Path(__file__).parents[1]


def test_a_file_that_was_never_run_is_guessed() -> None:
    assert longest_first.expected("a_test.py", 3, {"a_test.py": 7.5}) == 7.5
    assert longest_first.expected("b_test.py", 3, {"a_test.py": 7.5}) == 3
    assert longest_first.expected("src/yarn/b_test.py", 3, {}) == 63


def test_the_files_of_a_cluster_go_to_one_process() -> None:
    files = {
        "hdfs_a": 5.0, "yarn_b": 9.0, "kafka_c": 7.0, "kafka_d": 1.0, "kubernetes_e": 3.0, "plain_f": 20.0, "plain_g": 2.0,
    }  # fmt: skip
    started: dict[str, set[str]] = {"one": set(), "two": set()}
    ran: dict[str, list[str]] = {"one": [], "two": []}
    while files:
        for process, other in (("one", "two"), ("two", "one")):
            if not files:
                break
            file = longest_first.choose(files, started[process], started[other])
            started[process] |= {longest_first.cluster_of(file)} - {""}
            ran[process].append(file)
            del files[file]
    assert ran == {
        "one": ["yarn_b", "hdfs_a", "kubernetes_e", "plain_g"],
        "two": ["kafka_c", "kafka_d", "plain_f"],
    }


def test_the_longest_runs_first_and_times_are_kept(tmp_path: pathlib.Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    log = tmp_path / "log"
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"{name}_test.py").write_text(
            f"import time\ndef test() -> None:\n    open({str(log)!r}, 'a').write('{name}')\n"
            f"    time.sleep({0.5 if name == 'c' else 0.01})\n"
        )
    cache = tmp_path / "cache"
    environment = {**os.environ, "MUSTER_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-n1", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    for order in ("abcd", "c"):
        log.write_text("")
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout
        seconds = longest_first.read(cache / "test-file-seconds.json")
        assert sorted(seconds) == ["a_test.py", "b_test.py", "c_test.py", "d_test.py"]
        assert max(seconds, key=lambda file: seconds[file]) == "c_test.py"
        assert log.read_text().startswith(order)


def test_a_damaged_record_of_times_is_as_none(tmp_path: pathlib.Path) -> None:
    (tmp_path / "damaged").write_text("{")
    assert longest_first.read(tmp_path / "damaged") == {}
    assert longest_first.read(tmp_path / "missing") == {}
