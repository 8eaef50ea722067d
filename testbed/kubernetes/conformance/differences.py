"""What Muster's operator and Kubeflow's controller did differently, and what of that is meant.

common-differences.yaml and those for the files of jobs list what is meant, each with the reason:

  paths     where, as `conformance_component_test.py` prints it; "*" stands for anything
  cases     in which TFJobs (all); steps: after which step
  muster, kubeflow  regular expressions of the values; "-": it is not there
  why       the fault that is mended by it
  sometimes true: a race decides whether it occurs

Any other entry must occur with each of its paths in each of its cases.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import re

from testbed.kubernetes.api import Object
from testbed.kubernetes.conformance.jobs import read


@dataclasses.dataclass(frozen=True)
class Difference:
    case: str
    step: str  # "0" after the job was made, then by number; "end" for events
    path: str
    muster: str  # "-": it is not there
    kubeflow: str

    def __str__(self) -> str:
        return f"{self.case} {self.step} {self.path}: {self.muster} | {self.kubeflow}"


class Permitted:
    """An entry of such a list."""

    def __init__(self, entry: Object):
        self.paths: list[str] = entry["paths"]
        self.cases: list[str] = entry.get("cases", ["*"])
        self.steps = str(entry.get("steps", "*"))
        self.muster: str | None = entry.get("muster")
        self.kubeflow: str | None = entry.get("kubeflow")
        self.why: str = entry["why"]
        self.unused: set[tuple[str, str]] = set()
        if not entry.get("sometimes", False):
            self.unused = {(case, path) for case in self.cases for path in self.paths}

    def takes(self, difference: Difference) -> bool:
        for value, pattern in ((difference.muster, self.muster), (difference.kubeflow, self.kubeflow)):
            if pattern is not None and not re.fullmatch(pattern, value):
                return False
        if not fnmatch.fnmatchcase(difference.step, self.steps):
            return False
        fits = [
            (case, path)
            for case in self.cases
            for path in self.paths
            if fnmatch.fnmatchcase(difference.case, case)
            and fnmatch.fnmatchcase(difference.path, path)
        ]
        self.unused -= set(fits)
        return bool(fits)


def get_object(path: str) -> str:
    """ "pods/TASK", of which all other paths of that pod are parts."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in ("pods", "services") else parts[0]


def shorten(muster: Object, kubeflow: Object) -> tuple[Object, Object]:
    """An object that only one of both has is one difference."""
    objects = [{get_object(path) for path in side} for side in (muster, kubeflow)]
    alone = {
        name for name in objects[0] ^ objects[1] if name.startswith(("pods/", "services/", "podgroup"))
    }
    shortened = []
    for side, have in zip((muster, kubeflow), objects):
        left = {path: value for path, value in side.items() if get_object(path) not in alone}
        shortened.append(left | {name: "there" for name in alone & have})
    return shortened[0], shortened[1]


def compare(case: str, step: str, muster: Object, kubeflow: Object) -> list[Difference]:
    muster, kubeflow = shorten(muster, kubeflow)
    return [
        Difference(case, step, path, str(muster.get(path, "-")), str(kubeflow.get(path, "-")))
        for path in sorted(muster.keys() | kubeflow.keys())
        if muster.get(path) != kubeflow.get(path)
    ]


def judge(differences: list[Difference], *files: str) -> list[str]:
    """What is wrong: differences that are not listed, and entries that do not occur any more."""
    permitted = [Permitted(entry) for file in files for entry in read(file)]
    unlisted = [
        each for each in differences if not any([entry.takes(each) for entry in permitted])
    ]
    wrong = [f"not listed: {each}" for each in unlisted]
    for entry in permitted:
        for case, path in sorted(entry.unused):
            wrong.append(f"listed, but does not occur: {case} {path} ({entry.why})")
    return wrong
