"""A canned model as data: its columns, optimizers and head, and the model file for them."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Sequence

from muster import columns as fc
from muster.batch_stream import StreamColumn
from muster.cells import FLOAT, INT, STRING
from muster.estimator.feeding import LabelColumn
from muster.estimator.heads import Head
from muster.model_file import InputUse, ModelFile, SampleInput, input_uses, stream_columns


@dataclass(frozen=True)
class CannedModel:
    type: str  # linear, dnn, wide_deep or baseline
    head: Head
    linear_columns: Sequence[fc.FeatureColumn] = ()
    linear: Mapping[str, Any] = field(default_factory=dict)  # the linear part except its columns
    dnn_columns: Sequence[fc.FeatureColumn] = ()
    dnn: Mapping[str, Any] = field(default_factory=dict)
    other: Mapping[str, Any] = field(default_factory=dict)  # further keys of `model:`

    def uses(self) -> Dict[str, InputUse]:
        """Returns the features that the model reads, including that of the weights."""
        uses = input_uses([*self.linear_columns, *self.dnn_columns])
        if self.head.weight is not None:
            uses.setdefault(self.head.weight, InputUse()).numeric = True
        return uses

    def serving_features(self) -> List[str]:
        return list(input_uses([*self.linear_columns, *self.dnn_columns]))

    def label_name(self) -> str:
        """Returns the name of the labels in a stream: "label", unless a feature has that name."""
        name = "label"
        while name in self.uses():
            name += "_"
        return name

    def label_column(self, name: str) -> LabelColumn:
        head = self.head
        if head.regression:
            return LabelColumn(StreamColumn(name, FLOAT, head.label_dimension > 1))
        kind = INT if head.words is None else STRING
        checked = 0 if head.multi_label or head.words is not None else head.n_classes
        return LabelColumn(StreamColumn(name, kind, head.multi_label), checked)

    def stream_columns(
        self, sample: Mapping[str, SampleInput], with_weight: bool
    ) -> List[StreamColumn]:
        """Returns the columns to send for batches that look like `sample`; weights only with
        labels."""
        uses = self.uses()
        if not with_weight and self.head.weight not in self.serving_features():
            uses.pop(self.head.weight or "", None)
        return stream_columns(uses, sample)

    def write(
        self,
        folder: pathlib.Path,
        sample: Mapping[str, SampleInput],
        label: str,
        label_ids: bool = False,
    ) -> pathlib.Path:
        """Writes FOLDER/model.yaml for features that look like `sample`.

        label_ids: the labels of a multi-label head are the class numbers of a row.
        """
        uses = self.uses()
        file = ModelFile(folder)
        columns = stream_columns(uses, sample)
        file.add_inputs([*columns, self.label_column(label).column], uses, sample)
        model: Dict[str, Any] = {"type": self.type, **self.other}
        if self.linear_columns:
            model["linear"] = {"columns": file.part(self.linear_columns), **self.linear}
        if self.dnn_columns:
            # TensorFlow's input layer concatenates columns in the order of their names.
            ordered = sorted(self.dnn_columns, key=lambda column: column.name)
            dense = [fc.dense(column) for column in ordered]
            model["dnn"] = {"columns": file.part(dense), **self.dnn}
        entry: Dict[str, Any] = {"input": label}
        if self.head.words is not None:
            entry["words"] = list(self.head.words)
        if label_ids:
            entry["ids"] = True
        thresholds = list(self.head.thresholds)
        text = file.text(
            entry,
            model,
            head=self.head.kind,
            weight=self.head.weight,
            loss_reduction="sum" if self.head.sums else None,
            metrics={"thresholds": thresholds} if thresholds else None,
        )
        path = folder / "model.yaml"
        path.write_text(text, encoding="utf-8")
        return path
