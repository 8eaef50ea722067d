#!/usr/bin/env python3
"""A picture of a terminal, docs/images/terminal.svg: two workers train, one is killed, and the weights
are those of a training in which nobody was.

With --muster BINARY it runs the commands of SESSION in a pseudo terminal, writes what the screen then
shows to docs/images/terminal.txt, and draws it. Without a flag it checks that the picture is drawn from
that file, and fails if not.

usage: terminal_picture.py [--muster BINARY]      exit code 0 done, 1 failed, 2 wrong use
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT, PICTURE = ROOT / "docs/images/terminal.txt", ROOT / "docs/images/terminal.svg"
COLUMNS, DEADLINE_SECONDS = 100, 300
KILLED_AT_STEP = 2000
TRAIN = "muster train clicks.yaml --train 'data/part-*' --workers 2 --batch-size 512 --epochs 15 --model-dir "
COMPARE = "cmp {{model,unbroken}}/{} && echo 'the same bytes'"
ANOTHER_TERMINAL = "# meanwhile, in another terminal: kill -9 {}   (worker-0)"


class Screen:
    """The lines of a terminal after what was written to it: text, CR, LF, cursor up and down, erase.
    Colours are left out."""

    def __init__(self) -> None:
        self.lines: list[str] = [""]
        self.row = self.column = 0

    def write(self, text: str) -> None:
        for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x1b]|\x1b", text):
            if part.startswith("\x1b["):
                self.control(part[2:-1], part[-1])
            elif part == "\r":
                self.column = 0
            elif part == "\n":
                self.row += 1
                self.column = 0
                self.lines += [""] * (self.row + 1 - len(self.lines))
            elif part >= " ":
                self.put(part)

    def put(self, character: str) -> None:
        if self.column == COLUMNS:
            self.write("\n")
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
        self.column += 1

    def control(self, numbers: str, kind: str) -> None:
        count = int(numbers) if numbers.isdigit() else 1
        if kind == "A":
            self.row = max(0, self.row - count)
        elif kind == "B":
            self.row = min(len(self.lines) - 1, self.row + count)
        elif kind == "G":
            self.column = count - 1
        elif kind == "K":
            line = self.lines[self.row]
            self.lines[self.row] = "" if numbers == "2" else line[: self.column]
        elif kind == "J":
            self.lines[self.row] = self.lines[self.row][: self.column]
            del self.lines[self.row + 1 :]

    def text(self) -> list[str]:
        lines = [line.rstrip() for line in self.lines]
        while lines and not lines[-1]:
            lines.pop()
        return lines


def find_task(task: str, home: Path) -> tuple[int, int]:
    """Process and step of a task of the job whose record is in `home`; (0, 0) if there is none yet."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            entries = path.read_text(errors="replace").split("\0")
            command = path.with_name("cmdline").read_text(errors="replace").split("\0")
        except OSError:  # it has ended, or is another user's
            continue
        values = dict(entry.split("=", 1) for entry in entries if "=" in entry)
        mine = values.get("MUSTER_TASK") == task and values.get("MUSTER_HOME") == str(home)
        if mine and "worker" in command:
            steps = Path(values["MUSTER_STEP_FILE"])
            words = steps.read_text().split() if steps.exists() else []
            return int(path.parent.name), int(words[0]) if words else 0
    return 0, 0


