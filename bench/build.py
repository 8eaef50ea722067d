"""What it costs to build muster from nothing, and the size and libraries of what comes out."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from bench.context import Context
from bench.measure import Series, run
from bench.report import Report, Row, in_unit

# The last revision of which these figures were not looked after.
BEFORE = "b0af097"
MEGABYTES = 10.0
METHOD = f"""
What `./quickstart` builds where it finds no program: `muster` and `muster-tensorflow` by the release
preset with as many jobs as cores, in an empty folder, without the compiler's cache. The other side is
revision {BEFORE}. CPU seconds are of all processes, which other load on the machine changes least. The
size is that of `muster` after `strip`.

Where the time goes (`g++ -ftime-report` of every file): 46 % is optimisation and code generation, 54 %
reading the language, of which half is templates. Of a file of twelve sources 0.7 s of 6 to 9 s are
the headers that all share, so a precompiled header would save some 9 %. At `-O0` the same file takes two
thirds of the time. Sources of three layers in one file instead of three save a third of theirs; layers
are libraries of their own, for tests and for programs outside of the tree, and so are not merged.
"""
TARGETS = ("muster", "muster-tensorflow")
NO_CACHE = {"CCACHE_DISABLE": "1"}

seconds = in_unit("s")
megabytes = in_unit("MB", 2)


class Side:
    """A tree that is built in each round."""

    def __init__(self, context: Context, source: Path, name: str):
        self.source, self.folder, self.context = source, context.scratch / f"build-{name}", context
        self.cpu: list[float] = []
        self.wall: list[float] = []

    def build(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        run(["cmake", "-S", self.source, "-B", self.folder, "-G", "Ninja", "-DMUSTER_TESTS=OFF",
             "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD=ON"], **NO_CACHE)  # fmt: skip
        done = run(["cmake", "--build", self.folder, "--target", *TARGETS], **NO_CACHE)
        self.cpu.append(done.cpu_seconds)
        self.wall.append(done.wall_seconds)
        print(f"  {self.folder.name}: {done.cpu_seconds:.0f} s of CPU", flush=True)

    def stripped_size(self, program: str = "muster") -> Series:
        stripped = self.folder / "stripped"
        run(["strip", "-o", stripped, self.folder / "src/muster" / program])
        return Series((stripped.stat().st_size / 1e6,))

    def libraries(self) -> list[str]:
        text = run(["readelf", "--dynamic", "--wide", self.folder / "src/muster/muster"]).output
        return sorted(re.findall(r"\(NEEDED\)\s+Shared library: \[(.*)\]", text))


def measure(context: Context, name: str) -> Report:
    tree = context.scratch / "before"
    subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=context.root, check=False,
                   stderr=subprocess.DEVNULL)  # fmt: skip
    run(["git", "-C", context.root, "worktree", "add", "--detach", tree, BEFORE])
    ours, before = Side(context, context.root, "ours"), Side(context, tree, "before")
    try:
        for number in range(context.rounds):
            for side in (ours, before) if number % 2 else (before, ours):
                side.build()
        run(["cmake", "--build", ours.folder, "--target", "muster_portable"], **NO_CACHE)
        row = row_of(ours, before)
        return Report(
            name=name,
            title="Building, size and libraries",
            method=METHOD,
            peer=f"before ({BEFORE})",
            unit="now",
            rows=[
                row("CPU seconds to build", lambda side: Series(tuple(side.cpu)), seconds),
                row("wall seconds to build", lambda side: Series(tuple(side.wall)), seconds),
                row("size of muster", Side.stripped_size, megabytes),
                Row("size with OpenSSL and libstdc++ inside (wheel, archive)",
                    ours.stripped_size("portable/muster"), goal=MEGABYTES, form=megabytes),
                row("shared libraries", lambda side: Series((float(len(side.libraries())),)), in_unit("")),
            ],
            same=[f"Shared libraries now: {', '.join(ours.libraries())}.",
                  f"Before: {', '.join(before.libraries())}."],
        )  # fmt: skip
    finally:
        run(["git", "-C", context.root, "worktree", "remove", "--force", tree])
        for side in (ours, before):
            shutil.rmtree(side.folder, ignore_errors=True)


def row_of(ours: Side, before: Side) -> Callable[..., Row]:
    def row(what: str, figure: Callable[[Side], Series], form: Callable[[float], str]) -> Row:
        return Row(what, figure(ours), figure(before), form=form, less_is_better=True)

    return row
