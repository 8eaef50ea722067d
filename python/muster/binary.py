"""Finds the muster program, runs its verbs, and turns its failures into exceptions."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import weakref
from typing import IO, Any, Callable, Dict, Iterator, List, Mapping, Optional, Protocol, Sequence

Event = Dict[str, Any]
Write = Callable[[bytes], Any]
Feed = Callable[[Write], None]
Names = Mapping[str, str]  # of arguments, by the flags that they become

class Calls(Protocol):
    """Answers the program's calls of hooks (docs/formats/hook_calls.md)."""

    def wanted(self) -> List[str]: ...

    def answer(self, event: Mapping[str, Any]) -> Dict[str, Any]: ...


logger = logging.getLogger("muster")

_CALL = b'{"event":"call",'
_FLAG = re.compile(r"--[a-z][a-z-]*")
# A task of a cluster would report its data as cut; a study, whose trials are the caller's, that they failed.
_ENDING_WITH_US = ("worker", "tune")
_WARNING = "warning: "  # how the program marks warnings, also with --quiet
_STOP_SECONDS = 30
_TERMINATED = 128 + signal.SIGTERM
_PIPE_BYTES = 1 << 20
_PR_SET_PDEATHSIG = 1
_F_SETPIPE_SZ = 1031  # Python 3.10 and later call it fcntl.F_SETPIPE_SZ


class MusterError(RuntimeError):
    """Raised when the muster program fails, with the program's message."""


def find() -> str:
    """Returns the path of the program: MUSTER_BINARY, else the one inside this package, else the one
    in PATH.

    Raises MusterError if there is none.
    """
    named = os.environ.get("MUSTER_BINARY")
    path = pathlib.Path(named) if named else pathlib.Path(__file__).parent / "bin" / "muster"
    if path.is_file() and os.access(path, os.X_OK):
        return str(path)
    if named:
        raise MusterError(f"MUSTER_BINARY names no program: {path}")
    in_path = shutil.which("muster")
    if in_path is not None:
        return in_path
    raise MusterError(
        f"no muster program at {path} or in PATH: install the package with 'pip install .' in Muster's "
        "checkout, or name a built one: MUSTER_BINARY=.../build/release/src/muster/muster"
    )


def main() -> None:
    """The command `muster` of the installed package."""
    program = find()
    os.execv(program, [program, *sys.argv[1:]])


def run(
    arguments: Sequence[object],
    feed: Optional[Feed] = None,
    calls: Optional[Calls] = None,
    seen: Optional[Callable[[Event], None]] = None,
    names: Optional[Names] = None,
) -> List[Event]:
    """Runs a verb and returns what it printed with --json: one object per line.

    feed: writes the program's standard input. An exception that it raises is raised here, after the
    program has been stopped.
    calls: answers the program's calls of hooks, in this thread; its exceptions are raised here too.
    seen: called with each object as it arrives; its exceptions are raised here too.
    names: what flags are called in Python. Messages name these arguments instead.

    Progress goes to the logger "muster". Raises MusterError with the program's message if it fails.
    SIGTERM, unless this process handles it, is passed to the program, which saves its state; then
    this process exits with 143.
    """
    with _Running(arguments, feed, calls, names) as running, running.passing_on_sigterm():
        events = []
        for line in running.lines():
            events.append(json.loads(line))
            if seen is not None:
                seen(events[-1])
        return events


def call(arguments: Sequence[object], names: Optional[Names] = None) -> None:
    """As `run`, for a verb whose output is for people: it goes to the logger "muster"."""
    with _Running(arguments, None, None, names) as running, running.passing_on_sigterm():
        for line in running.lines():
            logger.info(line.decode(errors="replace").rstrip())


def stream(
    arguments: Sequence[object],
    feed: Optional[Feed] = None,
    calls: Optional[Calls] = None,
    names: Optional[Names] = None,
) -> Iterator[Event]:
    """Like `run`, but yields each object as it arrives. Closing the generator stops the program."""
    with _Running(arguments, feed, calls, names) as running:
        for line in running.lines():
            yield json.loads(line)


# Threads of this process. If the interpreter ends before its threads do, a thread inside a C++
# library (TensorFlow, which makes batches) makes the process abort.
_RUNNING: weakref.WeakSet[_Running] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    for running in list(_RUNNING):
        running.stop()


