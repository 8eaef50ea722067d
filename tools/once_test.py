#!/usr/bin/env python3
"""once.sh runs a test program again when a byte of it or of its inputs has changed, and only then."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ONCE = Path(__file__).resolve().parent / "once.sh"
PROGRAM = """#!/usr/bin/env bash
echo run >>"$RUNS"
if ! mkdir "$TEST_TMPDIR/a"; then exit 4; fi
[[ -z ${MEANWHILE:-} ]] || eval "$MEANWHILE"
[[ ! -e "$FAIL" ]] || exit 3
echo "<testsuites/>" >"${GTEST_OUTPUT#xml:}/$(basename "$0").xml"
"""


class OnceTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.results = self.root / "results"
        self.program = self.root / "a_test"
        self.program.write_text(PROGRAM, encoding="utf-8")
        self.program.chmod(0o755)
        self.inputs = self.root / "testdata"
        self.inputs.mkdir()

    def run_once(self, **environment: str) -> int:
        self.results.mkdir(exist_ok=True)
        variables = {
            **os.environ,
            "MUSTER_CACHE": str(self.root / "cache"),
            "GTEST_OUTPUT": f"xml:{self.results}/",
            "RUNS": str(self.root / "runs"),
            "FAIL": str(self.root / "fail"),
            **environment,
        }
        command = [str(ONCE), str(self.program), str(self.inputs), str(self.root / "missing")]
        return subprocess.run(command, env=variables, capture_output=True, check=False).returncode

    def runs(self) -> int:
        file = self.root / "runs"
        return len(file.read_text(encoding="utf-8").split()) if file.exists() else 0

    def test_what_has_passed_is_not_run_again_and_is_counted(self) -> None:
        self.assertEqual(self.run_once(), 0)
        (self.results / "a_test.xml").unlink()
        self.assertEqual(self.run_once(), 0)
        self.assertEqual(self.runs(), 1)
        self.assertTrue((self.results / "a_test.xml").exists())

    def test_what_has_changed_is_run(self) -> None:
        self.run_once()
        self.program.write_text(PROGRAM + "\n", encoding="utf-8")
        self.run_once()
        self.assertEqual(self.runs(), 2)
        (self.inputs / "new").write_text("1", encoding="utf-8")
        self.run_once()
        self.assertEqual(self.runs(), 3)
        self.run_once(MUSTER_RUN_AGAIN="1")
        self.assertEqual(self.runs(), 4)

    def test_another_checkout_of_the_same_program_has_passed_too(self) -> None:
        self.run_once()
        other = self.root / "other"
        other.mkdir()
        self.program = self.program.rename(other / "a_test")
        self.inputs = self.inputs.rename(other / "testdata")
        self.run_once()
        self.assertEqual(self.runs(), 1)

    def test_what_has_failed_is_run_again(self) -> None:
        (self.root / "fail").touch()
        self.assertEqual(self.run_once(), 3)
        self.assertEqual(self.run_once(), 3)
        self.assertEqual(self.runs(), 2)

    def test_results_of_a_run_beside_it_are_not_kept(self) -> None:
        other = self.results / "a_test.xml"
        self.run_once(MEANWHILE=f"echo '<failure/>' >{other}")
        self.assertNotIn("failure", other.read_text(encoding="utf-8"))
        other.unlink()
        self.run_once()
        self.assertEqual(self.runs(), 1)
        self.assertNotIn("failure", other.read_text(encoding="utf-8"))

    def test_two_runs_share_no_temporary_folder(self) -> None:
        mark = self.root / "mark"
        again = f"[[ -e {mark} ]] || {{ touch {mark}; {ONCE} $0 || exit 5; }}"
        self.assertEqual(self.run_once(MEANWHILE=again), 0)
        self.assertEqual(self.runs(), 2)

    def test_without_a_place_for_results_it_runs(self) -> None:
        self.run_once()
        self.run_once(GTEST_OUTPUT="")
        self.assertEqual(self.runs(), 2)


if __name__ == "__main__":
    unittest.main()
