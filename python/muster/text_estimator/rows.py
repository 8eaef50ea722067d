"""Rows of a DataFrame as JSON objects, one a record, and back as Row objects of the same types.

JSON and not pickle: a record of a topic, which others may write to, is never run as code.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
from typing import Any, Callable, Dict, List, Sequence

from pyspark.sql import functions, types

TEXT = "value"  # the only column of a DataFrame of records

_Decode = Callable[[Any], Any]
_WHOLE = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSxxx",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


class BadRecord(ValueError):
    """A record that is no row of the schema."""


def encoded(df: Any) -> Any:
    """A DataFrame of one column of JSON objects. Raises ValueError for a column that has no JSON."""
    if not df.columns:
        raise ValueError("the DataFrame has no columns")
    if len(set(df.columns)) < len(df.columns):
        raise ValueError(f"two columns have the same name; the columns are: {', '.join(df.columns)}")
    RowDecoder(row_schema(df.schema))  # refuses types here, on the driver
    chosen = [_encoded_column(field) for field in df.schema.fields]
    return df.select(functions.to_json(functions.struct(*chosen), _OPTIONS).alias(TEXT))


def _encoded_column(field: Any) -> Any:
    from pyspark.ml.functions import vector_to_array

    column = functions.col("`" + field.name.replace("`", "``") + "`")
    if _is_vector(field.dataType):
        column = vector_to_array(column)
    elif isinstance(field.dataType, types.DecimalType):
        column = column.cast("string")  # all digits
    return column.alias(field.name)


def row_schema(schema: Any) -> Any:
    """The schema of the rows that are read: vectors of Spark ML are arrays."""
    fields = []
    for field in schema.fields:
        kind = field.dataType
        if _is_vector(kind):
            kind = types.ArrayType(types.DoubleType())
        fields.append(types.StructField(field.name, kind, True))
    return types.StructType(fields)


def schema_text(schema: Any) -> str:
    """The schema's JSON as a text, always the same."""
    return json.dumps(schema, sort_keys=True)


def _is_vector(kind: Any) -> bool:
    return isinstance(kind, types.UserDefinedType) and type(kind).__name__ == "VectorUDT"


class RowDecoder:
    """Makes Row objects of records."""

    def __init__(self, schema: Any) -> None:
        self._decode = _struct(schema)

    def decode(self, text: str) -> Any:
        """Raises BadRecord for what is no row."""
        try:
            return self._decode(json.loads(text))
        except (ValueError, TypeError, ArithmeticError) as error:
            raise BadRecord(f"is no row: {error}") from None


def _decoder(kind: Any) -> _Decode:
    """What makes a value of Spark of one of JSON. It raises ValueError, TypeError or ArithmeticError."""
    if isinstance(kind, _WHOLE):
        return _same(int)
    if isinstance(kind, types.StringType):
        return _same(str)
    if isinstance(kind, types.BooleanType):
        return _same(bool)
    if isinstance(kind, types.NullType):
        return _same(type(None))
    if isinstance(kind, (types.FloatType, types.DoubleType)):
        return float  # also of "NaN", "Infinity" and "-Infinity"
    if isinstance(kind, types.DecimalType):
        return lambda value: decimal.Decimal(str(value))
    if isinstance(kind, types.BinaryType):
        return lambda value: bytearray(base64.b64decode(value, validate=True))
    if isinstance(kind, types.DateType):
        return datetime.date.fromisoformat
    if isinstance(kind, types.TimestampType):
        return _timestamp
    if isinstance(kind, types.TimestampNTZType):
        return datetime.datetime.fromisoformat
    if isinstance(kind, types.ArrayType):
        return _array(kind)
    if isinstance(kind, types.MapType):
        return _map(kind)
    if isinstance(kind, types.StructType):
        return _struct(kind)
    raise ValueError(
        f"a value of type {kind.simpleString()} is no value of a record: cast the column, or leave it out"
    )


def _same(wanted: Any) -> _Decode:
    def check(value: Any) -> Any:
        if type(value) is not wanted:
            raise TypeError(f"{value!r} is no {wanted.__name__}")
        return value

    return check


def _timestamp(value: str) -> datetime.datetime:
    """As Spark gives timestamps to Python: local time without a zone."""
    return datetime.datetime.fromisoformat(value).astimezone().replace(tzinfo=None)


def _array(kind: Any) -> _Decode:
    decode = _decoder(kind.elementType)

    def decode_array(values: Any) -> List[Any]:
        if not isinstance(values, list):
            raise TypeError(f"{values!r} is no array")
        return [None if value is None else decode(value) for value in values]

    return decode_array


def _map(kind: Any) -> _Decode:
    decode, key = _decoder(kind.valueType), kind.keyType
    if not isinstance(key, (types.StringType, *_WHOLE)):
        raise ValueError(f"a map with keys of type {key.simpleString()} is no value of a record")
    whole = isinstance(key, _WHOLE)

    def decode_map(values: Any) -> Dict[Any, Any]:
        if not isinstance(values, dict):
            raise TypeError(f"{values!r} is no map")
        found = {}
        for name, value in values.items():
            found[int(name) if whole else name] = None if value is None else decode(value)
        return found

    return decode_map


def _struct(kind: Any) -> _Decode:
    names: Sequence[str] = kind.names
    make = types.Row(*names)
    decoders = [_decoder(field.dataType) for field in kind.fields]
    pairs = list(zip(names, decoders))

    def decode_struct(values: Any) -> Any:
        if not isinstance(values, dict):
            raise TypeError(f"{values!r} is no JSON object")
        found = []
        for name, decode in pairs:
            if name not in values:
                raise ValueError(f"column '{name}' is missing")
            value = values[name]
            found.append(None if value is None else decode(value))
        return make(*found)

    return decode_struct
