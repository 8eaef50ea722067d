#!/usr/bin/env python3
"""A terminal's picture shows what a terminal would, and a picture that was not drawn anew is found."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import terminal_picture


class TerminalPictureTest(unittest.TestCase):
    def shown(self, text: str) -> list[str]:
        screen = terminal_picture.Screen()
        screen.write(text)
        return screen.text()

    def test_a_line_of_progress_is_overwritten(self) -> None:
        self.assertEqual(self.shown("step 1\rstep 20\r\ndone\r\n"), ["step 20", "done"])
        self.assertEqual(self.shown("a long line\r\x1b[Kshort\r\n"), ["short"])

    def test_a_block_of_lines_is_written_anew(self) -> None:
        self.assertEqual(self.shown("a 1\r\nb 1\r\n\x1b[2Aa 2\r\nb 2\r\n"), ["a 2", "b 2"])
        self.assertEqual(self.shown("a\r\nb\r\nc\r\n\x1b[2A\x1b[Jend\r\n"), ["a", "end"])

    def test_colours_are_left_out_and_long_lines_wrap(self) -> None:
        columns = terminal_picture.COLUMNS
        self.assertEqual(self.shown("\x1b[36mname\x1b[0m x\r\n"), ["name x"])
        self.assertEqual(self.shown("x" * (columns + 1)), ["x" * columns, "x"])

    def test_what_was_typed_and_what_happened_stand_out(self) -> None:
        picture = terminal_picture.draw("$ a <b> & c\nsaid\n# killed\n")
        self.assertIn('<text class="typed"', picture)
        self.assertIn("$ a &lt;b> &amp; c</text>", picture)
        self.assertIn('<text class="event"', picture)

    def test_a_picture_of_another_text(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            text, picture = Path(folder, "terminal.txt"), Path(folder, "terminal.svg")
            text.write_text("$ one\n", encoding="utf-8")
            picture.write_text(terminal_picture.draw("$ one\n"), encoding="utf-8")
            with mock.patch.multiple(terminal_picture, TEXT=text, PICTURE=picture):
                self.assertEqual(terminal_picture.main([]), 0)
                text.write_text("$ two\n", encoding="utf-8")
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    self.assertEqual(terminal_picture.main([]), 1)
                self.assertIn("terminal.svg is not drawn from terminal.txt", said.getvalue())


if __name__ == "__main__":
    unittest.main()
