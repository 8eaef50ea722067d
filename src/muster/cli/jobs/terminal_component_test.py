"""What a person sees on a terminal: a real one, of 80 columns, made by Python's pty module."""

from __future__ import annotations

import fcntl
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import termios
import time

import pytest

SPEC = """
inputs: {x: float, y: int}
label: y
columns: {x: {numeric: x}}
model: {type: linear, linear: {columns: [x], optimizer: {ftrl: {learning_rate: 0.1}}}}
train: {batch_size: 4, epochs: 3000}
"""
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
COLOR = re.compile(r"\x1b\[[0-9;]*m")
SECONDS = 300


class Screen:
    """Rows of a terminal, with what programs write there: text, CR, LF, and the sequences A, J, K."""

    def __init__(self, columns: int):
        self.columns, self.row, self.column = columns, 0, 0
        self.wide: set[str] = set()  # rows that the terminal would wrap
        self.rows: list[str] = [""]

    def write(self, text: str) -> None:
        for part in re.split(r"(\x1b\[[0-9;]*[A-Za-z]|[\r\n])", text):
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self.row, self.column = self.row + 1, 0
                self.rows += [""] * (self.row + 1 - len(self.rows))
            elif part.startswith("\x1b["):
                self.control(part[-1], int(part[2:-1].split(";")[0] or 1))
            else:
                line = self.rows[self.row].ljust(self.column)
                end = self.column + len(part)
                self.rows[self.row] = line[: self.column] + part + line[end:]
                self.column = end
                if end > self.columns:
                    self.wide.add(self.rows[self.row])

    def control(self, kind: str, number: int) -> None:
        if kind == "A":
            self.row = max(0, self.row - number)
        elif kind == "K":
            self.rows[self.row] = self.rows[self.row][: self.column]
        elif kind == "J":
            self.rows = [*self.rows[: self.row], self.rows[self.row][: self.column]]
        else:
            assert kind == "m", kind


class Session:
    """A command on a terminal."""

    def __init__(self, command: list[object], columns: int = 80, **environment: str):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        clean = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        self.process = subprocess.Popen(
            list(map(str, command)), stdin=slave, stdout=slave, stderr=slave, close_fds=True,
            env={**clean, "TERM": "xterm", **environment},
        )  # fmt: skip
        os.close(slave)
        self.screen = Screen(columns)
        self.text = ""
        self.states: list[list[str]] = []
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if not select.select([master], [], [], 1)[0]:
                continue
            try:
                piece = os.read(master, 65536).decode(errors="replace")
            except OSError:  # the last writer has closed it
                break
            if not piece:
                break
            self.text += piece
            self.screen.write(piece)
            self.states.append(list(self.screen.rows))
        os.close(master)
        self.returncode = self.process.wait(timeout=60)


@pytest.fixture()
def place(tmp_path: pathlib.Path, monkeypatch) -> pathlib.Path:
    (tmp_path / "spec.yaml").write_text(SPEC)
    (tmp_path / "rows.csv").write_text("x,y\n" + "1,1\n-1,0\n" * 10)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    return tmp_path


def train(muster, *more: object) -> list[object]:
    return [muster.binary, "train", "spec.yaml", "model", "--train", "rows.csv", *more]


def test_a_training_is_one_line_that_fits_and_ends_with_what_to_do_next(muster, place) -> None:
    session = Session(train(muster, "--max-steps", 20000), columns=60)
    assert session.returncode == 0, session.text
    assert not [row for row in session.screen.wide if "train  step" in row]
    progress = [row for row in session.screen.rows if row.startswith("train  step ")]
    assert len(progress) == 1 and len(progress[0]) < 60
    end = "\n".join(session.screen.rows)
    assert end.count("Next: muster evaluate model --data GLOB") == 1
    assert "      muster tensorboard model" in end


def test_a_job_is_one_block_of_rows_that_is_gone_at_its_end(muster, place) -> None:
    session = Session(train(muster, "--workers", 2, "--max-steps", 15000))
    assert session.returncode == 0, session.text
    row = re.compile(r"^  (chief-0|worker-0) +(running|starting|pending|succeeded)")
    assert not list(filter(row.match, session.screen.wide))
    blocks = [[line for line in state if row.match(line)] for state in session.states]
    assert max(map(len, blocks)) == 2  # never twice
    assert any(len(block) == 2 and "step" in block[0] for block in blocks), session.text
    assert not any(row.match(line) for line in session.screen.rows)
    end = "\n".join(session.screen.rows)
    assert "chief-0  | Trained at step 15000" in end
    assert "| train  step" not in end and "each alone" not in session.text
    assert end.count("Next:") == 1
    assert COLOR.search(session.text)


def test_no_color_leaves_the_block_without_colours(muster, place) -> None:
    session = Session(train(muster, "--workers", 2, "--max-steps", 200), NO_COLOR="1")
    assert session.returncode == 0, session.text
    assert not COLOR.search(session.text)


def test_a_dumb_terminal_gets_lines(muster, place) -> None:
    session = Session(train(muster, "--workers", 2, "--max-steps", 200), TERM="dumb")
    assert session.returncode == 0, session.text
    assert not ESCAPES.search(session.text)
    assert "chief-0  | Trained at step 200" in session.text


def test_a_file_gets_plain_lines(muster, place) -> None:
    result = muster.call(*train(muster, "--workers", 2, "--max-steps", 200)[1:])
    assert result.returncode == 0
    assert not ESCAPES.search(result.stdout + result.stderr)
    assert "Next:" not in result.stdout + result.stderr
    assert "chief-0  | Trained at step 200" in result.stdout


def test_rows_are_counted_while_they_are_converted(muster, place) -> None:
    muster.run("sample", "clicks", "--rows", 150000, "--out", "clicks.csv")
    inputs = "inputs: {label: int, I1: {type: float, default: 0}}\nlabel: label\ncolumns: {I1: {numeric: I1}}\n"
    (place / "clicks.yaml").write_text(SPEC.replace(SPEC[: SPEC.index("model:")], inputs).replace(
        "columns: [x]", "columns: [I1]"))  # fmt: skip
    stats = Session([muster.binary, "records", "stats", "clicks.csv", "--spec", "clicks.yaml"])
    assert stats.returncode == 0, stats.text
    convert = Session([muster.binary, "records", "from-csv", "clicks.csv", "--spec", "clicks.yaml",
                       "--out", "data"])  # fmt: skip
    assert convert.returncode == 0, convert.text
    end = "\n".join(convert.screen.rows)
    assert "Next: muster records stats" in end and "muster train SPEC model --train" in end
    assert not [row for row in convert.screen.wide | stats.screen.wide if "rows/s" in row]
