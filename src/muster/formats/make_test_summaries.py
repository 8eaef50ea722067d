"""Writes testdata/summaries.txt: summaries as TensorBoard's own protobufs encode them.

A line is a name and the encoded tensorflow.Summary in hexadecimal. Run in the environment of the
component tests; summary_component_test.py checks that the committed file is still what it writes.
"""

from __future__ import annotations

import pathlib

from tensorboard.compat.proto import summary_pb2
from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
from tensorboard.plugins.text import metadata as text_metadata
from tensorboard.util import tensor_util


def summaries() -> dict[str, bytes]:
    def encode(**fields) -> bytes:
        value = summary_pb2.Summary.Value(**fields)
        return summary_pb2.Summary(value=[value]).SerializeToString(deterministic=True)

    def hparams(tag: str, **fields) -> bytes:
        data = plugin_data_pb2.HParamsPluginData(**fields)
        return encode(
            tag=tag, metadata=metadata.create_summary_metadata(data), tensor=metadata.NULL_TENSOR
        )

    experiment = api_pb2.Experiment(
        time_created_secs=1.5,
        hparam_infos=[
            api_pb2.HParamInfo(name="activation", type=api_pb2.DATA_TYPE_STRING),
            api_pb2.HParamInfo(name="batch_norm", type=api_pb2.DATA_TYPE_BOOL),
            api_pb2.HParamInfo(name="rate", type=api_pb2.DATA_TYPE_FLOAT64, differs=True),
        ],
        metric_infos=[
            api_pb2.MetricInfo(
                name=api_pb2.MetricName(group="eval", tag="auc"), display_name="AUC"
            )
        ],
    )
    # One entry a map: the order of more is protobuf's own affair.
    starts = {}
    for name, field, value in (
        ("activation", "string_value", "relu"),
        ("batch_norm", "bool_value", True),
        ("rate", "number_value", 0.25),
    ):
        start = plugin_data_pb2.SessionStartInfo(start_time_secs=2.5)
        setattr(start.hparams[name], field, value)
        starts[name] = hparams(metadata.SESSION_START_INFO_TAG, session_start_info=start)
    end = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS, end_time_secs=3.5)
    histogram = summary_pb2.HistogramProto(
        min=-1, max=2, num=4, sum=2.5, sum_squares=6.25, bucket_limit=[0.5, 2], bucket=[1, 3]
    )
    return {
        "scalar": encode(tag="loss", simple_value=0.5),
        "histogram": encode(tag="dnn/kernel", histo=histogram),
        "text": encode(
            tag="spec",
            metadata=text_metadata.create_summary_metadata(display_name=None, description=None),
            tensor=tensor_util.make_tensor_proto("    a: 1\n"),
        ),
        "experiment": hparams(metadata.EXPERIMENT_TAG, experiment=experiment),
        **starts,
        "end": hparams(metadata.SESSION_END_INFO_TAG, session_end_info=end),
    }


def text() -> str:
    return "".join(f"{name} {encoded.hex()}\n" for name, encoded in summaries().items())


if __name__ == "__main__":
    (pathlib.Path(__file__).parent / "testdata/summaries.txt").write_text(text())
