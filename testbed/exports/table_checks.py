"""Each accepted model is exported, and each refused one is refused for the right reason."""

from __future__ import annotations

import functools
import json
import pathlib
import re

import numpy as np

import muster.keras
from muster.keras.verify import Session
from testbed.exports import accepted, made_up, refused


def _accept(name: str, folder: pathlib.Path) -> None:
    case = accepted.CASES[name]()
    before = [variable.numpy() for variable in case.model.variables]
    muster.keras.export(case.model, case.optimizer, case.loss, folder / "out", **case.options)
    manifest = json.loads((folder / "out/model.json").read_text())
    assert sorted(path.name for path in folder.iterdir()) == ["out"], "nothing else is left"
    for variable, value in zip(case.model.variables, before):
        assert (variable.numpy() == value).all(), f"{variable.path} was changed"
    kinds = [v["kind"] for v in manifest["variables"]]
    assert kinds.count("table") == accepted.TABLES.get(name, 0), kinds
    assert len(manifest["lookups"]) >= kinds.count("table")
    _check_as_a_worker(folder / "out", 0.02 if "16" in name else 1e-4)


def _check_as_a_worker(export: pathlib.Path, tolerance: float) -> None:
    """The step is the same with TensorFlow's graph optimizations, in one thread."""
    arguments = made_up.arguments(export)
    with Session(str(export)) as session:
        for signature in ("step", "step_whole", "predict", "evaluate"):
            if not session.has(signature):
                continue
            want = session.run(signature, arguments)
            have = made_up.run_as_a_worker(export, signature, arguments)
            for key, value in want.items():
                allowed = tolerance * max(1.0, float(np.max(np.abs(value), initial=0)))
                assert np.max(np.abs(have[key] - value), initial=0) <= allowed, (signature, key)


def _refuse(name: str, folder: pathlib.Path) -> None:
    make, reason = refused.CASES[name]
    try:
        case = make()
        muster.keras.export(case.model, case.optimizer, case.loss, folder / "out", **case.options)
    except ValueError as error:
        assert re.search(reason, str(error)), f"another reason: {error}"
        assert not list(folder.iterdir()), "something is left"
        return
    raise AssertionError("it was exported")


CHECKS = {
    **{f"accepts_{name}": functools.partial(_accept, name) for name in accepted.CASES},
    **{f"refuses_{name}": functools.partial(_refuse, name) for name in refused.CASES},
}
