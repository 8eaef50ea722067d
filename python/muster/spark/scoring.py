"""transform: rows go through `muster predict` in each Python worker, one row in, one row out."""

from __future__ import annotations

import collections
from typing import Any, Callable, Deque, Dict, Iterator, List, Mapping, NamedTuple, Optional

from pyspark.sql import types as spark_types

from muster.spark import columns, model_files
from muster.spark.params import OutputParams
from muster.spark.scorer import Scorer, kept_scorer

# Batches that the program may have before its answer to the first is waited for. It reads so many before it
# needs to have answered one, so that it never waits for more rows when it has failed.
_AHEAD = 4
_ROW = "row"  # what muster predict calls the numbers of rows, where the model has no key
_PREFIX = "__muster_"  # of columns between the scorer and the columns that transform adds
_SPARK_TYPES = {
    "int64": spark_types.LongType(),
    "float": spark_types.FloatType(),
    "binary": spark_types.StringType(),
}


class Output(NamedTuple):
    """An output of the model: its name, Arrow's name of its type, and whether it has several values."""

    name: str
    type: str
    list: bool


class _Task(NamedTuple):
    """What a task must know."""

    place: model_files.Place
    inputs: List[columns.Column]  # columns of the stream
    fixed: Dict[str, Any]  # those that no column of the DataFrame gives
    sent: Dict[str, str]  # columns of the DataFrame by the input that they are
    kept: List[str]  # columns of the DataFrame that come back
    outputs: List[str]


def transform(df: Any, place: model_files.Place, params: OutputParams) -> Any:
    """The DataFrame with the columns that `params` asks for. Raises ValueError if it lacks an input."""
    with place.open() as folder:
        wanted = columns.inputs_of(folder.path)
        given, vectors = _with_arrays(df, wanted)
        inputs, fixed = _stream(given, wanted)
        key = wanted.key or _ROW
        outputs = {o.name: o for o in _ask(folder, inputs) if o.name != key}
    added = _added(params, outputs)
    kept = params.kept_of(df.columns)
    for name in added:
        if name in kept:
            raise ValueError(f"the DataFrame has a column '{name}' already: drop it, or set another name")
    if not kept and not added:
        raise ValueError("transform would give no column: keptCols is empty, and no output is asked for")
    task = _Task(
        place=place,
        inputs=inputs,
        fixed=fixed,
        sent={c["name"]: vectors.get(c["name"], c["name"]) for c in inputs if c["name"] not in fixed},
        kept=kept,
        outputs=[name for name in outputs if any(name in sources for sources, _ in added.values())],
    )
    # What the tasks need not see stays out of the conversion to Arrow, which costs more than scoring.
    needed = [name for name in given.columns if name in kept or name in task.sent.values()]
    rows = given.select(*(columns.single(given, name) for name in needed))
    fields = [*(df.schema[name] for name in kept), *(_field(outputs[name]) for name in task.outputs)]
    scored = rows.mapInArrow(_scorer(task), spark_types.StructType(fields))
    return _finished(scored, kept, added)


def _with_arrays(df: Any, wanted: columns.Inputs) -> Any:
    """Adds an array for each input that is a vector of Spark ML; returns their names by input."""
    from pyspark.ml.functions import vector_to_array

    vectors = {}
    for column in wanted.inputs:
        name = column["name"]
        if name in df.columns and columns.is_vector(df.schema[name].dataType):
            vectors[name] = _PREFIX + "input_" + name
            array = vector_to_array(columns.single(df, name), "float32")
            df = df.withColumn(vectors[name], array)
    return df, vectors


def _stream(df: Any, wanted: columns.Inputs) -> Any:
    """The inputs that are sent to the program, and the values of those that no column gives."""
    needless = [wanted.label, wanted.weight]
    features = [c for c in wanted.inputs if c["name"] not in needless or not c["name"]]
    schema = spark_types.StructType(
        [
            spark_types.StructField(f.name, spark_types.ArrayType(spark_types.FloatType()))
            if columns.is_vector(f.dataType)
            else f
            for f in df.schema.fields
            if any(f.name == c["name"] for c in features)
        ]
    )
    found = columns.for_model(schema, features, [wanted.key], df.columns)
    fixed: Dict[str, Any] = {}
    key = wanted.named(wanted.key)
    if key is not None and key not in found:
        fixed[wanted.key] = "" if key["type"] == "string" else 0
        found.append(key)
    if not found:
        raise ValueError(columns.missing(features[0]["name"], df.columns))
    return found, fixed


