"""Factorization machine, DeepFM, DCN-v2 and two towers on one thread, beside PyTorch: speed and quality."""

from pathlib import Path
from typing import Any

from bench import deep
from bench.context import CannotRun, Context
from bench.measure import interleave, run
from bench.report import Report, Row
from testbed.click_models import QUERY_WORDS, TEMPERATURE, TOWERS_DIMENSION, click_spec

ROWS, TEST_ROWS = 20_480, 20_000
BATCHES = (512,)
EPOCHS = 10  # as in src/muster/train/train_benchmark.cc
DIMENSION, HIDDEN = 16, (256, 128)
TOWERS = "two_tower"
MODELS = {"fm": "factorization machine", "deepfm": "DeepFM", "dcn": "DCN-v2, two full cross layers",
          TOWERS: "two towers, in-batch softmax"}  # fmt: skip
AUC_TOLERANCE = 0.01
LOSS_TOLERANCE = 0.05  # a part of the loss; the peer differs by 1.2 % between three seeds
METHOD = f"""
13 numbers, their buckets and 26 columns of 1,000 hashed words each, every bucket and word with a vector of
{DIMENSION} (`testbed/click_models.py`), on {ROWS:,} rows of `muster sample clicks`, stepped through batches that lie
ready in memory as floats and ids, on one thread: forward, backward and Adagrad. The deep towers are
{"-".join(map(str, HIDDEN))} relu; DCN-v2's reads the output of its cross layers, whose matrices are
{13 + 39 * DIMENSION} x {13 + 39 * DIMENSION}. The peer has one table for all embeddings and fused
Adagrad. Of the two towers one reads the numbers, their buckets and {QUERY_WORDS} of the words, the
other one the other words; each ends in a vector of {TOWERS_DIMENSION}, and the item of a click is told from the
other items of its batch (temperature {TEMPERATURE}). Both sides read the CPU time of their own process around
the last 9 of 10 epochs. AUC: of {TEST_ROWS:,} other rows after one epoch, in which both shuffle by an
order of their own. Loss: the mean of the last epoch.
"""


def spec_of(kind: str, batch: int) -> str:
    return click_spec(kind, dimension=DIMENSION, hidden=HIDDEN, batch_size=batch)


def our_auc(context: Context, spec: Path, data: Path, test: Path) -> float:
    model = context.fresh_folder("click-models-ours") / "model"
    run([context.muster, "train", spec, "--train", data, "--model-dir", model, "--quiet"])
    found = run([context.muster, "evaluate", "--model-dir", model, "--data", test, "--quiet",
                 "--json"]).events()  # fmt: skip
    return float(found["auc"])


def peer(context: Context, kind: str, data: Path, test: Path, batch: int) -> dict[str, Any]:
    return run(
        [context.peer_python("pytorch"), context.peer_script("pytorch_clicks.py"), "--train", data,
         "--test", test, "--kind", kind, "--batch-size", str(batch), "--epochs", str(EPOCHS),
         "--dimension", str(DIMENSION), "--hidden", *map(str, HIDDEN),
         "--towers-dimension", str(TOWERS_DIMENSION), "--temperature", str(TEMPERATURE)],
        OMP_NUM_THREADS="1", MKL_NUM_THREADS="1",
    ).events()  # fmt: skip


def measure_model(
    context: Context, kind: str, data: Path, test: Path, batch: int
) -> tuple[Row, str]:
    """Returns the row of a kind of model, and how well both sides have learnt."""
    spec = data.with_name(f"{kind}-{batch}.yaml")
    spec.write_text(spec_of(kind, batch), encoding="utf-8")
    found: dict[str, dict[str, Any]] = {}

    def ours() -> float:
        found["ours"] = deep.ours(context, spec, data, batch)
        return float(found["ours"]["rate"])

    def theirs() -> float:
        found["peer"] = peer(context, kind, data, test, batch)
        return float(found["peer"]["rate"])

    title = f"{MODELS[kind]}, batch {batch}"
    series = interleave({"ours": ours, "peer": theirs}, context.rounds)
    if kind == TOWERS:
        our_loss, their_loss = float(found["ours"]["loss"]), float(found["peer"]["loss"])
        text = f"{title}: loss {our_loss:.4f}, the peer's {their_loss:.4f}."
        alike = abs(our_loss - their_loss) < LOSS_TOLERANCE * their_loss
    else:
        auc, their_auc = our_auc(context, spec, data, test), float(found["peer"]["auc"])
        text = f"{title}: AUC {auc:.4f}, the peer's {their_auc:.4f}."
        alike = abs(auc - their_auc) < AUC_TOLERANCE
    if not alike:
        raise CannotRun(f"the sides did not learn the same thing: {text}")
    return Row(title, series["ours"], series["peer"]), text


def measure(context: Context, name: str) -> Report:
    folder = context.fresh_folder(name)
    data, test = folder / "train.csv", folder / "test.csv"
    for path, rows, seed in ((data, ROWS, "1"), (test, TEST_ROWS, "2")):
        run([context.muster, "sample", "clicks", "--rows", str(rows), "--seed", seed, "--out", path])
    report = Report(
        name=name,
        title="Training click models from memory, against PyTorch",
        method=METHOD,
        peer="PyTorch 2.15.0",
        unit="examples per CPU second, one thread",
    )
    for kind in MODELS:
        for batch in BATCHES:
            row, text = measure_model(context, kind, data, test, batch)
            report.rows.append(row)
            report.same.append(text)
    return report
