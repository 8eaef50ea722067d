"""Completion in a real shell, and the manual pages: both are made from the verbs themselves."""

from __future__ import annotations

import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

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


# The same in fish, which completes a line that is given.
FISH = """
$argv[1] completion fish | source
complete -C (string join ' ' -- muster $argv[2..-1])
"""
# A terminal on which zsh is typed into; the list of what it finds is not asked about.
ZSH = """PS1= PS2= ; unsetopt prompt_sp prompt_cr; bindkey -e; LISTMAX=10000
autoload -Uz compinit && compinit -u -D && source <(muster completion zsh); echo READY$((1 + 1))
"""
DEADLINE_SECONDS = 60.0


class Zsh:
    """An interactive zsh. Keys are read one after the other: what follows a Tab is read when the
    completion has ended."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.process, self._terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvp("zsh", ["zsh", "-f", "-i"])
        size = struct.pack("HHHH", 500, 200, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)
        self._type(ZSH)
        self._read_until("READY2")

    def complete(self, line: str) -> str:
        """What is shown when Tab is pressed after the line: the line, and below it what fits."""
        self._type(f"{line}\t\t\x01: \n")  # the line becomes an argument of `:`
        self._type("echo DONE$((1 + 1))\n")
        return self._read_until("DONE2")

    def close(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self._terminal)

    def _type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def _read_until(self, mark: str) -> str:
        text, deadline = "", time.monotonic() + DEADLINE_SECONDS
        while mark not in text:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self._terminal], [], [], left)[0], text
            text += os.read(self._terminal, 65536).decode(errors="replace")
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]", "", text)


@pytest.fixture()
def place(muster, tmp_path, monkeypatch) -> pathlib.Path:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))  # fish writes there
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    (tmp_path / "home/jobs/train-a1").mkdir(parents=True)
    (tmp_path / "home/jobs/train-a1/journal").write_text("")
    (tmp_path / "here/data").mkdir(parents=True)
    (tmp_path / "here/spec.yaml").write_text("")
    (tmp_path / "muster").symlink_to(muster.binary)
    return tmp_path


def run_shell(place: pathlib.Path, *command: str) -> list[str]:
    result = subprocess.run(command, cwd=place / "here", capture_output=True, text=True,
                            timeout=DEADLINE_SECONDS, check=True)  # fmt: skip
    assert result.stderr == ""
    return result.stdout.splitlines()


@pytest.fixture()
def complete(place):
    def run(*words: str) -> set[str]:
        program = str(place / "muster")
        return set(run_shell(place, "bash", "--norc", "-c", BASH, "bash", program, program, *words)) - {""}

    return run


def test_verbs_and_flags_in_bash(complete) -> None:
    assert complete("tra") == {"train"}
    assert complete("records", "from") == {"from-batches", "from-csv", "from-idx", "from-parquet"}
    assert {"train", "doctor", "status"} <= complete("")
    assert not {"agent", "man", "complete", "supervise"} & complete("")
    assert complete("train", "--max-s") == {"--max-steps"}
    assert complete("train", "--set", "a=1", "--eval-t") == {"--eval-throttle-secs"}
    assert "--hook-calls" not in complete("evaluate", "--")
    assert complete("status", "--w") == {"--watch"}


def test_values_files_and_jobs_in_bash(complete) -> None:
    assert complete("predict", "--format", "") == {"batches", "csv", "jsonl", "tfrecord"}
    assert complete("train", "--precision", "b") == {"bf16"}
    assert complete("completion", "") == {"bash", "zsh", "fish"}
    assert complete("train", "s") == {"spec.yaml"}
    assert complete("train", "spec.yaml", "--train", "") == {"spec.yaml", "data"}
    assert complete("evaluate", "") == {"data"}
    assert complete("evaluate", "--model-dir", "d") == {"data"}
    assert complete("status", "") >= {"train-a1"}
    assert complete("tensorboard", "") >= {"train-a1", "data"}
    assert complete("run", "--", "s") == {"spec.yaml"}


def test_verbs_flags_values_files_and_jobs_in_fish(place) -> None:
    def complete(*words: str) -> set[str]:
        lines = run_shell(place, "fish", "-N", "-c", FISH, str(place / "muster"), *words)
        return {line.split("\t")[0] for line in lines}

    assert complete("tra") == {"train"}
    assert complete("records", "from") == {"from-batches", "from-csv", "from-idx", "from-parquet"}
    assert {"doctor"} <= complete("d") and "supervise" not in complete("s")
    assert complete("train", "--max-s") == {"--max-steps"}
    assert complete("predict", "--format", "j") == {"jsonl"}
    assert complete("train", "--precision", "b") == {"bf16"}
    assert complete("train", "sp") == {"spec.yaml"}
    assert complete("evaluate", "--model-dir", "d") == {"data/"}
    assert "train-a1" in complete("status", "train")


def test_verbs_flags_values_files_and_jobs_in_zsh(place) -> None:
    zsh = Zsh(place / "here")
    try:
        assert "muster train " in zsh.complete("muster tra")
        assert {"from-csv", "from-idx"} <= set(zsh.complete("muster records from").split())
        assert "--max-steps" in zsh.complete("muster train --max-s")
        assert {"csv", "jsonl", "tfrecord"} <= set(zsh.complete("muster predict --format ").split())
        assert "bf16" in zsh.complete("muster train --precision b")
        assert "spec.yaml" in zsh.complete("muster train sp")
        assert ": muster evaluate --model-dir data" in zsh.complete("muster evaluate --model-dir d")
        assert "train-a1" in zsh.complete("muster status train")
        flags = zsh.complete("muster evaluate --")
        assert "--model-dir" in flags and "--hook-calls" not in flags
    finally:
        zsh.close()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_sound(shell, muster, tmp_path) -> None:
    script = tmp_path / f"muster.{shell}"
    script.write_text(muster.run("completion", shell))
    assert "complete -- " in script.read_text()
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
