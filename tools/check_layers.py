#!/usr/bin/env python3
"""Checks that the sources keep to the layers declared in src/muster/CMakeLists.txt.

Errors: an include of a layer that is not in the including layer's DEPENDS (directly or through
it); a relative include; a source or header in a folder that is no layer, so that no target builds
it; a header without #pragma once; a namespace that is not the folder's; a circle among the layers.
Warning only: a file over 400 lines.

usage: check_layers.py [ROOT]      exit code 0 clean, 1 errors found, 2 wrong use
"""

import re
import sys
from pathlib import Path

MAX_LINES = 400
SUFFIXES = (".cc", ".h", ".inc", ".cpp", ".hpp")
ARGUMENT_KEYWORDS = ("DEPENDS", "LIBRARIES")
LAYER = re.compile(r"^\s*muster_layer\(\s*([^)]*)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
NAMESPACE = re.compile(r"^(?:inline\s+)?namespace\s+([\w:]+)\s*\{")


def parse_layers(cmake: str) -> dict[str, list[str]]:
    """Folder -> the folders it names under DEPENDS, in the order of the file."""
    layers: dict[str, list[str]] = {}
    text = re.sub(r"#[^\n]*", "", cmake)
    for call in LAYER.finditer(text):
        folder, *rest = call.group(1).split()
        keyword = ""
        layers[folder] = []
        for word in rest:
            if word in ARGUMENT_KEYWORDS:
                keyword = word
            elif keyword == "DEPENDS":
                layers[folder].append(word)
    return layers


def reachable(layers: dict[str, list[str]], errors: list[str]) -> dict[str, set[str]]:
    """Folder -> every folder it may include, itself among them."""
    allowed: dict[str, set[str]] = {}
    for folder, depends in layers.items():  # declared bottom first, so depends are done already
        allowed[folder] = {folder}
        for other in depends:
            if other not in allowed:
                errors.append(
                    f"CMakeLists.txt: layer {folder} depends on {other}, which is not declared "
                    "above it: declare layers bottom first"
                )
            else:
                allowed[folder] |= allowed[other]
    return allowed


def layer_of(path: str, layers: dict[str, list[str]]) -> str | None:
    """The layer of a path relative to src/muster; a layer does not own its subfolders."""
    folder = path.rpartition("/")[0]
    return folder if folder in layers else None


def namespace_of(layer: str) -> str:
    return "muster" if layer == "base" else "muster::" + layer.replace("/", "::")


def check_file(path: Path, source: Path, allowed: dict[str, set[str]]) -> list[str]:
    """The errors of one file; `source` is src/muster."""
    relative = path.relative_to(source).as_posix()
    layer = layer_of(relative, allowed)
    if layer is None:
        return [
            f"src/muster/{relative}: its folder is no layer, so no target builds it: "
            "add a muster_layer line to src/muster/CMakeLists.txt"
        ]
    errors = []
    expected = namespace_of(layer)
    others = {namespace_of(other) for other in allowed}
    found_namespace = False
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        where = f"src/muster/{relative}:{number}"
        if include := INCLUDE.match(line):
            errors += [f"{where}: {e}" for e in check_include(include[1], path, layer, allowed)]
        elif namespace := NAMESPACE.match(line):
            name = namespace[1]
            nested = found_namespace and not name.startswith("muster")
            if name == expected or (name.startswith(expected + "::") and name not in others):
                found_namespace = True
            elif not nested:
                errors.append(f"{where}: namespace {name} in the folder of {expected}")
    if path.suffix == ".h" and "#pragma once" not in lines:
        errors.append(f"src/muster/{relative}: a header without #pragma once")
    if path.suffix == ".h" and not found_namespace:
        errors.append(f"src/muster/{relative}: nothing in namespace {expected}")
    return errors


def check_include(name: str, path: Path, layer: str, allowed: dict[str, set[str]]) -> list[str]:
    if not name.startswith("muster/"):
        if ".." in name.split("/") or (path.parent / name).exists():
            return [f'include "{name}" is relative: write it from "muster/" on']
        return []
    other = layer_of(name.removeprefix("muster/"), allowed)
    if other is None:
        return [f'include "{name}": that folder is no layer']
    if other not in allowed[layer]:
        return [
            f'include "{name}": layer {layer} may not use {other} '
            f"(it may use {', '.join(sorted(allowed[layer] - {layer})) or 'no other layer'})"
        ]
    return []


def check_tree(root: Path) -> tuple[list[str], list[str], int]:
    """(errors, warnings, number of files looked at)"""
    source = root / "src" / "muster"
    errors: list[str] = []
    warnings: list[str] = []
    layers = parse_layers((source / "CMakeLists.txt").read_text(encoding="utf-8"))
    if not layers:
        errors.append("src/muster/CMakeLists.txt: no muster_layer line found")
    allowed = reachable(layers, errors)
    files = sorted(p for p in source.rglob("*") if p.suffix in SUFFIXES)
    for path in files:
        errors += check_file(path, source, allowed)
        count = len(path.read_text(encoding="utf-8").splitlines())
        if count > MAX_LINES:
            warnings.append(f"{path.relative_to(root)}: {count} lines (over {MAX_LINES})")
    if not files:
        errors.append("src/muster: no source files found")
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
