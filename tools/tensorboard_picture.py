#!/usr/bin/env python3
"""A picture of TensorBoard, docs/images/tensorboard.png: two trainings of clicks, and what their
evaluations said.

Needs a Python with TensorBoard (tools/requirements-component.txt) and a Chromium without a window, such
as Debian's chromium-headless-shell. The picture is of a browser, so no check compares it.

usage: tensorboard_picture.py MUSTER BROWSER      exit code 0 done, 1 failed, 2 wrong use
"""

import os
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from testbed.tensorboard import TensorBoard, serve  # noqa: E402

PICTURE = ROOT / "docs/images/tensorboard.png"
SPEC = ROOT / "examples/clicks/clicks.yaml"
TAGS = ("auc", "average_loss", "loss", "dnn/hiddenlayer_0/fraction_of_zero_values")
PAGE = "?darkMode=false#scalars&tagFilter=" + urllib.parse.quote(f"^({'|'.join(TAGS)})$", safe="")
RUNS = {
    "wide_deep": (),
    "smaller_steps": ("--set", "model.dnn.optimizer={adagrad: {learning_rate: 0.02}}"),
}
DEADLINE_SECONDS = 300


def run(*command: object, folder: Path) -> None:
    subprocess.run(
        [*map(str, command)], cwd=folder, check=True, capture_output=True, text=True,
        timeout=DEADLINE_SECONDS,
    )  # fmt: skip


def train(muster: str, folder: Path) -> None:
    for name, rows, seed in (("train", 200_000, 1), ("test", 20_000, 2)):
        run(muster, "sample", "clicks", "--rows", rows, "--seed", seed, "--out", f"{name}.csv",
            folder=folder)  # fmt: skip
    for name, flags in RUNS.items():
        run(muster, "train", SPEC, "--train", "train.csv", "--eval", "test.csv", "--save-steps", 200,
            "--eval-throttle-secs", 0, "--eval-start-delay-secs", 0, "--summary-steps", 50, *flags,
            "--model-dir", f"models/{name}", folder=folder)  # fmt: skip


def has_all(board: TensorBoard) -> bool:
    tags = board.get("plugin/scalars/tags")
    found = {tag for run_name in tags for tag in tags[run_name]}
    return len(tags) == 2 * len(RUNS) and set(TAGS) <= found


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = [shutil.which(argument) for argument in arguments]
    if None in found:
        print(f"no program {arguments[found.index(None)]}", file=sys.stderr)
        return 1
    muster, browser = (os.path.abspath(str(path)) for path in found)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            train(muster, folder)
            os.chdir(folder)  # the page shows the folder as it was given
            with serve(Path("models")) as board:
                board.wait(lambda: has_all(board))
                run(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                    "--virtual-time-budget=20000", "--window-size=1200,760",
                    f"--screenshot={PICTURE}", f"{board.address}/{PAGE}", folder=folder)  # fmt: skip
        except subprocess.CalledProcessError as error:
            print(f"{error}\n{error.stderr}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
