"""Several workers on an exported Keras model: rates, memory and whole jobs, beside Python's."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.context import Context
from bench.measure import Series, interleave, run
from bench.report import Row, in_unit
from bench.tasks import Cost, Task, Training, write_key

BATCH = 512
TELL, WARM, LAST = 100, 200, 2000  # steps between two that are told; between which is measured
PEER_TELL, PEER_WARM, PEER_LAST = 50, 100, 500
JOB_WORKERS, JOB_STEPS = 3, 500
SCALING, MEMORY, JOB = 1.7, 1 / 0.7, 3.0  # goals
SAMPLE_SECONDS = 0.1
METHOD = f"""
Several workers train the wide & deep of 8 columns at batch {BATCH} a worker, synchronously. For rates each
worker has all its threads, and its `muster-tensorflow`, bound to one core. Memory is the peak of a worker's
proportional set (Pss: shared pages divided by who shares them) with all processes that it started,
looked at {1 / SAMPLE_SECONDS:.0f} times a second in a training of two. A whole job is {JOB_WORKERS} workers
and {JOB_STEPS} steps, from the command to the exit of the last process. The peer is a worker of
MultiWorkerMirroredStrategy with a loop of its own (`strategy.run`), one thread in each pool; its
processes are started at once, by no launcher.
"""


@dataclass(frozen=True)
class Setting:
    context: Context
    exported: Path
    train: str
    our_environment: dict[str, str]
    peer_environment: dict[str, str]

    def our_command(self, verb: str, folder: Path, steps: int) -> list[str | Path]:
        return [self.context.muster, verb, self.exported, "--train", self.train, "--model-dir",
                folder / "model", "--batch-size", str(BATCH), "--epochs", "1000000", "--max-steps",
                str(steps), "--log-steps", str(TELL), "--summary-steps", "1000000",
                "--save-secs", "0"]  # fmt: skip

    def peer_command(self, folder: Path, steps: int) -> list[str | Path]:
        return [self.context.peer_python("tensorflow"),
                self.context.peer_script("keras_multi_worker.py"), "wide-deep", "--train", self.train,
                "--model-dir", folder / "model", "--batch-size", str(BATCH), "--steps", str(steps),
                "--tell-steps", str(PEER_TELL)]  # fmt: skip


def tree_of(pid: int) -> list[int]:
    """The process and all that it started, as far as they are there."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                found += [int(word) for word in task.read_text(encoding="utf-8").split()]
            except OSError:
                continue  # it has ended
    return found


def pss_mib(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    return sum(float(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024


class MemoryTraining(Training):
    """Its peaks are of Pss, of each task with what it started."""

    def __enter__(self) -> "MemoryTraining":
        self._most = {name: 0.0 for name in self.processes}
        self._ended = threading.Event()
        self._sampler = threading.Thread(target=self._sample)
        self._sampler.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._sampler.join()
        super().__exit__(*error)

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            for name, process in self.processes.items():
                now = sum(pss_mib(pid) for pid in tree_of(process.pid))
                self._most[name] = max(self._most[name], now)

    def peaks(self) -> dict[str, float]:
        return dict(self._most)


def ours(setting: Setting, tasks: Sequence[Task], kind: type[Training] = Training) -> Cost:
    context = setting.context
    folder = context.fresh_folder("keras-workers")
    verb = "worker" if len(tasks) > 1 else "train"
    members = [
        Task(task.name, setting.our_command(verb, folder, LAST + TELL), task.core) for task in tasks
    ]
    key = write_key(folder)
    with kind(folder, members, MUSTER_KEY_FILE=str(key), **setting.our_environment) as training:
        return training.cost(WARM, LAST)


def peer(setting: Setting, names: Sequence[str], kind: type[Training] = Training) -> Cost:
    folder = setting.context.fresh_folder("keras-peers")
    command = setting.peer_command(folder, PEER_LAST)
    members = [Task(name, command) for name in names]
    with kind(folder, members, **setting.peer_environment) as training:
        return training.cost(PEER_WARM, PEER_LAST)


def micros_an_example(setting: Setting, workers: int) -> float:
    names = ("chief-0", "worker-0")[:workers]
    cost = ours(setting, [Task(name, (), core) for core, name in enumerate(names)])
    return cost.seconds * 1e6 / (cost.steps * BATCH * workers)


def our_memory(setting: Setting) -> float:
    cost = ours(setting, [Task("chief-0", ()), Task("worker-0", ())], MemoryTraining)
    return cost.peak_mib["worker-0"]


def peer_memory(setting: Setting) -> float:
    return peer(setting, ("worker-0", "worker-1"), MemoryTraining).peak_mib["worker-1"]


def our_job(setting: Setting) -> float:
    folder = setting.context.fresh_folder("keras-job")
    command = [*setting.our_command("train", folder, JOB_STEPS), "--workers", str(JOB_WORKERS)]
    environment = {**setting.our_environment, "MUSTER_HOME": str(folder / "home")}
    return run(command, **environment).wall_seconds


def peer_job(setting: Setting) -> float:
    begin = time.monotonic()
    peer(setting, [f"worker-{i}" for i in range(JOB_WORKERS)])
    return time.monotonic() - begin


def measure(setting: Setting) -> list[Row]:
    rounds = setting.context.rounds
    rates = interleave({"two": partial(micros_an_example, setting, 2),
                        "one": partial(micros_an_example, setting, 1)}, rounds)  # fmt: skip
    memory = interleave(
        {"ours": partial(our_memory, setting), "peer": partial(peer_memory, setting)}, rounds
    )
    jobs = interleave({"ours": partial(our_job, setting), "peer": partial(peer_job, setting)}, rounds)

    def row(what: str, mine: Series, other: Series, goal: float, unit: str, digits: int) -> Row:
        return Row(what, mine, other, goal, in_unit(unit, digits), less_is_better=True)

    return [
        row("wall time an example: 2 workers; one", rates["two"], rates["one"], SCALING, "us", 2),
        row("peak memory of one of 2 workers; of MultiWorkerMirrored's", memory["ours"],
            memory["peer"], MEMORY, "MiB", 0),
        row(f"a job of {JOB_WORKERS} workers, {JOB_STEPS} steps; MultiWorkerMirrored's", jobs["ours"],
            jobs["peer"], JOB, "s", 1),
    ]  # fmt: skip
