"""Importing this module makes `import tensorflowonspark` find muster.tfos, here and in its nodes.

What logging.info() says is shown as well, since programs rely on that package to have it so.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import logging
import sys
from types import ModuleType
from typing import Any, Optional, Sequence

import muster.tfos

_NAMES = (
    "TFCluster", "TFManager", "TFNode", "TFParallel", "TFSparkNode", "compat", "dfutil", "gpu_info", "marker",
    "pipeline", "reservation", "util",
)  # fmt: skip


class _Finder(importlib.abc.Loader):
    """Imports tensorflowonspark.NAME when a program wants it: dfutil and pipeline need more than others."""

    def find_spec(self, name: str, path: Optional[Sequence[str]], target: Any = None) -> Any:
        package, _, module = name.partition(".")
        if package != "tensorflowonspark" or module not in _NAMES:
            return None
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec: Any) -> ModuleType:
        module = importlib.import_module(f"muster.tfos.{spec.name.partition('.')[2]}")
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # which the import system has replaced


logging.basicConfig(
    level=logging.INFO, format="%(asctime)s %(levelname)s (%(threadName)s-%(process)d) %(message)s"
)
sys.modules["tensorflowonspark"] = muster.tfos
sys.meta_path.insert(0, _Finder())
