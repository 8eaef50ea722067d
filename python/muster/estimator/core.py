"""Estimator: each of train, evaluate, predict and export is a run of the `muster` program."""

from __future__ import annotations

import collections
import contextlib
import json
import logging
import os
import pathlib
import re
import tempfile
from typing import (
    Any,
    Callable,
    Deque,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Union,
)

from muster import binary, places, storage
from muster.cells import FLOAT, STRING
from muster.estimator import feeding
from muster.estimator.absent import MODEL_FN
from muster.estimator.export import Finishing, check_features
from muster.estimator.folders import checkpoint_value, configured, timestamped
from muster.estimator.hook_calls import HookCalls, checked_listeners
from muster.estimator.hooks import Asked, ask, own_hooks
from muster.estimator.inputs import FilesInput
from muster.estimator.model import CannedModel
from muster.estimator.old_folders import adopting, continuing
from muster.estimator.predictions import RowReader, always, by_batch, metrics_of
from muster.estimator.run_config import ARGUMENTS, RunConfig
from muster.estimator.spec import ModeKeys, warm_start_settings
from muster.estimator.verbosity import follow_tensorflow
from muster.model_file import SampleInput

logger = logging.getLogger("muster")

_STREAM = "-"
_LABEL = re.compile(r'^label: \{input: ("(?:[^"\\]|\\.)*")', re.MULTILINE)  # in model.yaml
_FILES_BY_SEVERAL = (
    "predict: files are dealt to several tasks by 'muster predict --workers N', which writes a part "
    "a task; an input function of batches is dealt here"
)
_ROW_KEY = "row"  # the key of a row's number in `muster predict`


