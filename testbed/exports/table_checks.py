"""Each accepted model is exported, and each refused one refused, for the reason that it should."""

from __future__ import annotations

import functools
import json
import pathlib
import re

import muster.keras
from testbed.exports import accepted, refused


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
