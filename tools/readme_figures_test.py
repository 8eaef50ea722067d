#!/usr/bin/env python3
"""README.md and its chart must not differ from the tables without being found out."""

import contextlib
import io
import re
import shutil
import tempfile
import unittest
from pathlib import Path

import readme_figures

ROOT = Path(__file__).resolve().parent.parent


class ReadmeFiguresTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        shutil.copytree(ROOT / "docs/benchmarks", self.root / "docs/benchmarks")
        empty = f"before\n{readme_figures.BEGIN}\n{readme_figures.END}\nafter\n"
        (self.root / "README.md").write_text(empty, encoding="utf-8")
        self.assertEqual(self.run_main("--fix")[0], 0)

    def run_main(self, *flags: str) -> tuple[int, str]:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = readme_figures.main([*flags, str(self.root)])
        return code, output.getvalue()

    def replace(self, name: str, old: str, new: str) -> None:
        path = self.root / name
        text = path.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path.write_text(text.replace(old, new), encoding="utf-8")

    def test_what_was_written_is_clean_and_the_rest_of_the_page_is_kept(self) -> None:
        self.assertEqual(self.run_main(), (0, ""))
        text = (self.root / "README.md").read_text(encoding="utf-8")
        self.assertTrue(text.startswith("before\n") and text.endswith("after\n"))

    def test_a_table_that_was_measured_again(self) -> None:
        self.replace("docs/benchmarks/train-tensorflow.md", "| 23.4x (", "| 17.9x (")
        code, said = self.run_main()
        self.assertEqual(code, 1)
        self.assertIn("README.md is not what docs/benchmarks says", said)
        self.assertIn("docs/images/speed.svg is not", said)
        self.assertEqual(self.run_main("--fix")[0], 0)
        self.assertIn("| 18x |", (self.root / "README.md").read_text(encoding="utf-8"))
        self.assertIn(">17.9x<", (self.root / "docs/images/speed.svg").read_text(encoding="utf-8"))
        self.assertEqual(self.run_main(), (0, ""))

    def test_a_number_that_was_changed_by_hand(self) -> None:
        text = (self.root / "README.md").read_text(encoding="utf-8")
        number = re.search(r"^\| \d+x", text, re.MULTILINE)
        assert number is not None
        self.replace("README.md", number[0], "| 99x")
        self.assertEqual(self.run_main()[0], 1)

    def test_a_row_that_has_gone(self) -> None:
        self.replace("docs/benchmarks/csv.md", "40 columns, 262 B a row", "41 columns")
        code, said = self.run_main()
        self.assertEqual(code, 1)
        self.assertIn("docs/benchmarks/csv.md has no row '40 columns, 262 B a row'", said)

    def test_a_page_without_its_marks(self) -> None:
        self.replace("README.md", readme_figures.END, "")
        code, said = self.run_main()
        self.assertEqual(code, 1)
        self.assertIn("README.md needs one line", said)

    def test_wrong_use(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(readme_figures.main(["--what"]), 2)


if __name__ == "__main__":
    unittest.main()
