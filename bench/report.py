"""A benchmark's result as a committed table."""

import datetime
import os
import platform
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.measure import Series, count, times


def in_unit(unit: str, digits: int = 0) -> Callable[[float], str]:
    """A form of figures for Row."""
    return lambda value: f"{value:.{digits}f} {unit}"


@dataclass
class Row:
    what: str
    ours: Series
    peer: Series | None = None
    goal: float | None = None  # the ratio at least this; without a peer: ours at most this
    form: Callable[[float], str] = count
    least: float | None = None  # without a peer: ours at least this
    less_is_better: bool = False  # the ratio is peer / ours, else ours / peer; in all rows alike

    def cells(self) -> list[str]:
        ours = self.ours.text(self.form)
        if self.peer is None:
            goal = f"at most {self.form(self.goal)}" if self.goal else ""
            if self.least:
                goal = f"at least {self.form(self.least)}"
            return [self.what, ours, "", "", goal, self.verdict()]
        ratio = self.ratio(self.peer).text(times)
        goal = f"{self.goal:g}x" if self.goal else ""
        return [self.what, ours, self.peer.text(self.form), ratio, goal, self.verdict()]

    def ratio(self, peer: Series) -> Series:
        return peer.over(self.ours) if self.less_is_better else self.ours.over(peer)

    def verdict(self) -> str:
        if self.peer is None and self.least is not None:
            return "met" if self.ours.median >= self.least else "MISSED"
        if self.goal is None:
            return ""
        if self.peer is None:
            return "met" if self.ours.median <= self.goal else "MISSED"
        return "met" if self.ratio(self.peer).median >= self.goal else "MISSED"


@dataclass
class Report:
    name: str
    title: str
    method: str  # what was run on both sides, and how it was measured
    peer: str  # name and version
    unit: str
    rows: list[Row] = field(default_factory=list)
    same: list[str] = field(default_factory=list)  # what shows that both computed the same thing

    def markdown(self, rounds: int) -> str:
        ratio = "peer / Muster" if any(row.less_is_better for row in self.rows) else "Muster / peer"
        head = ["", f"Muster, {self.unit}", self.peer, ratio, "goal", ""]
        table = [head, ["---"] * len(head), *(row.cells() for row in self.rows)]
        how = f"Median (range) of {rounds} rounds"
        if self.peer:
            how += ", both sides interleaved; ratios are taken round by round"
        else:
            table = [cells[:2] + cells[4:] for cells in table]
        lines = [
            f"# {self.title}",
            "",
            self.method.strip(),
            "",
            *("| " + " | ".join(cells) + " |" for cells in table),
            "",
            f"{how}.",
            "",
            *(f"- {line}" for line in self.same),
            f"- Machine: {machine()}.",
            f"- Measured {datetime.date.today()} at {revision()}; again with `bench/run {self.name}`.",
        ]
        return "\n".join(lines) + "\n"

    def write(self, root: Path, rounds: int) -> Path:
        path = root / "docs" / "benchmarks" / f"{self.name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.markdown(rounds), encoding="utf-8")
        return path


def machine() -> str:
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (
        f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, Linux {platform.release()}, "
        f"load {load:.1f} at the end"
    )


def revision() -> str:
    words = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "an unknown revision"
