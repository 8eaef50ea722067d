"""A tf.estimator program with Muster; each task of its cluster writes its results into OUT.

muster_estimator.py MODEL_DIR OUT train [max_steps=N] [epochs=N] [input=dealt] [die=TASK]
muster_estimator.py MODEL_DIR OUT predict [input=dealt]

The tasks have the same rows, unless the input function distributes them. The first start of TASK
dies when its input has given ten batches.
"""

import json
import os
import pathlib
import signal
import sys

from muster import estimator, feature_column

ROWS, BATCH = 160, 4
NAME = os.environ.get("MUSTER_TASK", "alone")


def batches(epochs, index=0, count=1):
    for epoch in range(epochs):
        for start in range(index * BATCH, ROWS, count * BATCH):
            x = [row / ROWS for row in range(start, start + BATCH)]
            yield {"x": x}, [2 * value + 1 for value in x]


def input_of(options, epochs):
    def mortal(given):
        for number, batch in enumerate(given):
            if number == 10 and options.get("die") == NAME:
                if int(os.environ["MUSTER_INCARNATION"]) <= int(options["starts"]):
                    os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    def all_rows():
        return mortal(batches(epochs))

    def dealt(input_context):
        index, count = input_context.input_pipeline_id, input_context.num_input_pipelines
        return mortal(batches(epochs, index, count))

    return dealt if options.get("input") == "dealt" else all_rows


def write(out, said):
    path = pathlib.Path(out)
    path.mkdir(parents=True, exist_ok=True)
    (path / f"{NAME}.json").write_text(json.dumps(said))


def main(model_dir, out, verb, *rest):
    options = dict(option.split("=") for option in rest)
    config = estimator.RunConfig(save_checkpoints_steps=10, model_dir=model_dir)
    columns = [feature_column.numeric_column("x")]
    model = estimator.LinearRegressor(columns, config=config, optimizer="SGD")
    about = [config.task_type, config.task_id, config.num_worker_replicas, config.num_ps_replicas]
    if verb == "predict":
        rows = model.predict(input_of(options, 1))
        write(out, {"about": about, "rows": [float(row["predictions"][0]) for row in rows]})
        return
    receiver = estimator.export.build_raw_serving_input_receiver_fn({"x": None})
    max_steps = int(options["max_steps"]) if "max_steps" in options else None
    metrics, exports = estimator.train_and_evaluate(
        model,
        estimator.TrainSpec(input_of(options, int(options.get("epochs", 100))), max_steps),
        estimator.EvalSpec(
            lambda: batches(1), steps=None, start_delay_secs=0, throttle_secs=0,
            exporters=estimator.FinalExporter("last", receiver),
        ),
    )  # fmt: skip
    paths = [None if path is None else path.decode() for path in exports]
    write(out, {"about": about, "metrics": metrics, "exports": paths})


if __name__ == "__main__":
    main(*sys.argv[1:])
