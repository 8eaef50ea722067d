"""A save of a model of 1 GB by two parameter servers: their rows by themselves, or all by the chief."""

from pathlib import Path

from bench.checkpoint_save import model_file
from bench.context import Context
from bench.measure import run
from bench.tasks import Task, Training, write_key

STEPS = 8
SAVES = STEPS - 1  # more than a training that saves at its end alone
GOAL = 1 / 0.6  # times as fast as the chief's
METHOD = """
A save: two servers with a half of 1 GB each (26 embeddings of 150000 rows of 32, with Adagrad's accumulators), a
worker and a chief, whose command takes so much longer when it saves at each step and not at the end alone. Each server
writes its rows into the model folder, or, where the servers run in another folder, the chief fetches all and writes them.
"""


def training_seconds(context: Context, saves_each_step: bool, servers_have_folder: bool) -> float:
    """From the start of all tasks to the end of the last one."""
    folder = context.fresh_folder("server-saves")
    elsewhere = context.fresh_folder("server-saves-elsewhere")
    (folder / "model.yaml").write_text(model_file(), encoding="utf-8")
    (elsewhere / "model.yaml").write_text(model_file(), encoding="utf-8")
    rows = folder / "clicks.csv"
    run([context.muster, "sample", "clicks", "--rows", "4000", "--out", rows])

    def task(name: str, where: Path) -> Task:
        # The chief alone decides when it saves.
        saves = 1 if saves_each_step and name == "chief-0" else 1_000_000
        command = ["env", "-C", where, context.muster, "worker", "model.yaml", "--train", rows,
                   "--model-dir", "model", "--strategy", "ps-sync", "--threads", "1", "--batch-size", "64",
                   "--max-steps", str(STEPS), "--save-steps", str(saves)]  # fmt: skip
        return Task(name, command)

    where = folder if servers_have_folder else elsewhere
    tasks = [task("chief-0", folder), task("worker-0", folder), task("ps-0", where), task("ps-1", where)]
    with Training(folder, tasks, MUSTER_KEY_FILE=str(write_key(folder))) as training:
        return training.seconds()


def save_seconds(context: Context, servers_have_folder: bool) -> float:
    """Of one save."""
    often = training_seconds(context, True, servers_have_folder)
    return (often - training_seconds(context, False, servers_have_folder)) / SAVES
