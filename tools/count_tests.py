#!/usr/bin/env python3
"""Sums the test results under the given folders and prints the last lines of a test run.

A folder holds JUnit XML: `ctest.xml` of ctest with, in `gtest/`, one file of googletest a program
(then its cases are counted instead of the program), or `pytest.xml` with, in `pytest-alone.xml`, the
second outcome of tests that failed and ran again on their own; such a test that then passed is named
and counts as passed. A program that failed without a failed case (it crashed, or a sanitizer spoke at
its end) counts as one failure, and so does a folder without results, or one with a file `failed`
beside results that know of no failure: a run that did not happen has not passed.

The last line is `N passed, N failed, N skipped`. Exit code 0 when all is well, 1 on any failure
and when nothing ran at all.
"""

import argparse
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

WANT_DATA = "needs MUSTER_DATA"


@dataclass
class Count:
    passed: int = 0
    names_passed: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    skipped: int = 0
    skipped_for_data: int = 0
    passed_alone: list[str] = field(default_factory=list)

    def add_case(self, name: str, case: ElementTree.Element) -> None:
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            self.failures.append(name)
        elif skipped is not None:
            self.skipped += 1
            reason = skipped.get("message", "") + (skipped.text or "")
            self.skipped_for_data += WANT_DATA in reason
        elif case.get("status") not in ("notrun", "disabled"):  # googletest's DISABLED_ cases
            self.passed += 1
            self.names_passed.append(name)

    def add_cases(self, file: Path) -> bool:
        """Every case of a googletest or pytest file; whether one of them failed."""
        before = len(self.failures)
        for case in ElementTree.parse(file).iter("testcase"):
            self.add_case(f"{case.get('classname')}.{case.get('name')}", case)
        return len(self.failures) > before

    def replace_failures(self, file: Path) -> None:
        """Of tests that have failed and ran a second time, the second outcome counts."""
        second = Count()
        second.add_cases(file)
        for name in second.names_passed:
            if name in self.failures:
                self.failures.remove(name)
                self.passed += 1
                self.passed_alone.append(name)

    def add_ctest(self, folder: Path) -> None:
        for program in ElementTree.parse(folder / "ctest.xml").iter("testcase"):
            name = program.get("name", "")
            cases = folder / "gtest" / f"muster_{name.removeprefix('unit.')}_test.xml"
            passed = program.get("status") == "run"
            if cases.exists():
                if not self.add_cases(cases) and not passed:
                    self.failures.append(f"{name} (the program failed outside its cases)")
            elif passed:
                self.passed += 1
            else:
                self.failures.append(name)

    def add_folder(self, folder: Path) -> None:
        before = len(self.failures)
        if (folder / "ctest.xml").exists():
            self.add_ctest(folder)
        elif (folder / "pytest.xml").exists():
            self.add_cases(folder / "pytest.xml")
            if (folder / "pytest-alone.xml").exists():
                self.replace_failures(folder / "pytest-alone.xml")
        else:
            self.failures.append(f"{folder.name}: no results")
        if (folder / "failed").exists() and len(self.failures) == before:
            self.failures.append(f"{folder.name}: the run itself failed")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--failed-phase", action="append", default=[], metavar="TITLE")
    flags = parser.parse_args(arguments)
    total = Count(failures=flags.failed_phase)
    for folder in flags.folders:
        total.add_folder(folder)
    if total.passed == 0 and not total.failures:
        total.failures.append("no test ran")
    for name in total.passed_alone:
        print(f"passed only alone, after a failure beside other tests: {name}")
    for failure in total.failures:
        print(f"failed: {failure}")
    if total.skipped_for_data:
        print(f"{total.skipped_for_data} of the skipped need real data: set MUSTER_DATA")
    print(f"{total.passed} passed, {len(total.failures)} failed, {total.skipped} skipped")
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
