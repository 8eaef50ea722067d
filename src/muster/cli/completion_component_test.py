"""Completion in a real shell, and the manual pages: both are made from the verbs themselves."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pytest

# Completes LINE as bash does when Tab is pressed: COMPREPLY, one a line.
BASH = r"""
source <("$1" completion bash) || exit 1
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
complete -p muster > /dev/null || exit 1
_muster
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture()
def complete(muster, tmp_path, monkeypatch):
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    (tmp_path / "home/jobs/train-a1").mkdir(parents=True)
    (tmp_path / "home/jobs/train-a1/journal").write_text("")
    (tmp_path / "here/data").mkdir(parents=True)
    (tmp_path / "here/spec.yaml").write_text("")

    def run(*words: str) -> set[str]:
        program = tmp_path / "muster"
        if not program.exists():
            program.symlink_to(muster.binary)
        result = subprocess.run(
            ["bash", "--norc", "-c", BASH, "bash", str(program), str(program), *words],
            cwd=tmp_path / "here",
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert result.stderr == ""
        return set(result.stdout.split())

    return run


def test_verbs_and_flags_in_bash(complete) -> None:
    assert complete("tra") == {"train"}
    assert complete("records", "from") == {"from-csv", "from-idx"}
    assert {"train", "doctor", "status"} <= complete("")
    assert not {"agent", "man", "complete", "supervise"} & complete("")
    assert complete("train", "--max-s") == {"--max-steps"}
    assert complete("train", "--set", "a=1", "--eval-t") == {"--eval-throttle-secs"}
    assert "--hook-calls" not in complete("evaluate", "--")
    assert complete("status", "--w") == {"--watch"}


def test_values_files_and_jobs_in_bash(complete) -> None:
    assert complete("predict", "--format", "") == {"csv", "jsonl", "tfrecord"}
    assert complete("train", "--precision", "b") == {"bf16"}
    assert complete("completion", "") == {"bash", "zsh", "fish"}
    assert complete("train", "s") == {"spec.yaml"}
    assert complete("train", "spec.yaml", "--train", "") == {"spec.yaml", "data"}
    assert complete("evaluate", "") == {"data"}
    assert complete("evaluate", "--model-dir", "d") == {"data"}
    assert complete("status", "") >= {"train-a1"}
    assert complete("tensorboard", "") >= {"train-a1", "data"}
    assert complete("run", "--", "s") == {"spec.yaml"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_sound_where_its_shell_is_installed(shell, muster, tmp_path) -> None:
    script = tmp_path / f"muster.{shell}"
    script.write_text(muster.run("completion", shell))
    assert "complete -- " in script.read_text()
    if shutil.which(shell):
        subprocess.run([shell, "-n", str(script)], check=True, timeout=60)


def test_each_verb_has_a_manual_page(muster, tmp_path: pathlib.Path) -> None:
    muster.run("man", tmp_path / "man1")
    pages = {path.name for path in (tmp_path / "man1").iterdir()}
    assert {"muster.1", "muster-train.1", "muster-records-from-csv.1", "muster-doctor.1"} <= pages
    assert not {"muster-agent.1", "muster-man.1"} & pages
    page = (tmp_path / "man1/muster-train.1").read_text()
    assert page.startswith('.TH MUSTER-TRAIN 1 "" "muster ')
    assert r"\-\-keep\-checkpoint\-hours" in page and ".SH NAME\nmuster\\-train \\- Train" in page
    if shutil.which("man"):
        shown = subprocess.run(
            ["man", "--warnings", "-P", "cat", str(tmp_path / "man1/muster-train.1")],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env={**os.environ, "MANWIDTH": "100"},
        )
        assert shown.stderr == "" and "--max-steps N" in shown.stdout
