#!/usr/bin/env python3
"""Runs clang-tidy over the unity files of build/lint, several at a time; see tools/lint.sh.

A unity file's key is the SHA-256 of what the preprocessor makes of it, of .clang-tidy and of clang-tidy's
version. A file of that name in the folder --clean says that it was clean.
Exit code 0 when all are clean, 1 when one is not, 2 when there is none to read.
"""

import argparse
import concurrent.futures
import hashlib
import json
import shlex
import subprocess
import sys
from pathlib import Path

TIDY = ["clang-tidy-14", "--quiet", "-p", "build/lint"]


def layer_of(source: str) -> str:
    """build/lint/.../CMakeFiles/muster_formats.dir/Unity/x.cxx -> formats"""
    target = source.partition("/CMakeFiles/")[2].partition(".dir/")[0]
    return target.removeprefix("muster_")


def is_test(source: str) -> bool:
    """Whether it is of a unit test: clang's own warnings, which stop the build of the asan-ubsan preset,
    find in tests what is worth the time."""
    return "_test.dir/" in source


def key_of(entry: dict[str, str], common: bytes) -> str:
    """The key of a compile command; empty when the file does not even preprocess."""
    words = shlex.split(entry["command"])
    output = words.index("-o")
    command = words[:output] + words[output + 2 :] + ["-E", "-C"]
    done = subprocess.run(command, cwd=entry["directory"], capture_output=True, check=False)
    if done.returncode != 0:
        return ""
    # Another checkout of the same sources has the same key.
    text = done.stdout.replace(f"{Path.cwd()}/".encode(), b"")
    text += common
    return hashlib.sha256(text).hexdigest()[:32]


def tidy(entry: dict[str, str], clean: Path, common: bytes) -> bool:
    key = key_of(entry, common)
    if key and (clean / key).exists():
        return True
    done = subprocess.run([*TIDY, entry["file"]], check=False)
    if done.returncode == 0 and key:
        (clean / key).touch()
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--clean", type=Path, required=True)
    parser.add_argument("--layer", default="")
    options = parser.parse_args()
    entries = json.loads(Path("build/lint/compile_commands.json").read_text(encoding="utf-8"))
    entries = [e for e in entries if not is_test(e["file"])]
    entries = [e for e in entries if options.layer in ("", layer_of(e["file"]))]
    if not entries:
        print(f"lint.sh: no sources for '{options.layer}'", file=sys.stderr)
        return 2
    version = subprocess.run([TIDY[0], "--version"], capture_output=True, check=True).stdout
    common = version + Path(".clang-tidy").read_bytes()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda entry: tidy(entry, options.clean, common), entries))
    if not all(results):
        return 1
    print(f"clang-tidy: {len(entries)} unity files are clean")
    return 0


if __name__ == "__main__":
    sys.exit(main())
