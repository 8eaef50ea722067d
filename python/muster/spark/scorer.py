"""A running `muster predict`, which a Python worker keeps for its next tasks of the same model."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import tempfile
import threading
from typing import IO, Any, Dict, Iterator, List, Mapping, NamedTuple, Optional

from muster import binary
from muster.spark import columns, hadoop, model_files


class _Kept(NamedTuple):
    """A scorer between two tasks."""

    model: str  # and the columns that are sent
    scorer: Scorer
    ends: contextlib.ExitStack  # what ends it


# Of a program that is not to get more rows. One that has failed may wait for them before it says so.
_SILENT_SECONDS = 4.0
_MOST_KEPT = 2  # for a pipeline of two models, whose tasks Spark gives to any of its workers
_kept: List[_Kept] = []  # wait for this process's next task, the newest last; a task that uses one removes it


@contextlib.contextmanager
def kept_scorer(
    place: model_files.Place, inputs: List[columns.Column], where: str
) -> Iterator[Scorer]:
    """The scorer of this process's last task with the same model and columns, or else a new one.

    It is kept for the next task, unless the block ends early or with an error: Spark has many small tasks, and a model
    that TensorFlow computes takes half a second to start.
    """
    version = place.version()
    model = json.dumps([version, inputs])
    kept = _take(model)
    with contextlib.ExitStack() if kept is None else kept.ends as ends:
        if kept is not None and kept.scorer.may_go_on():
            scorer = kept.scorer
            scorer.name_rows(where)
        else:
            ends.close()
            scorer = ends.enter_context(Scorer(ends.enter_context(place.open()), inputs, where))
        yield scorer
        if version is not None:
            _kept.append(_Kept(model, scorer, ends.pop_all()))
    while len(_kept) > _MOST_KEPT:
        _kept.pop(0).ends.close()


def _take(model: str) -> Optional[_Kept]:
    for kept in _kept:
        if kept.model == model:
            _kept.remove(kept)
            return kept
    return None


class Scorer:
    """A running `muster predict`. put() and get() belong to one thread; another one reads."""

    def __init__(self, folder: model_files.Folder, inputs: List[columns.Column], where: str) -> None:
        from muster.arrow_stream import StreamWriter

        hadoop.complete(os.environ)
        self._errors: IO[bytes] = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [binary.find(), "predict", "--model-dir", folder.path, "--data", "-", "--out", "-",
             "--format", "batches", "--threads", "1", "--quiet"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            pass_fds=folder.descriptors,
        )  # fmt: skip
        self._read: queue.Queue[Any] = queue.Queue()
        self._thread = threading.Thread(target=self._read_all, daemon=True)
        self._thread.start()
        self._rest: List[Any] = []  # answers that no get() has taken
        self._patience: Optional[float] = None  # for an answer
        self._has_ended = False
        try:
            self._writer = StreamWriter(self._write, inputs, where)
        except BrokenPipeError:
            self.columns()  # raises what the program said
            raise

    def __enter__(self) -> Scorer:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            try:
                pipe.close()  # type: ignore[union-attr]
            except BrokenPipeError:
                pass

    def may_go_on(self) -> bool:
        return not self._has_ended and self._process.poll() is None

    def name_rows(self, where: str) -> None:
        """More rows follow. `where` is what messages about them begin with."""
        self._writer.where = where
        self._patience = None

    def pause(self) -> None:
        """No rows follow until name_rows(). A program that is silent then is ended."""
        self._patience = _SILENT_SECONDS

    def put(self, batch: Any, fixed: Mapping[str, Any]) -> None:
        try:
            self._writer.write(batch, fixed)
        except BrokenPipeError:
            pass  # get() says why

    def end(self) -> None:
        self._has_ended = True
        try:
            self._writer.end()
            self._process.stdin.close()  # type: ignore[union-attr]
        except BrokenPipeError:
            pass

    def columns(self) -> Dict[str, Any]:
        """The stream's columns, once."""
        found: Dict[str, Any] = self._next()
        return found

    def get(self, rows: int) -> Any:
        """The answers to the next rows. Raises MusterError with what the program said."""
        import pyarrow

        found = self._rest
        while sum(batch.num_rows for batch in found) < rows:
            found.append(_as_batch(self._next()))
        table = pyarrow.Table.from_batches(found)
        self._rest = table.slice(rows).to_batches()
        return table.slice(0, rows).combine_chunks().to_batches()[0]

    def _next(self) -> Any:
        try:
            item = self._read.get(timeout=self._patience)
        except queue.Empty:
            self.end()
            self._patience = None
            item = self._read.get()
        if isinstance(item, Exception):
            self._process.wait()
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip()
            raise binary.MusterError(said or str(item))
        return item

    def _write(self, parts: List[Any]) -> None:
        for part in parts:
            self._process.stdin.write(part)  # type: ignore[union-attr]
        self._process.stdin.flush()  # type: ignore[union-attr]

    def _read_all(self) -> None:
        from muster.arrow_stream import read_stream

        try:
            for batch in read_stream(self._process.stdout.read):  # type: ignore[union-attr]
                self._read.put(batch)
            self._read.put(EOFError("muster predict gave fewer rows than it got"))
        except Exception as error:  # raised again by _next()
            self._read.put(error)


def _as_batch(columns_: Mapping[str, Any]) -> Any:
    import pyarrow

    from muster.arrow_stream import offsets_of

    arrays = []
    for values, lengths in columns_.values():
        if str(values.type) == "binary":
            values = values.cast(pyarrow.string())
        if lengths is not None:
            values = pyarrow.ListArray.from_arrays(offsets_of(lengths), values)
        arrays.append(values)
    return pyarrow.RecordBatch.from_arrays(arrays, names=list(columns_))
