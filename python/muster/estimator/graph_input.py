"""Calls input functions of TensorFlow as tf.estimator does: each in its own graph.

The pipelines of TensorFlow 1 (`make_one_shot_iterator(data).get_next()`, queues, tables that need
an initializer) describe a batch; each run of the tensors in a session gives the next one. Called
eagerly, they would give the same batch again and again.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Iterator, List, Mapping, Optional, Tuple

# TensorFlow raises these for code in a graph that needs to run eagerly.
_EAGER_ONLY = (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError)
_STOP_SECONDS = 30


class GraphBatches:
    """Batches that a session of TensorFlow computes. One thread at a time.

    constant: the tensors depend on nothing that changes, so that there is only one batch.
    """

    def __init__(self, tensorflow: Any, graph: Any, features: Any, labels: Any) -> None:
        self._tf, self._graph = tensorflow.compat.v1, graph
        self._fetches = _tensors_of(self._tf, features, labels)
        self.constant = not any(node.op_def.is_stateful for node in graph.get_operations())

    def __iter__(self) -> Iterator[Any]:
        """Yields batches until the pipeline ends or raises. Closing the generator closes the
        session."""
        tf = self._tf
        with self._graph.as_default():
            session = tf.Session(config=tf.ConfigProto(device_count={"GPU": 0}))
            coordinator = tf.train.Coordinator()
            threads: List[Any] = []
        try:
            with self._graph.as_default():
                _initialize(tf, session)
                if tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
                    threads = tf.train.start_queue_runners(session, coordinator)
            while True:
                try:
                    batch = session.run(self._fetches)
                except tf.errors.OutOfRangeError:
                    coordinator.request_stop()
                    coordinator.join(threads, stop_grace_period_secs=_STOP_SECONDS)
                    return
                yield batch["features"], batch.get("labels")
        except tf.errors.FailedPreconditionError as error:
            raise ValueError(
                "input_fn: something of its graph was not initialized. A hook cannot do it, since "
                "the batches are read outside of the training: add the initializer to the graph's "
                "collection (tf.compat.v1.add_to_collection(tf.compat.v1.GraphKeys."
                "TABLE_INITIALIZERS, iterator.initializer)), or return the dataset itself. "
                f"TensorFlow says: {error.message}"
            ) from error
        finally:
            coordinator.request_stop()
            session.close()


def call(function: Callable[[], Any], seed: Optional[int]) -> Any:
    """Returns the result of the input function `function`; GraphBatches if that is a graph's
    tensors.

    seed: the graph's seed, as RunConfig.tf_random_seed. A result that has nothing to do with
    TensorFlow's graphs (files, generators, arrays) is returned unchanged. Raises ValueError for a
    batch that only eager mode can compute, since every batch would be the same.
    """
    if "tensorflow" not in sys.modules:
        returned = function()
        if "tensorflow" not in sys.modules:
            return returned
    tf = sys.modules["tensorflow"]
    graph = tf.Graph()
    try:
        with graph.as_default(), tf.compat.v1.device("/cpu:0"):
            if seed is not None:
                tf.compat.v1.set_random_seed(seed)
            return _in_graph(tf, graph, function())
    except _EAGER_ONLY as error:
        if isinstance(error, InputError) or not tf.compat.v1.executing_eagerly():
            raise
        return _eagerly(tf, function, error)


class InputError(ValueError):
    """Raised for an input function whose batches cannot be reproduced."""


def _in_graph(tf: Any, graph: Any, returned: Any) -> Any:
    if isinstance(returned, tf.data.Dataset):
        if not _is_symbolic(tf, returned._variant_tensor):
            return returned  # made eagerly, outside of the function
        iterator = tf.compat.v1.data.make_initializable_iterator(returned)
        initializers = tf.compat.v1.GraphKeys.TABLE_INITIALIZERS
        tf.compat.v1.add_to_collection(initializers, iterator.initializer)
        returned = iterator.get_next()
    elif not _holds_symbolic(tf, returned):
        return returned
    features, labels = split(returned)
    if isinstance(returned, tuple) and len(returned) != 2:
        raise InputError(
            f"input_fn should return (features, labels) as a len 2 tuple. Got {len(returned)}"
        )
    if features is None:
        raise TypeError("it returns several batches of tensors")
    if not isinstance(features, Mapping):
        raise InputError(
            f"features should be a dictionary of `Tensor`s. Given type: {type(features)}"
        )
    if tf.compat.v1.train.get_global_step(graph) is not None:
        raise InputError(
            "input_fn reads the global step: the muster program counts the steps, and the input "
            "is read ahead of it; leave it out"
        )
    return GraphBatches(tf, graph, features, labels)


def _eagerly(tf: Any, function: Callable[[], Any], error: Exception) -> Any:
    """Calls a function that cannot run in a graph; it may return a dataset or an iterable."""
    returned = function()
    if isinstance(split(returned)[0], Mapping):
        raise InputError(
            "input_fn gives a batch in eager mode only, and that one would be every batch: return "
            "the tf.data.Dataset, or an iterable of batches. In a graph, where tf.estimator calls "
            f"it, TensorFlow says: {error}"
        ) from error
    return returned


def split(returned: Any) -> Tuple[Any, Any]:
    """Returns features and labels if `returned` may be a batch; else (None, None)."""
    if isinstance(returned, (tuple, list)):
        if len(returned) == 2 and not isinstance(returned[0], (tuple, list)):
            if isinstance(returned, tuple) or not isinstance(returned[1], Mapping):
                return returned[0], returned[1]
        return None, None
    return returned, None


def _holds_symbolic(tf: Any, value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_symbolic(tf, part) for part in value.values())
    if isinstance(value, (tuple, list)) and not hasattr(value, "dense_shape"):
        return any(_holds_symbolic(tf, part) for part in value)
    return _is_symbolic(tf, value)


def _is_symbolic(tf: Any, value: Any) -> bool:
    """Whether `value` is a tensor of a graph, or a sparse or ragged one made of such tensors."""
    while isinstance(value, (tf.SparseTensor, tf.RaggedTensor)):
        value = value.values
    return isinstance(value, tf.Tensor) and type(value).__name__ != "EagerTensor"


def _tensors_of(tf: Any, features: Mapping[str, Any], labels: Any) -> Any:
    fetches = {"features": {name: _tensor(tf, name, value) for name, value in features.items()}}
    if labels is not None:
        if isinstance(labels, Mapping):
            fetches["labels"] = {name: _tensor(tf, name, value) for name, value in labels.items()}
        else:
            fetches["labels"] = _tensor(tf, "labels", labels)
    return fetches


def _tensor(tf: Any, name: str, value: Any) -> Any:
    if isinstance(value, (tf.Tensor, tf.SparseTensor)) or hasattr(value, "row_splits"):
        return value
    try:
        return tf.convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"feature '{name}': no tensor and no value of one: {error}") from None


def _initialize(tf: Any, session: Any) -> None:
    """Initializes variables, tables, and then what depends on them: iterators of datasets."""
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    pending = tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS)
    tables = [operation for operation in pending if operation.type != "MakeIterator"]
    session.run(tables)
    session.run([operation for operation in pending if operation.type == "MakeIterator"])
