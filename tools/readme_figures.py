#!/usr/bin/env python3
"""The measured numbers of README.md and docs/images/speed.svg, taken from the tables of docs/benchmarks.

Without a flag it checks that both are what the tables say today, and fails naming the file that is not.
With --fix it writes both. A figure names a row of a table by its first cell, so a row that is renamed or
removed is an error here.

usage: readme_figures.py [--fix] [ROOT]      exit code 0 as the tables say, 1 not so, 2 wrong use
"""

import dataclasses
import math
import re
import sys
from pathlib import Path

CHART = Path("docs/images/speed.svg")
BEGIN = "<!-- Written by tools/readme_figures.py from docs/benchmarks: change it there. -->"
END = "<!-- The end of what tools/readme_figures.py writes. -->"


class Mismatch(Exception):
    """A table, README.md or the chart is not as the others say."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """A median with the range of its rounds, such as `23.4x (22.3x to 24.4x)`."""

    median: str
    low: str
    high: str

    def number(self) -> float:
        return float(re.sub(r"[^\d.]", "", self.median))

    def bounds(self) -> tuple[float, float]:
        low, high = (float(re.sub(r"[^\d.]", "", text)) for text in (self.low, self.high))
        return low, high


@dataclasses.dataclass(frozen=True)
class Bar:
    what: str
    against: str
    table: str  # docs/benchmarks/TABLE.md
    row: str


BARS = (
    Bar("CSV to TFRecord", "pandas and tf.train.Example", "csv", "40 columns, 262 B a row"),
    Bar("train wide & deep, batch 40", "tf.estimator", "train-tensorflow", "batch 40"),
    Bar("a Keras training by 3 workers", "MultiWorkerMirroredStrategy", "keras",
        "a job of 3 workers, 500 steps; MultiWorkerMirrored's"),
    Bar("train by 2 replicas and a ps", "tf.estimator", "distributed",
        "Adult: examples/s, ps-async; tf.estimator"),
    Bar("score rows of TFRecord", "tf.estimator", "predict", "predict, as it is by default"),
    Bar("train a Keras wide & deep, batch 40", "Keras fit", "keras",
        "wide & deep of 8 columns, batch 40: CPU a step; `fit`"),
    Bar("train wide & deep, batch 512", "tf.estimator", "train-tensorflow", "batch 512"),
    Bar("train DeepFM, batch 512", "PyTorch", "click-models", "DeepFM, batch 512"),
    Bar("train wide & deep, batch 512", "PyTorch, from memory", "train-pytorch", "batch 512, eager"),
    Bar("train 845-1024-512-256, batch 512", "PyTorch, from memory", "deep",
        "batch 512, fp32 and eager"),
    Bar("train a Keras conv net (MNIST)", "Keras fit", "keras", "MNIST, batch 64: CPU a step; `fit`"),
)  # fmt: skip


def read_table(root: Path, name: str) -> dict[str, list[str]]:
    """By first cell: the cells of each row of docs/benchmarks/NAME.md, the head under ""."""
    path = root / "docs" / "benchmarks" / f"{name}.md"
    rows: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            rows.setdefault(cells[0], cells)
        elif line.startswith("|  |"):
            rows[""] = [cell.strip() for cell in line.strip("|").split("|")]
    return rows


def find(root: Path, table: str, row: str, column: str) -> Cell:
    """`column` is a part of the column's head, such as "Muster" or "/" for the ratio."""
    rows = read_table(root, table)
    if row not in rows:
        raise Mismatch(f"docs/benchmarks/{table}.md has no row '{row}', which README.md shows")
    columns = [i for i, head in enumerate(rows.get("", [])) if column in head]
    if not columns:
        raise Mismatch(f"docs/benchmarks/{table}.md has no column of '{column}'")
    text = rows[row][columns[0]]
    match = re.fullmatch(r"(.+?) \((.+?) to (.+?)\)", text)
    if match is None:
        raise Mismatch(f"docs/benchmarks/{table}.md: row '{row}': '{text}' is no median and range")
    return Cell(*match.groups())


RATIO = "uster /"  # "Muster / peer"; the tables where less is better have "peer / Muster"
RATIO_OF_TIMES = "/ Muster"


def find_ratio(root: Path, table: str, row: str) -> Cell:
    heads = read_table(root, table).get("", [])
    turned = any(RATIO_OF_TIMES in head for head in heads)
    return find(root, table, row, RATIO_OF_TIMES if turned else RATIO)


def seconds(cell: Cell) -> str:
    """`156 ms` as `0.16 s`."""
    return f"{cell.number() / 1000:.2f} s"


def whole(cell: Cell) -> str:
    """`23.4x` as `23x`."""
    return f"{cell.number():.0f}x"


