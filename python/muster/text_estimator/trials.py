"""Normal mode: each set of parameters is a trial, which one task of Spark runs alone."""

from __future__ import annotations

import logging
import traceback
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence

from muster import binary
from muster.spark import sessions
from muster.text_estimator.reading import Data

logger = logging.getLogger("muster")

MapFun = Callable[..., Any]  # map_fun(args=..., ctx=..., _read_data=...)


class Trial(NamedTuple):
    """A set of parameters, and how its map_fun has ended."""

    params: Mapping[str, Any]
    state: str  # "complete", or "failed"
    result: Any  # what map_fun returned
    error: str  # of a failed one: what was raised, with its trace

    @property
    def cause(self) -> str:
        """The error's last line."""
        return (self.error.strip().splitlines() or [""])[-1]


def run(
    context: Any, data: Data, sets: Sequence[Mapping[str, Any]], args: Mapping[str, Any], map_fun: MapFun
) -> List[Trial]:
    """Runs a trial for each set, as many at once as Spark has slots; the others wait for one.

    args: what the args["params"] of each trial have beside its "fitParam". A trial that raises is run
    again as often as spark.task.maxFailures says, and is then failed; the others go on. Raises
    MusterError if all have failed.
    """
    numbers = context.parallelize(range(len(sets)), len(sets))
    attempts = _attempts(context)
    with sessions.naming_unfit_python(context):
        ended = numbers.mapPartitions(_task(data, list(sets), dict(args), map_fun, attempts)).collect()
    trials = [Trial(sets[number], *how) for number, *how in sorted(ended, key=lambda one: one[0])]
    failed = [trial for trial in trials if trial.state == "failed"]
    if len(failed) == len(trials):
        raise binary.MusterError(
            f"{_all(len(trials))} failed; {dict(failed[0].params)}: {failed[0].cause}\n{failed[0].error}"
        )
    for trial in failed:
        logger.warning("the trial of %s failed: %s", dict(trial.params), trial.error)
    return trials


def _all(count: int) -> str:
    return "the only trial has" if count == 1 else f"all {count} trials have"


def _attempts(context: Any) -> int:
    """How often Spark runs a task that fails."""
    master = context.master
    if master != "local" and not master.startswith("local["):
        return int(context.getConf().get("spark.task.maxFailures", "4"))
    numbers = master.partition("[")[2].rstrip("]").split(",")  # local[THREADS,FAILURES]
    return int(numbers[1]) if len(numbers) > 1 else 1


def _task(
    data: Data, sets: List[Mapping[str, Any]], args: Dict[str, Any], map_fun: MapFun, attempts: int
) -> Callable[[Iterator[int]], Iterator[Any]]:
    def run_trial(numbers: Iterator[int]) -> Iterator[Any]:
        from pyspark import TaskContext

        (number,) = numbers
        params = {**args, "fitParam": sets[number]}
        try:
            result = map_fun(args={"params": params}, ctx=None, _read_data=data.read)
        except Exception:
            if TaskContext.get().attemptNumber() + 1 < attempts:
                raise
            yield number, "failed", None, traceback.format_exc()
        else:
            yield number, "complete", result, ""

    return run_trial
