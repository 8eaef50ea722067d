#!/usr/bin/env python3
"""The last line of a test run must not call a run good that was not."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import count_tests

GTEST = """<testsuites><testsuite name="A">
<testcase name="one" status="run" result="completed" classname="A" />
<testcase name="two" status="run" result="completed" classname="A"><failure message="x"/></testcase>
<testcase name="three" status="run" result="skipped" classname="A">
<skipped message="a.cc:1&#10;needs MUSTER_DATA"/></testcase>
<testcase name="DISABLED_four" status="notrun" result="suppressed" classname="A" />
</testsuite></testsuites>"""
PYTEST = """<testsuites><testsuite name="pytest">
<testcase classname="p" name="one"/>
<testcase classname="p" name="two"><error message="setup"/></testcase>
<testcase classname="p" name="three"><skipped message="needs MUSTER_DATA"/></testcase>
</testsuite></testsuites>"""


def ctest(*programs: tuple[str, str]) -> str:
    cases = "".join(f'<testcase name="{n}" classname="{n}" status="{s}"/>' for n, s in programs)
    return f"<testsuite>{cases}</testsuite>"


class CountTestsTest(unittest.TestCase):
    def run_main(self, files: dict[str, str], *flags: str) -> tuple[int, list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = Path(folder) / "unit" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                code = count_tests.main([*flags, str(Path(folder) / "unit")])
            return code, output.getvalue().splitlines()

    def test_cases_are_counted_instead_of_programs(self) -> None:
        files = {"ctest.xml": ctest(("unit.io", "fail"), ("check.format", "run"))}
        files["gtest/muster_io_test.xml"] = GTEST
        code, lines = self.run_main(files)
        self.assertEqual(code, 1)
        self.assertEqual(lines[-1], "2 passed, 1 failed, 1 skipped")
        self.assertIn("1 of the skipped need real data: set MUSTER_DATA", lines)
        self.assertIn("failed: A.two", lines)

    def test_pytest(self) -> None:
        code, lines = self.run_main({"pytest.xml": PYTEST})
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 1 skipped"))

    def test_a_second_outcome_alone_counts_and_is_named(self) -> None:
        passed = '<testsuite><testcase classname="p" name="two"/></testsuite>'
        code, lines = self.run_main({"pytest.xml": PYTEST, "pytest-alone.xml": passed})
        self.assertEqual((code, lines[-1]), (0, "2 passed, 0 failed, 1 skipped"))
        self.assertEqual(lines[0], "passed only alone, after a failure beside other tests: p.two")
        failed = {"pytest.xml": PYTEST, "pytest-alone.xml": passed.replace("/>", "><failure/></testcase>")}
        self.assertEqual(self.run_main(failed)[0], 1)
        other = {"pytest.xml": PYTEST, "pytest-alone.xml": passed.replace("two", "other")}
        self.assertEqual(self.run_main(other)[0], 1)

    def test_all_well(self) -> None:
        code, lines = self.run_main({"ctest.xml": ctest(("check.format", "run"))})
        self.assertEqual((code, lines), (0, ["1 passed, 0 failed, 0 skipped"]))

    def test_program_that_is_missing_or_crashed(self) -> None:
        for status in ("notrun", "fail"):
            code, lines = self.run_main({"ctest.xml": ctest(("unit.io", status))})
            self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed, 0 skipped"))

    def test_program_that_failed_after_its_cases(self) -> None:
        passed = '<testsuite><testcase name="one" status="run" classname="A"/></testsuite>'
        files = {"ctest.xml": ctest(("unit.io", "fail")), "gtest/muster_io_test.xml": passed}
        code, lines = self.run_main(files)
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))

    def test_run_that_did_not_happen(self) -> None:
        self.assertEqual(self.run_main({"failed": ""})[0], 1)
        empty = {"pytest.xml": "<testsuites><testsuite/></testsuites>"}
        self.assertEqual(self.run_main(empty)[0], 1)
        passed = {"pytest.xml": '<testsuite><testcase name="a" classname="b"/></testsuite>'}
        self.assertEqual(self.run_main(passed)[0], 0)
        self.assertEqual(self.run_main({**passed, "failed": ""})[0], 1)

    def test_phase_without_tests(self) -> None:
        passed = {"pytest.xml": '<testsuite><testcase name="a" classname="b"/></testsuite>'}
        code, lines = self.run_main(passed, "--failed-phase", "clang-tidy")
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))


if __name__ == "__main__":
    unittest.main()