def run(command: str, folder: Path, environment: dict[str, str], kill: str = "") -> list[str]:
    """What a terminal shows of it. `kill`: a task that gets kill -9 in the middle of its training."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execvpe("bash", ["bash", "-c", command], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    before: list[str] = []  # what the terminal showed when the task was killed, and that it was
    screen, shown, end = Screen(), "", time.monotonic() + DEADLINE_SECONDS
    try:
        while True:
            if kill:
                victim, step = find_task(kill, folder / "home")
                if step >= KILLED_AT_STEP:
                    os.kill(victim, signal.SIGKILL)
                    # Rows that are written again are from here on written below.
                    before = [*screen.text(), ANOTHER_TERMINAL.format(victim)]
                    screen, kill = Screen(), ""
            if time.monotonic() > end:
                raise TimeoutError(f"{command}: still runs after {DEADLINE_SECONDS} s")
            if not select.select([terminal], [], [], 0.02 if kill else 1)[0]:
                continue
            try:
                text = os.read(terminal, 65536).decode(errors="replace")
            except OSError:  # its end
                break
            shown += text
            screen.write(text)
    except BaseException:
        os.kill(process, signal.SIGTERM)
        raise
    finally:
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        os.close(terminal)
    if code != 0 or kill:
        raise RuntimeError(f"{command}: exit code {code}\n{shown}")
    return before + screen.text()


def record(binary: Path) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bin").mkdir()
        (folder / "bin/muster").symlink_to(binary.resolve())
        (folder / "clicks.yaml").symlink_to(ROOT / "examples/clicks/clicks.yaml")
        environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "TERM": "xterm"}
        environment.update(MUSTER_HOME=str(folder / "home"), NO_COLOR="1")
        for command in (
            "muster sample clicks --rows 200000 --seed 1 --out clicks.csv",
            "muster records from-csv clicks.csv --spec clicks.yaml --out data --shards 4",
            TRAIN + "unbroken",
        ):
            subprocess.run(
                ["bash", "-c", command], cwd=folder, env=environment, check=True,
                capture_output=True, timeout=DEADLINE_SECONDS,
            )  # fmt: skip
        newest = max(
            folder.glob("unbroken/model.ckpt-*.data-*"), key=lambda path: path.stat().st_mtime
        )
        lines = []
        for command, kill in (
            (TRAIN + "model", "worker-0"),
            (COMPARE.format(newest.name), ""),
        ):
            lines += ["$ " + command, *run(command, folder, environment, kill)]
        return "\n".join(lines).replace(name, "~") + "\n"


STYLE = """
  .panel { fill: #f6f8fa; stroke: #d0d7de }
  .text { fill: #1f2328 }
  .typed { fill: #0969da; font-weight: 600 }
  .event { fill: #cf222e; font-weight: 600 }
  .quiet { fill: #d0d7de }
  @media (prefers-color-scheme: dark) {
    .panel { fill: #0d1117; stroke: #3d444d }
    .text { fill: #f0f6fc }
    .typed { fill: #4493f8 }
    .event { fill: #ff7b72 }
    .quiet { fill: #3d444d }
  }
"""
CHARACTER, LINE, MARGIN, TOP = 7.8, 18, 16, 44


def kind_of(line: str) -> str:
    return "typed" if line.startswith("$ ") else "event" if line.startswith("# ") else "text"


def draw(text: str) -> str:
    pieces = [
        (kind_of(line), line[begin : begin + COLUMNS])
        for line in text.splitlines()
        for begin in range(0, len(line) or 1, COLUMNS)
    ]
    width = round(COLUMNS * CHARACTER + 2 * MARGIN)
    height = TOP + LINE * len(pieces) + MARGIN // 2
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace" '
        'font-size="13">',
        f"<style>{STYLE}</style>",
        "<title>A worker is killed, and the training ends with the same weights</title>",
        f'<rect class="panel" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>',
    ]
    out += [f'<circle class="quiet" cx="{20 + 18 * i}" cy="18" r="6"/>' for i in range(3)]
    for index, (kind, piece) in enumerate(pieces):
        escaped = piece.replace("&", "&amp;").replace("<", "&lt;")
        length = f' textLength="{len(piece) * CHARACTER:.1f}"' if piece else ""
        out.append(
            f'<text class="{kind}" x="{MARGIN}" y="{TOP + LINE * index + 8}"{length} '
            f'xml:space="preserve">{escaped}</text>'
        )
    return "\n".join([*out, "</svg>"]) + "\n"


def main(arguments: list[str]) -> int:
    if arguments and (len(arguments) != 2 or arguments[0] != "--muster"):
        print(__doc__, file=sys.stderr)
        return 2
    if arguments:
        TEXT.write_text(record(Path(arguments[1])), encoding="utf-8")
        PICTURE.write_text(draw(TEXT.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    if not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != draw(
        TEXT.read_text(encoding="utf-8")
    ):
        print(
            f"error: {PICTURE.name} is not drawn from {TEXT.name}: tools/terminal_picture.py --muster BINARY"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
