"""Runs check functions of a file with the interpreter that it is started with: one with the current
TensorFlow and without pytest.

runner.py FILE FOLDER [NAME...]

Runs the functions check_NAME(folder) of FILE, and those of its dict CHECKS, each with a separate
folder below FOLDER; prints one JSON object per line: {"name", "seconds", "error"}.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import sys
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""


def main(file: str, folder: str, *names: str) -> None:
    spec = importlib.util.spec_from_file_location("checks", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["checks"] = module
    spec.loader.exec_module(module)
    checks = {n[len("check_") :]: f for n, f in vars(module).items() if n.startswith("check_")}
    checks.update(getattr(module, "CHECKS", {}))
    import keras

    for name in names or checks:
        keras.utils.clear_session()
        keras.utils.set_random_seed(7)
        place = pathlib.Path(folder) / name
        place.mkdir(parents=True)
        begin = time.monotonic()
        error = ""
        try:
            checks[name](place)
        except Exception:
            error = traceback.format_exc()
        line = {"name": name, "seconds": round(time.monotonic() - begin, 2), "error": error}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
