"""The params of TFEstimator and TFModel, each a mixin with setters and getters."""

from __future__ import annotations

from typing import Any, Callable, Dict

from pyspark.ml.param import Param, Params, TypeConverters


class TFTypeConverters:
    """For params that Spark ML has no converter for."""

    @staticmethod
    def toDict(value: Any) -> Dict[str, str]:
        if not isinstance(value, dict):
            raise TypeError(f"a dict of names is wanted, not {value!r}")
        return value


def _param(name: str, meaning: str, converter: Any) -> Any:
    return Param(Params._dummy(), name, meaning, typeConverter=converter)


def _accessors(**called: str) -> Callable[[Any], Any]:
    """Gives a class setNAME and getNAME of params, by their names."""

    def add(made: Any) -> Any:
        for param, name in called.items():
            _add_accessors(made, param, name)
        return made

    return add


def _add_accessors(made: Any, param: str, name: str) -> None:
    setattr(made, f"set{name}", lambda self, value: self._set(**{param: value}))
    setattr(made, f"get{name}", lambda self: self.getOrDefault(param))


@_accessors(batch_size="BatchSize")
class HasBatchSize(Params):
    batch_size = _param("batch_size", "rows of a batch", TypeConverters.toInt)


@_accessors(cluster_size="ClusterSize")
class HasClusterSize(Params):
    cluster_size = _param("cluster_size", "nodes", TypeConverters.toInt)


@_accessors(epochs="Epochs")
class HasEpochs(Params):
    epochs = _param("epochs", "how often the rows are fed", TypeConverters.toInt)


@_accessors(export_dir="ExportDir")
class HasExportDir(Params):
    export_dir = _param("export_dir", "folder of the SavedModel", TypeConverters.toString)


@_accessors(grace_secs="GraceSecs")
class HasGraceSecs(Params):
    grace_secs = _param("grace_secs", "as TFCluster.shutdown() has it", TypeConverters.toInt)


@_accessors(input_mapping="InputMapping")
class HasInputMapping(Params):
    input_mapping = _param("input_mapping", "{column: input of the model}", TFTypeConverters.toDict)


@_accessors(input_mode="InputMode")
class HasInputMode(Params):
    input_mode = _param("input_mode", "InputMode.SPARK", TypeConverters.toInt)


@_accessors(master_node="MasterNode")
class HasMasterNode(Params):
    master_node = _param("master_node", "chief or master", TypeConverters.toString)


@_accessors(model_dir="ModelDir")
class HasModelDir(Params):
    model_dir = _param("model_dir", "folder of checkpoints", TypeConverters.toString)


@_accessors(num_ps="NumPS", driver_ps_nodes="DriverPSNodes")
class HasNumPS(Params):
    num_ps = _param("num_ps", "nodes that are ps", TypeConverters.toInt)
    driver_ps_nodes = _param("driver_ps_nodes", "whether ps run on the driver's machine", TypeConverters.toBoolean)


@_accessors(output_mapping="OutputMapping")
class HasOutputMapping(Params):
    output_mapping = _param("output_mapping", "{output of the model: column}", TFTypeConverters.toDict)


@_accessors(protocol="Protocol")
class HasProtocol(Params):
    protocol = _param("protocol", "grpc; for the program to read", TypeConverters.toString)


@_accessors(readers="Readers")
class HasReaders(Params):
    readers = _param("readers", "for the program to read", TypeConverters.toInt)


@_accessors(signature_def_key="SignatureDefKey")
class HasSignatureDefKey(Params):
    signature_def_key = _param("signature_def_key", "which signature", TypeConverters.toString)


@_accessors(steps="Steps")
class HasSteps(Params):
    steps = _param("steps", "for the program to read", TypeConverters.toInt)


@_accessors(tag_set="TagSet")
class HasTagSet(Params):
    tag_set = _param("tag_set", "tags, separated by commas", TypeConverters.toString)


@_accessors(tensorboard="Tensorboard")
class HasTensorboard(Params):
    tensorboard = _param("tensorboard", "whether to start TensorBoard", TypeConverters.toBoolean)


@_accessors(tfrecord_dir="TFRecordDir")
class HasTFRecordDir(Params):
    tfrecord_dir = _param("tfrecord_dir", "for the program to read", TypeConverters.toString)
