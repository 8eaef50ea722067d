#!/usr/bin/env python3
"""Checks that the sources keep to the layers declared in src/muster/CMakeLists.txt.

Errors: an include of a layer that is not in the including layer's DEPENDS (directly or through
it); a layer that reaches one of its NEVER_DEPENDS; a relative include; a source or header in a folder
that is no layer, so that no target builds it; a header without #pragma once; a namespace that is not
the folder's; a circle among the layers; a thread, mutex or atomic in a layer that is declared
NO_THREADS, or in a test file that is declared ONE_THREAD, which must exist; a call of
NewLocalFileSystem outside of files/, io/ and tests, which would read no other scheme than the local
one; a file or folder that ARCHITECTURE.md names and that does not exist.
Warning only: a file over 400 lines.

usage: check_layers.py [ROOT]      exit code 0 clean, 1 errors found, 2 wrong use
"""

import dataclasses
import re
import sys
from pathlib import Path
from typing import Container

MAX_LINES = 400
SUFFIXES = (".cc", ".h", ".inc", ".cpp", ".hpp")
WITHOUT_THREADS = "NO_THREADS"
ONE_THREAD = "ONE_THREAD"
ARGUMENT_KEYWORDS = ("DEPENDS", "NEVER_DEPENDS", "LIBRARIES", "TESTS_USE", "TESTS_START", ONE_THREAD)
ROOM = "ROOM"
THREADS = re.compile(
    r"std::(?:jthread|thread|mutex|shared_mutex|atomic|async|condition_variable)\b|absl::Mutex\b"
)
LOCAL_FILES = re.compile(r"\bNewLocalFileSystem\(")
MAY_USE_LOCAL_FILES = ("io", "files")
LAYER = re.compile(r"^\s*muster_layer\(\s*([^)]*)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
TEST = re.compile(r"_test\.cc$|_benchmark\.cc$|^test_|_test_support\.h$")
# `train/loop/hook.h`, `train/loop/hook` for its .h and .cc, `docs/formats/`, `cli/verb_*.cc`; no
# placeholder such as FOLDER.
NAMED_PATH = re.compile(r"`((?:[a-z][a-z0-9_.-]*/)+[a-z0-9_.*-]*)`")
# `dial.cc`, a file that is named without its folder.
NAMED_FILE = re.compile(r"`([a-z][a-z0-9_]*\.(?:cc|h|inc|py|sh|md))`")
NAMESPACE = re.compile(r"^(?:inline\s+)?namespace\s+([\w:]+)\s*\{")


@dataclasses.dataclass
class Layer:
    """A muster_layer line: what cmake/MusterLayer.cmake says of each word."""

    depends: list[str] = dataclasses.field(default_factory=list)
    never_depends: list[str] = dataclasses.field(default_factory=list)
    tests_use: list[str] = dataclasses.field(default_factory=list)
    one_thread: list[str] = dataclasses.field(default_factory=list)
    is_room: bool = False
    has_threads: bool = True


def parse_layers(cmake: str) -> dict[str, Layer]:
    """By folder, in the order of the file."""
    layers: dict[str, Layer] = {}
    text = re.sub(r"#[^\n]*", "", cmake)
    for call in LAYER.finditer(text):
        folder, *rest = call.group(1).split()
        layer = layers[folder] = Layer(is_room=ROOM in rest, has_threads=WITHOUT_THREADS not in rest)
        keyword = ""
        for word in rest:
            if word in ARGUMENT_KEYWORDS:
                keyword = word
            elif keyword == "DEPENDS":
                layer.depends.append(word)
            elif keyword == "NEVER_DEPENDS":
                layer.never_depends.append(word)
            elif keyword == "TESTS_USE":
                layer.tests_use.append(word)
            elif keyword == ONE_THREAD:
                layer.one_thread.append(word)
    return layers


def reachable(layers: dict[str, Layer], errors: list[str]) -> dict[str, set[str]]:
    """Folder -> every folder it may include, itself among them."""
    allowed: dict[str, set[str]] = {}
    for folder, layer in layers.items():  # declared bottom first, so depends are done already
        allowed[folder] = {folder}
        for other in layer.depends:
            if other not in allowed:
                errors.append(
                    f"CMakeLists.txt: layer {folder} depends on {other}, which is not declared "
                    "above it: declare layers bottom first"
                )
            else:
                allowed[folder] |= allowed[other]
        errors += check_never_depends(folder, layer, layers, allowed[folder])
    return allowed


def check_never_depends(
    folder: str, layer: Layer, layers: dict[str, Layer], reached: set[str]
) -> list[str]:
    """The errors of a layer's NEVER_DEPENDS, of which it must reach none, and which must exist."""
    errors = []
    for other in layer.never_depends:
        if other not in layers:
            errors.append(f"CMakeLists.txt: layer {folder}: NEVER_DEPENDS {other} is no layer")
        elif other in reached:
            errors.append(
                f"CMakeLists.txt: layer {folder} reaches {other}, which its NEVER_DEPENDS names"
            )
    return errors


def layer_of(path: str, layers: Container[str]) -> str | None:
    """The layer of a path relative to src/muster; a layer does not own its subfolders."""
    folder = path.rpartition("/")[0]
    return folder if folder in layers else None


def namespace_of(folder: str, layers: dict[str, Layer]) -> str:
    while layers[folder].is_room and "/" in folder:
        folder = folder.rpartition("/")[0]
    return "muster" if folder == "base" else "muster::" + folder.replace("/", "::")


class Checker:
    """Of the files of one tree; `source` is src/muster."""

    def __init__(self, source: Path, layers: dict[str, Layer], errors: list[str]):
        self.source = source
        self.layers = layers
        self.allowed = reachable(layers, errors)
        self.namespaces = {namespace_of(folder, layers) for folder in layers}

    def may_use(self, folder: str, path: Path) -> set[str]:
        """The layers that a file of the folder may include."""
        layers = set(self.allowed[folder])
        if TEST.search(path.name):
            for other in self.layers[folder].tests_use:
                layers |= self.allowed.get(other, set())
        return layers

    def check(self, path: Path) -> list[str]:
        relative = path.relative_to(self.source).as_posix()
        folder = layer_of(relative, self.layers)
        if folder is None:
            return [
                f"src/muster/{relative}: its folder is no layer, so no target builds it: "
                "add a muster_layer line to src/muster/CMakeLists.txt"
            ]
        errors = []
        expected = namespace_of(folder, self.layers)
        found_namespace = False
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            where = f"src/muster/{relative}:{number}"
            if include := INCLUDE.match(line):
                errors += [f"{where}: {e}" for e in self.check_include(include[1], path, folder)]
            elif namespace := NAMESPACE.match(line):
                name = namespace[1]
                nested = found_namespace and not name.startswith("muster")
                is_inner = name.startswith(expected + "::") and name not in self.namespaces
                if name == expected or is_inner:
                    found_namespace = True
                elif not nested:
                    errors.append(f"{where}: namespace {name} in the folder of {expected}")
        if path.suffix == ".h" and "#pragma once" not in lines:
            errors.append(f"src/muster/{relative}: a header without #pragma once")
        if path.suffix == ".h" and not found_namespace:
            errors.append(f"src/muster/{relative}: nothing in namespace {expected}")
        if not self.layers[folder].has_threads:
            errors += check_threads(lines, relative, "a layer", WITHOUT_THREADS)
        elif path.name in self.layers[folder].one_thread:
            errors += check_threads(lines, relative, "a test", ONE_THREAD)
        if folder not in MAY_USE_LOCAL_FILES and not TEST.search(path.name):
            errors += check_local_files(lines, relative)
        return errors

    def check_include(self, name: str, path: Path, folder: str) -> list[str]:
        if not name.startswith("muster/"):
            if ".." in name.split("/") or (path.parent / name).exists():
                return [f'include "{name}" is relative: write it from "muster/" on']
            return []
        other = layer_of(name.removeprefix("muster/"), self.layers)
        if other is None:
            return [f'include "{name}": that folder is no layer']
        usable = self.may_use(folder, path)
        if other not in usable:
            return [
                f'include "{name}": layer {folder} may not use {other} '
                f"(it may use {', '.join(sorted(usable - {folder})) or 'no other layer'})"
            ]
        return []


def check_threads(lines: list[str], relative: str, what: str, word: str) -> list[str]:
    """The errors of one file that ThreadSanitizer does not run, since `what` is declared with `word`."""
    return [
        f"src/muster/{relative}:{number}: {found[0]} in {what} declared {word}: take it out of that in "
        "its muster_layer line, so that ThreadSanitizer runs it"
        for number, line in enumerate(lines, start=1)
        if (found := THREADS.search(line))
    ]


def check_local_files(lines: list[str], relative: str) -> list[str]:
    """The errors of one file that must be able to open paths of every scheme."""
    return [
        f"src/muster/{relative}:{number}: NewLocalFileSystem: call files::OpenFileSystems, or take "
        "an io::FileSystem&, so that paths of every scheme work"
        for number, line in enumerate(lines, start=1)
        if LOCAL_FILES.search(line)
    ]


def check_named_paths(root: Path, source: Path) -> list[str]:
    """The errors of ARCHITECTURE.md: each file or folder that it names in backticks exists."""
    document = root / "ARCHITECTURE.md"
    if not document.exists():
        return []
    errors = []
    files = {path.name for path in source.rglob("*")} | {path.name for path in root.iterdir()}
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        missing = [name for name in NAMED_FILE.findall(line) if name not in files]
        for name in NAMED_PATH.findall(line):
            patterns = (name, name + ".h")
            if not any(any(f.glob(pattern)) for f in (root, source) for pattern in patterns):
                missing.append(name)
        errors += [f"ARCHITECTURE.md:{number}: `{name}` does not exist" for name in missing]
    return errors


def check_layer_table(root: Path, layers: dict[str, Layer]) -> list[str]:
    """The errors of ARCHITECTURE.md's table of layers: a row for each, with what it DEPENDS on."""
    document = root / "ARCHITECTURE.md"
    if not document.exists():
        return []
    errors = []
    seen: set[str] = set()
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        where = f"ARCHITECTURE.md:{number}"
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        name = cells[0].strip("`")
        if not line.startswith("| `") or name not in layers:
            continue
        if len(cells) not in (2, 3):
            errors.append(f"{where}: the row of `{name}` has {len(cells)} cells")
            continue
        named = re.findall(r"`([^`]+)`", cells[2]) if len(cells) == 3 else []
        if sorted(named) != sorted(layers[name].depends):
            errors.append(f"{where}: `{name}` depends on {layers[name].depends}, the row says {named}")
        if name in seen:
            errors.append(f"{where}: `{name}` has a row already")
        seen.add(name)
    if seen:
        errors += [f"ARCHITECTURE.md: no row of the layer `{name}`" for name in layers if name not in seen]
    return errors


def check_tree(root: Path) -> tuple[list[str], list[str], int]:
    """(errors, warnings, number of files looked at)"""
    source = root / "src" / "muster"
    errors: list[str] = []
    warnings: list[str] = []
    layers = parse_layers((source / "CMakeLists.txt").read_text(encoding="utf-8"))
    if not layers:
        errors.append("src/muster/CMakeLists.txt: no muster_layer line found")
    checker = Checker(source, layers, errors)
    files = sorted(p for p in source.rglob("*") if p.suffix in SUFFIXES)
    for path in files:
        errors += checker.check(path)
        count = len(path.read_text(encoding="utf-8").splitlines())
        if count > MAX_LINES:
            warnings.append(f"{path.relative_to(root)}: {count} lines (over {MAX_LINES})")
    errors += [
        f"CMakeLists.txt: layer {folder}: {ONE_THREAD} {name} does not exist"
        for folder, layer in layers.items()
        for name in layer.one_thread
        if not (source / folder / name).exists()
    ]
    if not files:
        errors.append("src/muster: no source files found")
    errors += check_named_paths(root, source)
    errors += check_layer_table(root, layers)
    return errors, warnings, len(files)


def main(arguments: list[str]) -> int:
    if len(arguments) > 1:
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    errors, warnings, count = check_tree(root)
    for warning in warnings:
        print(f"warning: {warning}")
    for error in errors:
        print(f"error: {error}")
    print(f"{count} files, {len(errors)} errors, {len(warnings)} warnings")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
