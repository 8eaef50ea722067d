"""parquet_pyarrow.py FOLDER: reads the table of bench/parquet.py by pyarrow alone, and prints its sums.

parquet_pyarrow.py --make ROWS FOLDER: writes the table, as Spark would: snappy, dictionaries, row groups.
"""

import json
import random
import sys
from pathlib import Path

import pyarrow
from pyarrow import compute, parquet

INTS, FLOATS, TEXTS = 6, 4, 4
COLUMNS = [*(f"i{i}" for i in range(INTS)), *(f"f{i}" for i in range(FLOATS)), *(f"s{i}" for i in range(TEXTS)), "bag"]
BATCH_ROWS = 16384


def make(rows: int, folder: Path) -> None:
    chance = random.Random(1)
    words = ["%08x" % chance.getrandbits(32) for _ in range(50_000)]
    part = 100_000
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(0, rows, 5 * part):
        with parquet.ParquetWriter(folder / f"part-{number:09}.snappy.parquet", schema(), compression="snappy") as writer:
            for _ in range(min(5, (rows - number) // part)):
                columns = [
                    *(pyarrow.array([None if chance.random() < 0.1 else chance.randrange(1000) for _ in range(part)],
                                    pyarrow.int32()) for _ in range(INTS)),
                    *(pyarrow.array([chance.random() for _ in range(part)]) for _ in range(FLOATS)),
                    *(pyarrow.array(chance.choices(words[: 10 ** (i + 1)], k=part)) for i in range(TEXTS)),
                    pyarrow.array([[chance.randrange(10**6) for _ in range(chance.randrange(6))] for _ in range(part)],
                                  pyarrow.list_(pyarrow.int64())),
                ]  # fmt: skip
                writer.write_table(pyarrow.table(columns, schema=schema()))


def schema() -> pyarrow.Schema:
    types = [pyarrow.int32()] * INTS + [pyarrow.float64()] * FLOATS + [pyarrow.string()] * TEXTS
    return pyarrow.schema(list(zip(COLUMNS, [*types, pyarrow.list_(pyarrow.int64())])))


def read(folder: Path) -> None:
    rows = ints = bytes_ = 0
    floats = 0.0
    for path in sorted(folder.iterdir()):
        file = parquet.ParquetFile(path, memory_map=True)
        for batch in file.iter_batches(BATCH_ROWS, columns=COLUMNS, use_threads=False):
            rows += batch.num_rows
            for name in COLUMNS:
                values = batch.column(name)
                if name == "bag":
                    values = values.flatten()
                if name[0] == "s":
                    bytes_ += compute.sum(compute.binary_length(values)).as_py()
                elif name[0] == "f":
                    floats += compute.sum(values).as_py()
                else:
                    ints += compute.sum(values).as_py() or 0
    print(json.dumps({"rows": rows, "ints": ints, "floats": floats, "bytes": bytes_}))


if sys.argv[1] == "--make":
    make(int(sys.argv[2]), Path(sys.argv[3]))
else:
    read(Path(sys.argv[1]))
