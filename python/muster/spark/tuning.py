"""muster.spark.tune: the search of `muster tune`, with trials on executors."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from muster import binary, places
from muster.spark import manifest, sessions
from muster.spark.tfrecords import write_tfrecords
from muster.spark.trials import Trials

logger = logging.getLogger("muster")

# What the program's flags are called here, for errors.
_ARGUMENTS = {
    "--parallel": "parallel",
    "--ps": "ps",
    "--study-dir": "study_dir",
    "--time": "time",
    "--trials": "trials",
    "--workers": "workers",
}
_JOURNAL = "study.log"  # a study that has begun has it
_SEARCH, _ROWS = "search.json", "rows"
_OF_TRIAL = ("event", "trial", "state", "step", "records", "seconds", "parameters")


class Tuned(NamedTuple):
    """What a study has found. What is said of the best trial is None if no trial has a value."""

    trials: int  # of the study, those of earlier calls included
    best_trial: Optional[int]  # its number
    best_value: Optional[float]
    best_params: Dict[str, Any]
    model_dir: Optional[str]  # the best trial's model folder: MusterModel(folder=model_dir)
    saved_model: Optional[str]  # the best trial's model, exported
    command: Optional[str]  # trains that model again by itself
    importance: Dict[str, float]  # of the parameters
    end: str  # why the study has ended


def tune(
    spark: Any,
    search: Any,
    study_dir: Any = None,
    *,
    parallel: int = 1,
    workers: int = 1,
    ps: int = 0,
    trials: Optional[int] = None,
    time: Optional[str] = None,
) -> Tuned:
    """Runs the study of a search on executors, or continues it; returns when it has ended.

    search: a search file of `muster tune` (docs/tune.md) with a model, or what it would say as a dict,
    whose "train" and "eval" may be DataFrames: their rows are written once, into the study's folder.
    study_dir: the study's folder, of the driver's machine; for a search file it may be absent: the
    file's name with -study.
    parallel: so many trials at a time. workers: replicas that train each trial, by all-reduce; ps:
    parameter servers of each trial. Each of them takes a slot of Spark (a core, or spark.task.cpus)
    while the trial runs.
    trials, time: the budget, in place of the search's: time="10m".

    The study is the one that `muster tune` makes: the same folder, trials, models and results. After
    a driver was killed the same call continues it. Trials that end are logged by the logger "muster".
    Raises ValueError where Spark has not enough slots, and MusterError with the program's message.
    """
    if parallel < 1 or workers < 1 or ps < 0:
        raise ValueError(f"parallel={parallel}, workers={workers}, ps={ps}: they are 1, 1 and 0 or more")
    context = spark.sparkContext
    _check_slots(context, parallel, workers, ps)
    folder = None if study_dir is None else places.local_path(study_dir)
    file = None
    try:
        file = _write(search, folder) if isinstance(search, Mapping) else places.local_path(search)
        command: List[object] = ["tune", file, *([] if folder is None else [folder])]
        command += ["--on", "spark", "--parallel", parallel, "--json", "--quiet"]
        command += ["--workers", workers] if workers + ps > 1 else []
        command += ["--ps", ps] if ps > 0 else []
        command += [] if trials is None else ["--trials", trials]
        command += [] if time is None else ["--time", time]
        return _read(_run(context, command, workers, ps))
    except Exception:
        if isinstance(search, Mapping) and folder is not None:
            _remove_unless_begun(search, folder, file)
        raise


def _run(context: Any, command: List[object], workers: int, ps: int) -> Dict[str, Any]:
    """Runs the search, and returns its last event."""
    served = Trials(context, workers, ps)
    try:
        *_, study = binary.run(
            [*command, *(f"--runner={word}" for word in served.runner())], seen=_log, names=_ARGUMENTS
        )
        return study
    except binary.MusterError as error:
        if sessions.is_stopped(context):
            raise binary.MusterError("Spark was stopped during the study: the same call continues it") from error
        raise
    finally:
        served.close()


def _check_slots(context: Any, parallel: int, workers: int, ps: int) -> None:
    each = f"workers={workers}, ps={ps}"
    tasks = workers + ps
    what = f"a trial takes {tasks} slots ({each})"
    if parallel > 1:
        what = f"{parallel} trials at a time take {parallel * tasks} slots ({each})"
    manifest.check_slots(context, parallel * tasks, what, "the search fewer: parallel, workers, ps")


def _write(search: Mapping[str, Any], folder: Optional[str]) -> str:
    """The search file of a dict, with its DataFrames as files."""
    if folder is None:
        raise ValueError('a search that is a dict needs a folder: tune(spark, {...}, "STUDY_DIR")')
    os.makedirs(folder, exist_ok=True)
    written = dict(search)
    for name in ("train", "eval"):
        if hasattr(search.get(name), "mapInArrow"):
            written[name] = _write_rows(search, name, folder)
    path = os.path.join(folder, _SEARCH)
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        json.dump(written, file)
    os.replace(path + ".tmp", path)
    return path


def _write_rows(search: Mapping[str, Any], name: str, folder: str) -> str:
    """The files of a DataFrame. All trials of a study read the same ones."""
    rows = os.path.join(folder, _ROWS, name)
    if not (os.path.exists(os.path.join(folder, _JOURNAL)) and os.path.isdir(rows)):
        os.makedirs(os.path.dirname(rows), exist_ok=True)
        if write_tfrecords(search[name], rows, model=search.get("model"), mode="overwrite").rows == 0:
            raise ValueError(f"{name}: the DataFrame has no rows")
    return os.path.join(rows, "part-*")


def _remove_unless_begun(search: Mapping[str, Any], folder: str, file: Optional[str]) -> None:
    """Removes what _write() has made for a search that was refused, and nothing else. file: None if it has failed."""
    if os.path.exists(os.path.join(folder, _JOURNAL)):
        return
    for name in ("train", "eval"):
        if hasattr(search.get(name), "mapInArrow"):
            shutil.rmtree(os.path.join(folder, _ROWS, name), ignore_errors=True)
    if file is not None:
        os.remove(file)
    for made in (os.path.join(folder, _ROWS), folder):
        with contextlib.suppress(OSError):  # there may be something else in it
            os.rmdir(made)


def _log(event: Dict[str, Any]) -> None:
    if event["event"] == "trial":
        rest = ", ".join(f"{name} {value}" for name, value in event.items() if name not in _OF_TRIAL)
        logger.info("trial %d %s: %s, %s", event["trial"], event["state"], rest, event["parameters"])


def _read(study: Dict[str, Any]) -> Tuned:
    best = study["best"] or {}
    return Tuned(
        trials=study["trials"],
        best_trial=best.get("trial"),
        best_value=best.get(study["metric"]),
        best_params=best.get("parameters", {}),
        model_dir=_absolute(study.get("model_dir")),
        saved_model=_absolute(study.get("saved_model")),
        command=study.get("command"),
        importance=study["importance"],
        end=study["end"],
    )


def _absolute(path: Optional[str]) -> Optional[str]:
    """Executors work in other folders."""
    return None if path is None else os.path.abspath(path)