class _Running:
    """A running verb. One thread feeds it, another reads its progress, and the caller reads its
    results."""

    def __init__(
        self,
        arguments: Sequence[object],
        feed: Optional[Feed],
        calls: Optional[Calls],
        names: Optional[Names],
    ) -> None:
        command = [find(), *map(str, arguments)]
        self._calls = calls
        self._names = names or {}
        self._answers: Optional[IO[bytes]] = None
        theirs = -1
        if calls is not None and calls.wanted():
            theirs, ours = os.pipe()
            self._answers = os.fdopen(ours, "wb", buffering=0)
            command += ["--hook-calls", ",".join(calls.wanted()), "--hook-answers", str(theirs)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # an interrupt then reaches it only once, through this process
            pass_fds=() if theirs < 0 else (theirs,),
            preexec_fn=_ending_with_this_process() if command[1] in _ENDING_WITH_US else None,
        )
        if theirs >= 0:
            os.close(theirs)
        self._feed = feed
        self._feed_error: Optional[BaseException] = None
        self._message: List[str] = []
        self._told = False  # whether a signal has told the program to end
        self._threads = [threading.Thread(target=self._read_progress, daemon=True)]
        if feed:
            self._threads.append(threading.Thread(target=self._write_input, daemon=True))
        for thread in self._threads:
            thread.start()
        _RUNNING.add(self)

    def __enter__(self) -> _Running:
        return self

    @contextlib.contextmanager
    def passing_on_sigterm(self) -> Iterator[None]:
        here = threading.current_thread() is threading.main_thread()
        if not here or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
            yield
            return
        signal.signal(signal.SIGTERM, lambda number, frame: self._end())
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _end(self) -> None:
        self._told = True
        self._process.send_signal(signal.SIGTERM)

    def lines(self) -> Iterator[bytes]:
        """Yields the program's output; at its end raises the error of either side."""
        for line in _required(self._process.stdout):
            if line.startswith(_CALL):
                self._answer(line)
            else:
                yield line
        code = self._process.wait()
        if code != 0 and self._told:
            raise SystemExit(_TERMINATED)
        for thread in self._threads:
            thread.join()
        if self._feed_error is not None:
            raise self._feed_error
        if code != 0:
            text = "\n".join(self._message) or f"muster ended with code {code}"
            raise MusterError(text[len("muster: ") :] if text.startswith("muster: ") else text)

    def _answer(self, line: bytes) -> None:
        assert self._calls is not None
        try:
            self._tell(self._calls.answer(json.loads(line)))
        except BaseException as error:
            self._tell({"error": f"{type(error).__name__}: {error}"})
            raise

    def _tell(self, answer: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # its exit code explains why it has ended
            _required(self._answers).write(json.dumps(answer).encode() + b"\n")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the program if it still runs, and then its threads."""
        _RUNNING.discard(self)
        if self._answers is not None:
            self._answers.close()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._threads[0].join(_STOP_SECONDS)  # this thread reads what is closed here
        for pipe in (self._process.stdout, self._process.stderr):
            _required(pipe).close()
        # this thread ends at its next write, but may wait for its next batch
        for thread in self._threads[1:]:
            thread.join(_STOP_SECONDS)

    def _write_input(self) -> None:
        pipe = _required(self._process.stdin)
        with contextlib.suppress(OSError, ImportError):
            import fcntl

            fcntl.fcntl(pipe.fileno(), _F_SETPIPE_SZ, _PIPE_BYTES)
        try:
            assert self._feed is not None
            self._feed(pipe.write)
        except BrokenPipeError:
            pass  # it needs no more input: its exit code says whether that is right
        except BaseException as error:  # raised again in lines()
            self._feed_error = error
        with contextlib.suppress(BrokenPipeError):
            pipe.close()

    def _read_progress(self) -> None:
        for raw in _required(self._process.stderr):
            line = self._in_python(raw.decode(errors="replace").rstrip())
            try:
                event = json.loads(line)
            except ValueError:
                event = None
            kind = event.get("event") if isinstance(event, dict) else None
            if kind == "progress":
                logger.info(_progress_text(event))
            elif kind == "note":
                warns = event.get("level") == "warning"
                logger.log(logging.WARNING if warns else logging.INFO, event["text"])
            elif line.startswith(_WARNING):
                logger.warning(line[len(_WARNING) :])
            elif line:
                self._message.append(line)


    def _in_python(self, text: str) -> str:
        return _FLAG.sub(lambda flag: self._names.get(flag[0], flag[0]), text)


def _ending_with_this_process() -> Callable[[], None]:
    """Makes the program end with this process, also when that is killed."""
    import ctypes

    prctl, number = ctypes.CDLL(None).prctl, int(signal.SIGKILL)

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, number)

    return ask


def _required(pipe: Optional[IO[bytes]]) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _progress_text(event: Event) -> str:
    text = f"{event.get('verb')}: step {event.get('step')}"
    if event.get("total_steps"):
        text += f" of {event['total_steps']}"
    text += f", {event.get('examples_per_second', 0):.0f} examples/s"
    return text + (f", loss {event['loss']}" if "loss" in event else "")
