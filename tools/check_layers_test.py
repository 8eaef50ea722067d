#!/usr/bin/env python3
"""The checker must find what it is there to find: each case makes a small tree with one fault."""

import tempfile
import unittest
from pathlib import Path

import check_layers

CMAKE = """
# muster_layer(ghost) is only a comment
muster_layer(base LIBRARIES absl::status)
muster_layer(io DEPENDS base)
muster_layer(data DEPENDS io
             LIBRARIES z)
muster_layer(data/csv DEPENDS data)
"""
HEADER = "#pragma once\nnamespace muster::io {\n}\n"


class CheckLayersTest(unittest.TestCase):
    def errors(self, files: dict[str, str], cmake: str = CMAKE) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            source = root / "src" / "muster"
            for name, text in {"CMakeLists.txt": cmake, "io/io.h": HEADER, **files}.items():
                path = source / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return check_layers.check_tree(root)[0]

    def assert_one(self, errors: list[str], *words: str) -> None:
        self.assertEqual(len(errors), 1, errors)
        for word in words:
            self.assertIn(word, errors[0])

    def test_includes_that_point_down_are_clean(self) -> None:
        text = '#include "muster/io/io.h"\n#include "muster/base/a.h"\n#include "zlib.h"\n'
        files = {"data/csv/a.cc": text + "namespace muster::data::csv {\n}\n"}
        self.assertEqual(self.errors(files), [])

    def test_include_that_points_up(self) -> None:
        files = {"io/a.cc": '#include "muster/data/a.h"\nnamespace muster::io {\n}\n'}
        self.assert_one(self.errors(files), "io/a.cc:1", "layer io may not use data")

    def test_include_of_a_subfolder_that_is_a_higher_layer(self) -> None:
        files = {"data/a.cc": '#include "muster/data/csv/a.h"\nnamespace muster::data {\n}\n'}
        self.assert_one(self.errors(files), "data may not use data/csv")

    def test_layer_that_reaches_what_it_must_not(self) -> None:
        for folder in ("io", "base"):
            cmake = CMAKE + f"muster_layer(score DEPENDS data NEVER_DEPENDS {folder})\n"
            self.assert_one(self.errors({}, cmake), f"score reaches {folder}")
        clean = CMAKE + "muster_layer(score DEPENDS data NEVER_DEPENDS data/csv)\n"
        self.assertEqual(self.errors({}, clean), [])
        unknown = CMAKE + "muster_layer(score DEPENDS data NEVER_DEPENDS ps)\n"
        self.assert_one(self.errors({}, unknown), "NEVER_DEPENDS ps is no layer")

    def test_thread_in_a_layer_declared_without(self) -> None:
        cmake = CMAKE.replace("muster_layer(io", "muster_layer(io NO_THREADS")
        files = {"io/a.cc": "namespace muster::io {\nstd::mutex lock;\n}\n"}
        self.assert_one(self.errors(files, cmake), "io/a.cc:2", "std::mutex", "NO_THREADS")
        self.assertEqual(self.errors(files), [])

    def test_thread_in_a_test_declared_to_have_one(self) -> None:
        cmake = CMAKE + "muster_layer(score DEPENDS io ONE_THREAD a_test.cc)\n"
        files = {"score/a_test.cc": "namespace muster::score {\nstd::jthread other;\n}\n"}
        self.assert_one(self.errors(files, cmake), "score/a_test.cc:2", "std::jthread", "ONE_THREAD")
        self.assertEqual(self.errors({"score/b_test.cc": files["score/a_test.cc"], **{
            "score/a_test.cc": "namespace muster::score {\n}\n"}}, cmake), [])
        self.assert_one(self.errors({}, cmake), "ONE_THREAD a_test.cc does not exist")

    def test_files_opened_without_looking_at_the_scheme(self) -> None:
        text = "namespace muster::data {\nauto files = io::NewLocalFileSystem();\n}\n"
        self.assert_one(self.errors({"data/a.cc": text}), "data/a.cc:2", "files::OpenFileSystems")
        self.assertEqual(self.errors({"data/a_test.cc": text}), [])

    def test_relative_include(self) -> None:
        files = {"data/a.cc": '#include "../io/io.h"\nnamespace muster::data {\n}\n'}
        self.assert_one(self.errors(files), "data/a.cc:1", "relative")
        files = {"io/a.cc": '#include "io.h"\nnamespace muster::io {\n}\n'}
        self.assert_one(self.errors(files), "io/a.cc:1", "relative")

    def test_test_file_in_no_target(self) -> None:
        files = {"data/tfrecord/a_test.cc": "namespace muster::data {\n}\n"}
        self.assert_one(self.errors(files), "data/tfrecord/a_test.cc", "no target builds it")

    def test_header_without_pragma_once(self) -> None:
        self.assert_one(self.errors({"io/b.h": "namespace muster::io {\n}\n"}), "#pragma once")

    def test_wrong_namespace(self) -> None:
        errors = self.errors({"io/b.cc": "namespace muster::data {\n}\nnamespace muster::io {\n}\n"})
        self.assert_one(errors, "io/b.cc:1", "namespace muster::data")

    def test_base_does_not_speak_for_others(self) -> None:
        text = "namespace muster {\nnamespace internal {\n}\n}\n"
        self.assertEqual(self.errors({"base/b.cc": text}), [])
        errors = self.errors({"base/b.cc": text + "namespace muster::io {\n}\n"})
        self.assert_one(errors, "base/b.cc:5", "namespace muster::io")

    def test_no_namespace(self) -> None:
        self.assert_one(self.errors({"io/b.h": "#pragma once\nint b;\n"}), "nothing in namespace muster::io")

    def test_layer_that_depends_on_a_later_one(self) -> None:
        cmake = "muster_layer(base DEPENDS io)\nmuster_layer(io DEPENDS base)\n"
        self.assert_one(self.errors({}, cmake), "layer base depends on io")

    def test_a_room_shares_its_layers_namespace(self) -> None:
        cmake = CMAKE.replace("muster_layer(data/csv", "muster_layer(data/csv ROOM")
        files = {"data/csv/a.cc": "namespace muster::data {\n}\n"}
        self.assertEqual(self.errors(files, cmake), [])
        self.assert_one(self.errors(files), "namespace muster::data in the folder")

    def test_tests_alone_use_the_layers_that_are_for_them(self) -> None:
        cmake = CMAKE.replace("(io DEPENDS base", "(io DEPENDS base TESTS_USE data")
        text = '#include "muster/data/a.h"\nnamespace muster::io {\n}\n'
        self.assertEqual(self.errors({"io/a_test.cc": text}, cmake), [])
        self.assert_one(self.errors({"io/a.cc": text}, cmake), "layer io may not use data")

    def test_path_in_the_architecture_that_does_not_exist(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "src/muster/io").mkdir(parents=True)
            (root / "src/muster/io/io.h").write_text(HEADER, encoding="utf-8")
            (root / "src/muster/CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
            named = "`io/io.h`, `io/*.h`, `src/muster/io/`, `io.h`; `FOLDER/part` is no path\n"
            for gone in ("io/gone.h", "io/gone", "gone/", "io/gone_*.cc", "gone.cc"):
                (root / "ARCHITECTURE.md").write_text(f"{named}see `{gone}`\n", encoding="utf-8")
                errors = check_layers.check_tree(root)[0]
                self.assert_one(errors, "ARCHITECTURE.md:2", f"`{gone}`")

    def test_table_of_layers_in_the_architecture(self) -> None:
        rows = ["| `base` | strings | |", "| `io` | files | `base` |", "| `data` | rows | `io` |",
                "| `data/csv` | CSV | `data` |"]  # fmt: skip
        faults = {
            "no row of the layer `io`": [rows[0], *rows[2:]],
            "`io` has a row already": [*rows, rows[1]],
            "`io` depends on ['base'], the row says []": [rows[0], "| `io` | files | |", *rows[2:]],
            "the row of `data` has 5 cells": [*rows[:2], rows[2] + " CSV | `data` |", rows[3]],
        }
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for folder_of_layer in ("io", "data/csv"):
                (root / "src/muster" / folder_of_layer).mkdir(parents=True)
            (root / "src/muster/io/io.h").write_text(HEADER, encoding="utf-8")
            (root / "src/muster/CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
            for fault, table in {"": rows, **faults}.items():
                (root / "ARCHITECTURE.md").write_text("\n".join(table) + "\n", encoding="utf-8")
                errors = check_layers.check_tree(root)[0]
                self.assertEqual(errors, []) if not fault else self.assertIn(fault, "\n".join(errors))

    def test_no_layers_at_all(self) -> None:
        self.assertTrue(self.errors({}, "add_library(muster)\n"))


if __name__ == "__main__":
    unittest.main()
