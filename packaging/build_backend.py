"""scikit-build-core, which builds the wheel, but the terminal is told what takes so long: pip shows
nothing of what a build prints, unless it is run with -v. What ./quickstart or ./test has compiled in this
checkout is not compiled again where ccache is installed."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, Iterator

from scikit_build_core import build as _backend
from scikit_build_core.build import *  # noqa: F401,F403 (the other hooks of PEP 517 and 660)


def _say(text: str) -> None:
    with contextlib.suppress(OSError), open("/dev/tty", "w") as terminal:  # none: nobody to tell
        terminal.write(f"\n  muster: {text}\n")


def _share_compiled_objects() -> None:
    """Gives ccache the settings of tools/environment.sh, unless it has others."""
    cache = os.environ.get("MUSTER_CACHE") or os.path.expanduser("~/.cache/muster")
    os.environ.setdefault("CCACHE_DIR", os.path.join(cache, "ccache"))
    os.environ.setdefault("CCACHE_BASEDIR", os.getcwd())
    os.environ.setdefault("CCACHE_NOHASHDIR", "1")


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    prebuilt = os.environ.get("MUSTER_PREBUILT")
    if prebuilt:
        _say(f"packing the programs of {prebuilt}")
    else:
        _share_compiled_objects()
        _say(
            "compiling the C++ program into build/python with CMake: some minutes on two cores, "
            "less after ./quickstart, seconds the next time. It needs the packages that BUILD_PACKAGES in tools/packages.sh "
            "names; pip install -v shows each step"
        )
    start = time.monotonic()
    try:
        yield
    except BaseException:
        _say(f"the build failed after {time.monotonic() - start:.0f} s; pip prints why")
        raise
    _say(f"the wheel was built in {time.monotonic() - start:.0f} s")


def build_wheel(wheel_directory: str, *arguments: Any, **options: Any) -> str:
    with _telling():
        return _backend.build_wheel(wheel_directory, *arguments, **options)


def build_editable(wheel_directory: str, *arguments: Any, **options: Any) -> str:
    with _telling():
        return _backend.build_editable(wheel_directory, *arguments, **options)