def _ask(folder: model_files.Folder, inputs: List[columns.Column]) -> Iterator[Output]:
    """The model's outputs, from a run without rows, which also checks that the inputs fit."""
    with Scorer(folder, inputs, "the DataFrame") as scorer:
        scorer.end()
        for name, (values, lengths) in scorer.columns().items():
            yield Output(name, str(values.type), lengths is not None)


def _field(output: Output) -> Any:
    kind = _SPARK_TYPES[output.type]
    return spark_types.StructField(
        _PREFIX + output.name, spark_types.ArrayType(kind) if output.list else kind
    )


def _added(params: OutputParams, outputs: Mapping[str, Output]) -> Dict[str, Any]:
    """The columns to add: by name the outputs that it needs and the function that makes it."""
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions as f

    def raw(name: str) -> Any:
        return f.col(columns.quoted(_PREFIX + name))

    found: Dict[str, Any] = {}
    classes = "class_ids" in outputs
    single = [o.name for o in outputs.values() if not o.list and o.type != "binary"]
    predicted = "class_ids" if classes else next((n for n in single if n == "predictions"), "")
    if not predicted and single and not classes:
        predicted = single[0]
    if params.getPredictionCol() and predicted:
        found[params.getPredictionCol()] = ([predicted], lambda: raw(predicted).cast("double"))
    if params.getProbabilityCol() and "probabilities" in outputs and classes:
        found[params.getProbabilityCol()] = (
            ["probabilities"],
            lambda: array_to_vector(raw("probabilities").cast("array<double>")),
        )
    if params.getRawPredictionCol() and classes and "logits" in outputs:
        logits = raw("logits").cast("array<double>" if outputs["logits"].list else "double")
        both = logits if outputs["logits"].list else f.array(-logits, logits)
        found[params.getRawPredictionCol()] = (["logits"], lambda: array_to_vector(both))
    for name in params.getOutputCols():
        if name not in outputs:
            raise ValueError(f"the model has no output '{name}'; it has: {', '.join(outputs)}")
        found[name] = ([name], lambda name=name: raw(name))
    return found


def _finished(scored: Any, kept: List[str], added: Mapping[str, Any]) -> Any:
    from pyspark.sql import functions

    chosen = [functions.col(columns.quoted(name)) for name in kept]
    return scored.select(*chosen, *(make().alias(name) for name, (_, make) in added.items()))


def _scorer(task: _Task) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that a task runs on the batches of its partition."""

    def score(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        where = f"partition {context.partitionId()}" if context is not None else "the rows"
        first = next((batch for batch in batches if batch.num_rows > 0), None)
        if first is None:
            return
        with kept_scorer(task.place, task.inputs, where) as scorer:
            yield from _answers(task, scorer, first, batches)

    return score


def _answers(task: _Task, scorer: Scorer, first: Any, batches: Iterator[Any]) -> Iterator[Any]:
    pending: Deque[Any] = collections.deque()
    batch: Optional[Any] = first
    while batch is not None:
        if batch.num_rows > 0:
            scorer.put(_renamed(batch, task.sent), task.fixed)
            pending.append(batch)
        while len(pending) > _AHEAD:
            yield _answered(task, pending.popleft(), scorer)
        batch = next(batches, None)
    scorer.pause()
    while pending:
        yield _answered(task, pending.popleft(), scorer)


def _renamed(batch: Any, sent: Mapping[str, str]) -> Any:
    """The columns that are sent, by the names of their inputs."""
    import pyarrow

    arrays = [batch.column(batch.schema.get_field_index(name)) for name in sent.values()]
    return pyarrow.RecordBatch.from_arrays(arrays, names=list(sent))


def _answered(task: _Task, batch: Any, scorer: Scorer) -> Any:
    """The rows with what the program said of them."""
    import pyarrow

    answers = scorer.get(batch.num_rows)
    arrays = [batch.column(batch.schema.get_field_index(name)) for name in task.kept]
    arrays += [answers.column(answers.schema.get_field_index(name)) for name in task.outputs]
    return pyarrow.RecordBatch.from_arrays(
        arrays, names=task.kept + [_PREFIX + name for name in task.outputs]
    )
