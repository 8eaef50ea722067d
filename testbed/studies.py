"""Small studies of `muster tune` for component tests, and what their folders say."""

from __future__ import annotations

import json
import pathlib
import random
from typing import Any

MODEL = """
inputs: {x: float, city: string, y: int}
label: y
columns:
  x: {numeric: x}
  city: {vocabulary: city, words: [a, b, c]}
  city_embedding: {embedding: city, dimension: 4}
model:
  type: wide_deep
  linear: {columns: [city], optimizer: {ftrl: {learning_rate: 0.1}}}
  dnn: {columns: [x, city_embedding], hidden_units: [8, 4], optimizer: {adagrad: {learning_rate: 0.05}}}
train: {batch_size: 16, epochs: 4, seed: 3}
"""


def write_model(folder: pathlib.Path) -> None:
    """Writes model.yaml and rows.csv, 600 rows from which it learns something."""
    (folder / "model.yaml").write_text(MODEL)
    draw = random.Random(1)
    rows = []
    for _ in range(600):
        x, city = draw.gauss(0, 1), draw.choice("abc")
        rows.append(f"{x:.4f},{city},{int(x + draw.gauss(0, 1) > 0)}\n")
    (folder / "rows.csv").write_text("x,city,y\n" + "".join(rows))


def read_events(study: pathlib.Path) -> list[dict[str, Any]]:
    """The journal, without the checksums and times, and without a line that a kill has cut."""
    journal = study / "study.log"
    lines = journal.read_text().split("\n") if journal.exists() else [""]
    events = [json.loads(line[9:]) for line in lines[:-1]]
    for event in events:
        for drawn in ("seconds", "elapsed"):
            event.pop(drawn, None)
    return events


def read_trials(study: pathlib.Path) -> list[dict[str, Any]]:
    """What the journal says of each trial, without times."""
    trials: dict[int, dict[str, Any]] = {}
    for event in read_events(study):
        kind = event.pop("event")
        if kind == "trial":
            begun = {name: event.get(name) for name in ("point", "member", "parent")}
            assert event["trial"] not in trials
            trials[event["trial"]] = {**begun, "reports": [], "ends": []}
        elif kind in ("report", "end"):
            trials[event["trial"]][f"{kind}s"].append(event)
    assert list(trials) == list(range(len(trials)))
    return list(trials.values())


def checkpoint_bytes(folder: pathlib.Path, step: int) -> bytes:
    """The tensors of a checkpoint. A save that was repeated after a kill has its files in other names."""
    paths = sorted(folder.glob(f"model.ckpt-{step}.data-*"))
    assert paths and (folder / f"model.ckpt-{step}.index").exists(), f"no checkpoint {step} in {folder}"
    return b"".join(path.read_bytes() for path in paths)