class Estimator:
    """Base of the canned estimators. A custom model_fn is refused (absent.MODEL_FN).

    MODEL_DIR holds checkpoints, events and exports in TensorFlow's formats. One thread at a time.
    """

    def __init__(
        self,
        model_fn: Any,
        model_dir: Any = None,
        config: Optional[RunConfig] = None,
        params: Optional[Mapping[str, Any]] = None,
        warm_start_from: Any = None,
    ) -> None:
        if not isinstance(model_fn, CannedModel):
            raise ValueError(f"Estimator: {MODEL_FN}")
        follow_tensorflow()
        self._model = model_fn
        self._config, self._model_dir = configured(config, model_dir)
        self._params = dict(params or {})
        self._warm_start = warm_start_settings(warm_start_from)

    @property
    def model_dir(self) -> str:
        return self._model_dir

    @property
    def config(self) -> RunConfig:
        return self._config

    @property
    def params(self) -> Dict[str, Any]:
        return dict(self._params)

    def serving_features(self) -> List[str]:
        """Returns the features that predictions need."""
        return self._model.serving_features()

    def latest_checkpoint(self) -> Optional[str]:
        """Returns the prefix of the newest checkpoint, or None."""
        state = storage.read_text(os.path.join(self._model_dir, "checkpoint"))
        if state is None:
            return None
        found = re.search(r'^model_checkpoint_path: "(.*)"', state, re.MULTILINE)
        return None if found is None else os.path.join(self._model_dir, found.group(1))

    def eval_dir(self, name: Optional[str] = None) -> str:
        """Returns the folder of the event files of evaluations with this name."""
        return os.path.join(self._model_dir, f"eval_{name}" if name else "eval")

    def get_variable_names(self) -> List[str]:
        """Returns the names of the variables of the newest checkpoint."""
        self._check_trained()
        events = binary.run(["inspect", self._model_dir, "--json"])
        return sorted(event["name"] for event in events if "name" in event)

    def get_variable_value(self, name: str) -> Any:
        """Returns a variable's value in the newest checkpoint, as a numpy array."""
        self._check_trained()
        return checkpoint_value(str(self.latest_checkpoint()), name)

    def train(
        self,
        input_fn: Any,
        hooks: Any = None,
        steps: Optional[int] = None,
        max_steps: Optional[int] = None,
        saving_listeners: Any = None,
    ) -> Estimator:
        """Trains until the input ends, or for `steps` steps. A second call continues."""
        self._config.task.check_trains()
        asked = ask(hooks, self._model_dir, self._global_step())
        calls = HookCalls(
            {"train": asked.own}, [*asked.listeners, *checked_listeners(saving_listeners)]
        )
        last_step = asked.stop_at(self._last_step(steps, max_steps))
        done = last_step is not None and last_step <= self._global_step()
        if done and not self._config.task.in_cluster:
            logger.info("Skipping training since max_steps has already saved.")
            return self
        self._train(input_fn, last_step, asked, calls, lambda folder, label: [])
        return self

    def evaluate(
        self,
        input_fn: Any,
        steps: Optional[int] = None,
        hooks: Any = None,
        checkpoint_path: Optional[str] = None,
        name: Optional[str] = None,
    ) -> Dict[str, Any]:
        """Returns a checkpoint's (the newest's) metrics with TensorFlow's names, and global_step."""
        calls = HookCalls({"eval": own_hooks(hooks, "evaluate")})
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        flags = self._check_trained(checkpoint_path)
        flags += ["--json", "--threads", self._config.threads]
        if name is not None:
            flags += ["--name", name]
        if steps is not None:
            flags += ["--steps", steps]
        returned = self._call(input_fn, ModeKeys.EVAL)
        label = self._label()
        if isinstance(returned, FilesInput):
            feeding.check_label(returned, label)
            sample, feed = self._file_sample(returned), None
            data = self._file_flags("--data", returned)
        else:
            batches = feeding.open_batches(returned, ModeKeys.EVAL, steps is not None)
            sample, feed = batches.sample(), self._feed(batches, label, steps)
            data = ["--data", _STREAM]
        command = ["evaluate", "--model-dir", self._model_dir, *data, *flags]
        with adopting(self._model, self._model_dir, sample, label):
            return metrics_of(binary.run(command, feed, calls, names=ARGUMENTS))

    def predict(
        self,
        input_fn: Any,
        predict_keys: Union[None, str, Sequence[str]] = None,
        hooks: Any = None,
        checkpoint_path: Optional[str] = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Dict[str, Any]]:
        """Yields a dict of arrays for each row, or for each batch without `yield_single_examples`.

        In a cluster the batches are distributed in turn among chief and workers, unless the input
        function takes an argument `input_context` and distributes the data itself.
        """
        calls = HookCalls({"predict": own_hooks(hooks, "predict")})
        flags = self._check_trained(checkpoint_path)
        reader = RowReader(predict_keys, self._model.head)
        sizes: Deque[int] = collections.deque()
        task = self._config.task
        if not task.trains:
            logger.info("%s-%d predicts nothing: chief and workers do", task.type, task.index)
            return
        returned = self._call(input_fn, ModeKeys.PREDICT)
        flags += ["--out", "-", "--json", "--quiet", "--threads", self._config.threads]
        if isinstance(returned, FilesInput):
            if task.workers > 1:
                raise ValueError(_FILES_BY_SEVERAL)
            sample, feed = self._file_sample(returned), None
            data = self._file_flags("--data", returned)
        else:
            batches = feeding.open_batches(returned, ModeKeys.PREDICT, bounded=False)
            if not feeding.takes_context(input_fn):
                dealt = batches.dealt(task.rank, task.workers)
                if dealt is None:
                    return
                batches = dealt
            sample, feed = batches.sample(), self._feed(batches, None, None, sizes)
            data = ["--data", _STREAM]
        command = ["predict", "--model-dir", self._model_dir, *data, *flags]
        with adopting(self._model, self._model_dir, sample, self._label()):
            rows = (reader.single(row, _ROW_KEY) for row in binary.stream(command, feed, calls, ARGUMENTS))
            if yield_single_examples:
                yield from rows
                return
            counts = iter(sizes.popleft, None) if feed else always(returned.batch_size)
            for batch in by_batch(rows, counts):
                yield reader.stacked(batch)

    def export_saved_model(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Any,
        assets_extra: Optional[Mapping[str, str]] = None,
        as_text: bool = False,
        checkpoint_path: Optional[str] = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """Writes EXPORT_DIR_BASE/<seconds since 1970> and returns its path, as bytes."""
        finishing = Finishing(assets_extra, as_text)
        if experimental_mode != ModeKeys.PREDICT:
            raise ValueError(f"experimental_mode {experimental_mode}: only 'infer' is exported")
        if checkpoint_path is None and self.latest_checkpoint() is None:
            raise ValueError(f"Couldn't find trained model at {self._model_dir}.")
        flags = self._check_trained(checkpoint_path)
        check_features(serving_input_receiver_fn, self._model.serving_features())
        path = timestamped(places.any_path(export_dir_base))
        flags += ["--model-dir", self._model_dir, "--out", path, "--json"]
        binary.run(["export", *flags], names=ARGUMENTS)
        finishing.finish(path)
        return path.encode()

    export_savedmodel = export_saved_model

    def _train(
        self,
        input_fn: Any,
        last_step: Optional[int],
        asked: Asked,
        calls: HookCalls,
        more_flags: Callable[[pathlib.Path, str], List[object]],
        seen: Optional[Callable[[binary.Event], None]] = None,
    ) -> List[binary.Event]:
        """Trains up to `last_step`, as the hooks `asked`, and returns the program's events.

        more_flags: called with a temporary folder that exists while the program runs, and the name
        of the label. In a cluster this runs only this task's part: a replica or a server.
        """
        task = self._config.task
        returned = self._call(input_fn, ModeKeys.TRAIN)
        with tempfile.TemporaryDirectory(prefix="muster-") as name:
            folder = pathlib.Path(name)
            command: List[object] = ["worker" if task.in_cluster else "train"]
            command += [folder / "model.yaml"]
            label_ids = False
            if isinstance(returned, FilesInput):
                label = returned.label
                sample, feed = self._file_sample(returned), None
                command += self._training_files(returned, last_step)
            else:
                label = self._label()
                batches = feeding.open_batches(returned, ModeKeys.TRAIN, last_step is not None)
                sample, feed = batches.sample(), self._feed(batches, label, self._limit(last_step))
                label_ids = self._model.head.multi_label and batches.labels_are_ids()
                command += ["--train", _STREAM]
                # a server or an evaluator reads the input only for the model's sake
                if not task.trains:
                    batches.close()
                    feed = None
            self._model.write(folder, sample, label, label_ids)
            if last_step is not None:
                command += ["--max-steps", last_step]
            command += ["--model-dir", self._model_dir, "--fresh-data", "--json"]
            command += self._config.replace(**asked.config).train_flags()
            command += [*self._warm_start_flags(), *asked.flags, *more_flags(folder, label)]
            with continuing(self._model_dir):
                return binary.run(command, feed, calls, seen, ARGUMENTS)

    def _limit(self, last_step: Optional[int]) -> Optional[int]:
        """Returns how many batches a training needs; None in a cluster, where that is not known."""
        if last_step is None or self._config.task.in_cluster:
            return None
        return max(0, last_step - self._global_step())

    def _training_files(self, files: FilesInput, last_step: Optional[int]) -> List[object]:
        flags = self._file_flags("--train", files)
        if files.num_epochs is not None:
            flags += ["--epochs", files.num_epochs]
        elif last_step is None:
            raise ValueError("num_epochs=None never ends: say steps or max_steps")
        return flags if files.shuffle else [*flags, "--no-shuffle"]

    def _evaluation_data(
        self, input_fn: Any, steps: Optional[int], folder: pathlib.Path, label: str
    ) -> List[object]:
        """Returns flags for evaluations during a training; FOLDER has a file with their batches."""
        returned = self._call(input_fn, ModeKeys.EVAL)
        flags: List[object] = [] if steps is None else ["--eval-steps", steps]
        if isinstance(returned, FilesInput):
            feeding.check_label(returned, label)
            return [*flags, "--eval", *returned.patterns]
        batches = feeding.open_batches(returned, ModeKeys.EVAL, steps is not None)
        path = folder / "evaluation.batches"
        with open(path, "wb") as file:
            self._feed(batches, label, steps)(file.write)
        return [*flags, "--eval", path]

    def _feed(
        self,
        batches: feeding.Batches,
        label: Optional[str],
        limit: Optional[int],
        sizes: Optional[Deque[int]] = None,
    ) -> binary.Feed:
        columns = self._model.stream_columns(batches.sample(), with_weight=label is not None)
        labels = None if label is None else self._model.label_column(label)

        def feed(write: binary.Write) -> None:
            with contextlib.closing(batches):
                feeding.write_batches(write, batches, columns, labels, limit, sizes)

        return feed

    def _file_flags(self, flag: str, files: FilesInput) -> List[object]:
        return [flag, *files.patterns, "--batch-size", files.batch_size]

    def _file_sample(self, files: FilesInput) -> Dict[str, SampleInput]:
        """Returns what FilesInput says about each feature, instead of a first batch."""
        sample = {}
        for name, use in self._model.uses().items():
            kind = files.types.get(name) or next(
                iter(use.types), "float" if use.numeric else STRING
            )
            if use.raw and kind == FLOAT:
                raise ValueError(
                    f"column '{name}' is a key of a cross: in files that is a string or an int; "
                    "bucketize floats first"
                )
            extra: Dict[str, Any] = {}
            if name in files.missing:
                extra["missing"] = files.missing[name]
            if name in files.defaults:
                extra["default"] = files.defaults[name]
            several = name in files.lists or use.size > 1
            sample[name] = SampleInput(kind, several, extra)
        return sample

    def _warm_start_flags(self) -> List[object]:
        if self._warm_start is None or self.latest_checkpoint() is not None:
            return []
        return ["--warm-start", self._warm_start.flag()]

    def _label(self) -> str:
        """Returns the name of the label: the trained model's, if there is one."""
        text = storage.read_text(os.path.join(self._model_dir, "model.yaml"))
        if text is not None:
            found = _LABEL.search(text)
            if found is not None:
                return str(json.loads(found.group(1)))
        return self._model.label_name()

    def _call(self, input_fn: Any, mode: str) -> Any:
        return feeding.call_input_fn(input_fn, mode, self._config, self._params)

    def _last_step(self, steps: Optional[int], max_steps: Optional[int]) -> Optional[int]:
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        return max_steps if steps is None else self._global_step() + steps

    def _global_step(self) -> int:
        """Returns the step of the newest checkpoint; 0 if there is none."""
        latest = self.latest_checkpoint()
        return int(latest.rsplit("-", 1)[1]) if latest else 0

    def _check_trained(self, checkpoint_path: Any = None) -> List[object]:
        """Returns the flags for the checkpoint to use; no flags mean the newest one."""
        if checkpoint_path is None:
            if self.latest_checkpoint() is None:
                raise ValueError(f"Could not find trained model in model_dir: {self._model_dir}.")
            return []
        prefix = os.fspath(checkpoint_path)
        if not storage.exists(f"{prefix}.index"):
            raise ValueError(f"checkpoint_path {prefix}: there is no {prefix}.index")
        elsewhere = os.path.normpath(os.path.dirname(prefix)) != os.path.normpath(self._model_dir)
        if elsewhere and not storage.exists(os.path.join(self._model_dir, "model.yaml")):
            raise ValueError(
                f"checkpoint_path {prefix}: the model_dir {self._model_dir} has no model.yaml, which "
                "says what that checkpoint's weights are; give the model_dir that it was trained in"
            )
        return ["--checkpoint", prefix]
