"""Columns of a DataFrame as the features of a record: which type holds which, checked on the driver."""

from __future__ import annotations

import difflib
import json
import subprocess
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from pyspark.sql import types as spark_types

from muster import binary

Column = Dict[str, Any]  # as muster.arrow_stream has it

_INTS = (
    spark_types.BooleanType,
    spark_types.ByteType,
    spark_types.ShortType,
    spark_types.IntegerType,
    spark_types.LongType,
    spark_types.TimestampType,
    spark_types.TimestampNTZType,
    spark_types.DateType,
)
_FLOATS = (spark_types.FloatType, spark_types.DoubleType, spark_types.DecimalType)
_STRINGS = (spark_types.StringType, spark_types.BinaryType)


class Inputs(NamedTuple):
    """What `muster inspect --inputs` says of a model."""

    inputs: List[Column]
    label: str
    weight: str
    key: str

    def named(self, name: str) -> Optional[Column]:
        return next((column for column in self.inputs if column["name"] == name), None)


def inputs_of(model: str) -> Inputs:
    """Of a model file, a model's folder or an exported model. Raises MusterError."""
    done = subprocess.run(
        [binary.find(), "inspect", model, "--inputs", "--json"], capture_output=True, check=False
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise binary.MusterError(said[len("muster: ") :] if said.startswith("muster: ") else said)
    return Inputs(**json.loads(done.stdout))


def of_schema(schema: Any) -> List[Column]:
    """The features of all columns of a schema. Raises ValueError for a type that no feature holds.

    A null becomes a feature without values, so every feature is a list.
    """
    return [_of_field(field.name, field.dataType) for field in schema.fields]


def _of_field(name: str, given: Any) -> Column:
    element = given.elementType if isinstance(given, spark_types.ArrayType) else given
    kind = kind_of(element)
    if kind is None:
        raise ValueError(_no_feature(name, given))
    return {"name": name, "type": kind, "list": True}


def for_model(
    schema: Any, inputs: Sequence[Column], optional: Sequence[str] = (), all_names: Sequence[str] = ()
) -> List[Column]:
    """The columns of `schema`, which are some of all_names, that the inputs want.

    optional: inputs that may be missing. Raises ValueError for another one that is missing, also if it
    has a default, since its name may be misspelt; and for a column that cannot be the input.
    """
    fields = {field.name: field for field in schema.fields}
    found = []
    for column in inputs:
        name = column["name"]
        if name in fields:
            _check(fields[name], column)
            found.append(column)
        elif name not in optional:
            raise ValueError(missing(name, all_names or list(fields)))
    return found


def missing(name: str, names: Sequence[str], why: str = "which the model needs") -> str:
    alike = [other for other in names if other.lower() == name.lower()]
    near = alike or difflib.get_close_matches(name, names, 1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"the DataFrame has no column '{name}', {why}{hint}; it has: {shown}"


def _check(field: Any, column: Mapping[str, Any]) -> None:
    given = field.dataType
    lists = isinstance(given, spark_types.ArrayType)
    kind = kind_of(given.elementType if lists else given)
    if kind is None:
        raise ValueError(_no_feature(field.name, given))
    if lists and not column["list"]:
        raise ValueError(
            f"column '{field.name}' is {given.simpleString()}, but the model file says one value per "
            "row (list: true takes lists)"
        )


def kind_of(given: Any) -> Optional[str]:
    """ "int", "float" or "string" of a type of one value; None if no feature holds it."""
    for types, kind in ((_INTS, "int"), (_FLOATS, "float"), (_STRINGS, "string")):
        if isinstance(given, types):
            return kind
    return None


def _no_feature(name: str, given: Any) -> str:
    return (
        f"column '{name}' is {given.simpleString()}, which no feature holds: numbers, strings, binary, "
        "timestamps, dates and arrays of these can be one; select others away or cast them"
    )


def single(df: Any, name: str) -> Any:
    """The column of that name, which the DataFrame has. Raises ValueError if it has several."""
    from pyspark.sql import functions

    alike = [other for other in df.columns if other.lower() == name.lower()]
    if len(alike) > 1 and df.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        alike = [other for other in alike if other == name]
    if len(alike) > 1:
        raise ValueError(
            f"the DataFrame has {len(alike)} columns that Spark takes for '{name}': {', '.join(alike)}. Keep one, by a select "
            "where they are made, or rename the others: df.toDF(NAME, ...)"
        )
    return functions.col(quoted(name))


def without_vectors(df: Any, names: Sequence[str]) -> Any:
    """These columns of the DataFrame, with Spark ML's vectors as arrays of floats."""
    from pyspark.ml.functions import vector_to_array

    chosen = []
    for name in names:
        one = single(df, name)
        if is_vector(df.schema[name].dataType):
            one = vector_to_array(one, "float32").alias(name)
        chosen.append(one)
    return df.select(*chosen)


def is_vector(given: Any) -> bool:
    return isinstance(given, spark_types.UserDefinedType) and type(given).__name__ == "VectorUDT"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
