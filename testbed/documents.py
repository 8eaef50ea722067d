"""Runs the commands of README.md, docs/*.md and examples/*/README.md, as a reader would type them.

A fenced block is

- commands, if its language is `sh` or missing: they run in order, in one folder for the page;
- commands and their output, if its language is `console`: lines after `$ ` run, and must print the
  other lines. `...` stands for any lines. Numbers may differ by a hundredth, since processors round
  differently; rates, times, versions and names of jobs are not compared;
- a file, if its first line is `# NAME.py` or `# NAME.yaml`: it is written into the page's folder;
- otherwise, in another language (`text`, `yaml`, `python`, `diff`, ...), ignored.

Commands that are not run tell the reader so in their first line: `# Tested by PATH` names a test
that runs similar commands, `# Not tested: REASON` says why there is none.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import signal
import subprocess

ROOT = pathlib.Path(__file__).parent.parent
SHELL = ("", "sh", "console")
DEADLINE_SECONDS = 150
FENCE = re.compile(r"^( *)```(.*)$")
NAME = re.compile(r"^# ([\w.-]+\.(?:py|yaml))$")
NOT_RUN = re.compile(r"^# (?:Tested by (?P<test>\S+)$|Not tested: (?P<reason>.{10,}))")
# These differ from run to run: rates, times and sizes that are measured, and random names.
DRAWN = re.compile(
    r"\d[\d.]*[kMG]? (?:examples|rows)/s|\b\d+(?:\.\d+)?s\b|train-\w+-[0-9a-f]{6,}|"
    r"127\.0\.0\.1:\d+|muster-\w+-[0-9a-f]{6,}"
)
NUMBER = re.compile(r"\d+(?:\.\d+)?")
TOLERANCE = 0.01


@dataclasses.dataclass(frozen=True)
class Block:
    page: str  # relative to the repository's root
    line: int  # line of its fence, from 1
    language: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def first(self) -> str:
        return self.text.split("\n", 1)[0]

    @property
    def file(self) -> str | None:
        match = NAME.match(self.first)
        return match[1] if match and self.language not in SHELL else None

    @property
    def is_shell(self) -> bool:
        return self.language in SHELL

    @property
    def not_run(self) -> re.Match[str] | None:
        return NOT_RUN.match(self.first)


def pages() -> list[str]:
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    paths += sorted((ROOT / "examples").glob("*/README.md"))
    return [path.relative_to(ROOT).as_posix() for path in paths]


def blocks_of(page: str, text: str | None = None) -> list[Block]:
    """Returns all fenced blocks of a page; `text` is its text, if it is not to be read."""
    lines = ((ROOT / page).read_text(encoding="utf-8") if text is None else text).splitlines()
    blocks: list[Block] = []
    opened, language, indent, inside = 0, "", "", []
    for number, line in enumerate(lines, start=1):
        fence = FENCE.match(line)
        if fence is None:
            if opened:
                inside.append(line.removeprefix(indent))
        elif not opened:
            opened, language, indent, inside = number, fence[2].strip(), fence[1], []
        else:
            blocks.append(Block(page, opened, language, "\n".join(inside) + "\n"))
            opened = 0
    assert not opened, f"{page}:{opened}: a fence that is not closed"
    return blocks


def after_side(diff: str) -> str:
    """Returns the text that the reader has after applying a diff."""
    lines = [line for line in diff.splitlines() if not line.startswith("-")]
    return "\n".join(line[1:] for line in lines) + "\n"


def commands_of(block: Block) -> list[tuple[str, list[str] | None]]:
    """Returns each command with the lines that it must print; None if the page does not show its
    output."""
    if block.language != "console":
        return [(block.text, None)]
    commands: list[tuple[str, list[str] | None]] = []
    output: list[str] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            output = []
            commands.append((line[2:], output))
        elif commands and commands[-1][0].endswith("\\") and not output:
            commands[-1] = (commands[-1][0] + "\n" + line.removeprefix("> "), output)
        else:
            assert commands, f"{block.where}: output without a command"
            output.append(line)
    return commands


def same_line(said: str, wanted: str) -> bool:
    said, wanted = (re.sub(r"\s+", " ", DRAWN.sub("*", line)).strip() for line in (said, wanted))
    if NUMBER.sub("#", said) != NUMBER.sub("#", wanted):
        return False
    pairs = zip(NUMBER.findall(said), NUMBER.findall(wanted))
    return all(abs(float(a) - float(b)) <= TOLERANCE * abs(float(b)) for a, b in pairs)


def same_output(said: list[str], wanted: list[str]) -> bool:
    """`...` among the wanted lines stands for any lines."""
    if not wanted:
        return not said
    if wanted[0].strip() == "...":
        return any(same_output(said[i:], wanted[1:]) for i in range(len(said) + 1))
    return bool(said) and same_line(said[0], wanted[0]) and same_output(said[1:], wanted[1:])


def run(command: str, folder: pathlib.Path, environment: dict[str, str], where: str) -> str:
    """Runs a command with bash in `folder` and returns what it printed. Afterwards all its
    processes have ended."""
    process = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        said, errors = process.communicate(timeout=DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        said, errors = process.communicate(timeout=DEADLINE_SECONDS)
        raise AssertionError(
            f"{where}: longer than {DEADLINE_SECONDS} s\n{said}\n{errors}"
        ) from None
    assert process.returncode == 0, f"{where}: exit code {process.returncode}\n{said}\n{errors}"
    return said


def follow(
    page: str, folder: pathlib.Path, environment: dict[str, str], home: str = "/home/me"
) -> int:
    """Writes the page's files and runs its commands in order; returns how many blocks were run. In
    the output, `home` stands for the folder."""
    count = 0
    for block in blocks_of(page):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
        if not block.is_shell or block.not_run:
            continue
        for command, wanted in commands_of(block):
            said = run(command, folder, environment, block.where)
            if wanted is not None:
                lines = said.replace(str(folder), home).splitlines()
                assert same_output(
                    lines, wanted
                ), f"{block.where}: {command}\nprints\n{said}\nand not\n" + "\n".join(wanted)
        count += 1
    return count
