"""Factorization machine, DeepFM and DCN-v2 on one thread, beside PyTorch: speed, and AUC on test rows."""

from pathlib import Path
from typing import Any

from bench import deep
from bench.context import CannotRun, Context
from bench.measure import interleave, run
from bench.report import Report, Row
from testbed.click_models import click_spec

ROWS, TEST_ROWS = 20_480, 20_000
BATCHES = (512,)
EPOCHS = 10  # as in src/muster/train/train_benchmark.cc
DIMENSION, HIDDEN = 16, (256, 128)
MODELS = {"fm": "factorization machine", "deepfm": "DeepFM", "dcn": "DCN-v2, two full cross layers"}
AUC_TOLERANCE = 0.01
METHOD = f"""
13 numbers, their buckets and 26 columns of 1,000 hashed words each, every bucket and word with a vector of
{DIMENSION} (`testbed/click_models.py`), on {ROWS:,} rows of `muster sample clicks`, stepped through batches that lie
ready in memory as floats and ids, on one thread: forward, backward and Adagrad. The deep towers are
{"-".join(map(str, HIDDEN))} relu; DCN-v2's reads the output of its cross layers, whose matrices are
{13 + 39 * DIMENSION} x {13 + 39 * DIMENSION}. The peer has one table for all embeddings and fused
Adagrad. Both sides read the CPU time of their own process around the last 9 of 10 epochs. AUC: of
{TEST_ROWS:,} other rows after one epoch, in which both shuffle by an order of their own.
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
         "--dimension", str(DIMENSION), "--hidden", *map(str, HIDDEN)],
        OMP_NUM_THREADS="1", MKL_NUM_THREADS="1",
    ).events()  # fmt: skip


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
    for kind, what in MODELS.items():
        for batch in BATCHES:
            spec = folder / f"{kind}-{batch}.yaml"
            spec.write_text(spec_of(kind, batch), encoding="utf-8")
            reached: dict[str, float] = {}

            def rate_of_peer(
                kind: str = kind, batch: int = batch, reached: dict[str, float] = reached
            ) -> float:
                result = peer(context, kind, data, test, batch)
                reached["auc"] = result["auc"]
                return float(result["rate"])

            series = interleave(
                {
                    "ours": lambda s=spec, b=batch: float(deep.ours(context, s, data, b)["rate"]),
                    "peer": rate_of_peer,
                },
                context.rounds,
            )
            report.rows.append(Row(f"{what}, batch {batch}", series["ours"], series["peer"]))
            auc = our_auc(context, spec, data, test)
            text = f"{what}, batch {batch}: AUC {auc:.4f}, the peer's {reached['auc']:.4f}."
            report.same.append(text)
            if abs(auc - reached["auc"]) > AUC_TOLERANCE:
                raise CannotRun(f"the sides did not learn the same thing: {text}")
    return report
