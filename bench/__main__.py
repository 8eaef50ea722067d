"""bench/run NAME [--runs N]: measures and writes docs/benchmarks/NAME.md.

bench/run NAME --against TREE: prints Muster's own figures of that benchmark, of this tree and of
another one that is built, run in turns.
"""

import argparse
import sys
from pathlib import Path

from bench import (
    all_reduce,
    build,
    cached_features,
    checkpoint_save,
    click_models,
    coordinator_load,
    csv_to_tfrecord,
    deep,
    distributed,
    hdfs,
    jobs,
    kafka,
    keras,
    keras_gpu,
    kubernetes,
    membership_load,
    parquet,
    predict,
    recovery,
    servers,
    spark,
    startup,
    step_profile,
    tfrecord_decode,
    threads,
    train_pytorch,
    train_tensorflow,
    tune,
    tune_feed,
    tune_models,
    two_trees,
    yarn,
)
from bench.context import CannotRun, Context
from bench.measure import CommandFailed

BENCHES = {
    "train-tensorflow": train_tensorflow,
    "train-pytorch": train_pytorch,
    "deep": deep,
    "click-models": click_models,
    "cached-features": cached_features,
    "step-profile": step_profile,
    "threads": threads,
    "predict": predict,
    "tfrecord": tfrecord_decode,
    "csv": csv_to_tfrecord,
    "startup": startup,
    "build": build,
    "jobs": jobs,
    "coordinator": coordinator_load,
    "checkpoint": checkpoint_save,
    "collectives": all_reduce,
    "servers": servers,
    "distributed": distributed,
    "recovery": recovery,
    "keras": keras,
    "keras-gpu": keras_gpu,
    "hdfs": hdfs,
    "kafka": kafka,
    "kubernetes": kubernetes,
    "membership": membership_load,
    "parquet": parquet,
    "spark": spark,
    "tune": tune,
    "tune-feed": tune_feed,
    "tune-models": tune_models,
    "yarn": yarn,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__)
    parser.add_argument("name", nargs="?", choices=BENCHES)
    parser.add_argument("--runs", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--against", type=Path, metavar="TREE", help="another checkout, built")
    parser.add_argument("--list", action="store_true", help="what there is")
    flags = parser.parse_args()
    if flags.list or not flags.name:
        for name, module in BENCHES.items():
            print(f"{name:18} {(module.__doc__ or '').splitlines()[0]}")
        return 0
    context = Context(root=Path(__file__).resolve().parent.parent, rounds=flags.runs)
    if flags.against and flags.name not in two_trees.SECTIONS:
        parser.error(f"--against knows {', '.join(two_trees.SECTIONS)}")
    try:
        if flags.against:
            print(two_trees.measure(context, flags.against, flags.name).markdown(flags.runs))
            return 0
        report = BENCHES[flags.name].measure(context, flags.name)
    except (CannotRun, CommandFailed) as error:
        print(f"bench/run {flags.name}: {error}", file=sys.stderr)
        return 1
    path = report.write(context.root, flags.runs)
    print(path.read_text(encoding="utf-8"))
    print(f"Written to {path.relative_to(context.root)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