def numbers(root: Path) -> str:
    """The three numbers of README.md."""
    small, large = (find_ratio(root, "train-tensorflow", f"batch {size}") for size in (40, 512))
    job = "a job of 3 workers, 500 steps; MultiWorkerMirrored's"
    ours, peer = find(root, "keras", job, "Muster, "), find(root, "keras", job, "the other")
    killed = find(
        root, "recovery", "all-reduce, 3 replicas: worker-0 killed, stands still", "Muster"
    )
    low, high = (f"{value / 1000:.2f}" for value in killed.bounds())
    return "\n".join(
        [
            f"| {whole(small)} | {peer.median} → {ours.median} | {seconds(killed)} |",
            "| :---: | :---: | :---: |",
            "| as many examples per CPU second as tf.estimator trains: a wide & deep model from "
            "TFRecord files in batches of 40 rows. "
            f"In batches of 512 rows it is {whole(large)} "
            "([how](docs/benchmarks/train-tensorflow.md)) | "
            "a Keras model trained by 3 workers for 500 steps, from the command to the last exit: "
            "MultiWorkerMirroredStrategy, and Muster ([how](docs/benchmarks/keras.md)) | "
            f"from `kill -9` of a worker to the next step, {low} to {high}; the final weights are "
            "the same to the bit ([how](docs/benchmarks/recovery.md)) |",
            "",
            f"![How many times as fast as what people use now]({CHART})",
        ]
    )


STYLE = """
  .panel { fill: #ffffff; stroke: #d0d7de }
  .text { fill: #1f2328 }
  .quiet { fill: #59636e }
  .grid { stroke: #d0d7de }
  .one { stroke: #59636e }
  .bar { fill: #0969da }
  .range { stroke: #1f2328; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    .panel { fill: #0d1117; stroke: #3d444d }
    .text { fill: #f0f6fc }
    .quiet { fill: #9198a1 }
    .grid { stroke: #3d444d }
    .one { stroke: #9198a1 }
    .bar { fill: #4493f8 }
    .range { stroke: #f0f6fc }
  }
"""
WIDTH, LEFT, RIGHT, TOP, ROW = 840, 300, 60, 74, 40
TICKS = (1, 2, 5, 10, 20, 50, 100)


def place(ratio: float) -> float:
    """x of a ratio: logarithmic from 1 to 100; what is slower than the peer is left of 1."""
    width = WIDTH - LEFT - RIGHT
    return LEFT + width * math.log10(max(ratio, 0.8)) / math.log10(TICKS[-1])


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def chart(root: Path) -> str:
    ratios = [(bar, find_ratio(root, bar.table, bar.row)) for bar in BARS]
    ratios.sort(key=lambda pair: -pair[1].number())
    bottom = TOP + ROW * len(ratios)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 34}" '
        f'width="{WIDTH}" font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
        f"<style>{STYLE}</style>",
        "<title>How many times as fast as what people use now</title>",
        f'<rect class="panel" x="0.5" y="0.5" width="{WIDTH - 1}" height="{bottom + 33}" rx="6"/>',
        '<text class="text" x="16" y="28" font-size="16" font-weight="600">'
        "How many times as fast as what people use now</text>",
        '<text class="quiet" x="16" y="48" font-size="12">Median, and the range of the rounds, on two '
        "cores; logarithmic; 1x is the same speed. Tables: docs/benchmarks</text>",
    ]
    for tick in TICKS:
        x = f"{place(tick):.1f}"
        kind = "one" if tick == 1 else "grid"
        out.append(f'<line class="{kind}" x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{bottom}"/>')
        out.append(
            f'<text class="quiet" x="{x}" y="{bottom + 18}" font-size="12" '
            f'text-anchor="middle">{tick}x</text>'
        )
    for index, (bar, ratio) in enumerate(ratios):
        y = TOP + ROW * index
        low, high = (place(value) for value in ratio.bounds())
        begin, end = sorted((place(1), place(ratio.number())))
        middle = y + 14.5
        out += [
            f'<text class="text" x="16" y="{y + 12}" font-size="13">{escape(bar.what)}</text>',
            f'<text class="quiet" x="16" y="{y + 28}" font-size="12">against {escape(bar.against)}'
            "</text>",
            f'<rect class="bar" x="{begin:.1f}" y="{y + 4}" width="{end - begin:.1f}" height="21" '
            'rx="2"/>',
            f'<line class="range" x1="{low:.1f}" y1="{middle}" x2="{high:.1f}" y2="{middle}"/>',
            f'<text class="text" x="{max(high, end) + 8:.1f}" y="{y + 19}" font-size="13" '
            f'font-weight="600">{ratio.median}</text>',
        ]
    return "\n".join([*out, "</svg>"]) + "\n"


def split_readme(text: str) -> tuple[str, str, str]:
    """What is before the numbers, the numbers, what is after them."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise Mismatch(f"README.md needs one line '{BEGIN}' and one '{END}'")
    before, rest = text.split(BEGIN + "\n")
    inside, after = rest.split(END)
    return before + BEGIN + "\n", inside, END + after


def update(root: Path, fix: bool) -> list[str]:
    """The files that differ from what the tables say; with `fix` they have been written."""
    wrong = []
    readme = root / "README.md"
    before, inside, after = split_readme(readme.read_text(encoding="utf-8"))
    wanted = {readme: before + numbers(root) + "\n" + after, root / CHART: chart(root)}
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            wrong.append(str(path.relative_to(root)))
            if fix:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    return wrong


def main(arguments: list[str]) -> int:
    fix = "--fix" in arguments
    places = [argument for argument in arguments if argument != "--fix"]
    if len(places) > 1 or any(argument.startswith("-") for argument in places):
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(places[0]) if places else Path(__file__).resolve().parent.parent
    try:
        wrong = update(root, fix)
    except Mismatch as error:
        print(f"error: {error}")
        return 1
    for name in wrong:
        if fix:
            print(f"{name}: written")
        else:
            print(f"error: {name} is not what docs/benchmarks says: tools/readme_figures.py --fix")
    return 1 if wrong and not fix else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
