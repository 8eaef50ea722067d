"""A canned model as data: its columns, optimizers and head, and the model file they make."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence

from muster import columns as fc
from muster.batch_stream import StreamColumn
from muster.cells import FLOAT, INT, STRING
from muster.estimator.feeding import LabelColumn
from muster.model_file import InputUse, ModelFile, SampleInput, input_uses, stream_columns


@dataclass(frozen=True)
class Head:
    """`kind`: the model file's words for it. `n_classes` 0: regression."""

    kind: Any = "binary"
    n_classes: int = 2
    words: Optional[Sequence[str]] = None
    weight: Optional[str] = None

    def classes(self) -> Optional[List[str]]:
        """Names of the classes; None for a regression."""
        if self.n_classes == 0:
            return None
        return list(self.words) if self.words else [str(i) for i in range(self.n_classes)]


@dataclass(frozen=True)
class CannedModel:
    type: str  # linear, dnn, wide_deep or baseline
    head: Head
    linear_columns: Sequence[fc.FeatureColumn] = ()
    linear: Mapping[str, Any] = field(default_factory=dict)  # the part but for its columns
    dnn_columns: Sequence[fc.FeatureColumn] = ()
    dnn: Mapping[str, Any] = field(default_factory=dict)
    other: Mapping[str, Any] = field(default_factory=dict)  # further keys of `model:`

    def uses(self) -> Dict[str, InputUse]:
        """The features it reads, the weights' among them."""
        uses = input_uses([*self.linear_columns, *self.dnn_columns])
        if self.head.weight is not None:
            uses.setdefault(self.head.weight, InputUse()).numeric = True
        return uses

    def serving_features(self) -> List[str]:
        return list(input_uses([*self.linear_columns, *self.dnn_columns]))

    def label_name(self) -> str:
        """Name of the labels in a stream: "label", where no feature is called so."""
        name = "label"
        while name in self.uses():
            name += "_"
        return name

    def label_column(self, name: str) -> LabelColumn:
        if self.head.n_classes == 0:
            return LabelColumn(StreamColumn(name, FLOAT))
        if self.head.words is not None:
            return LabelColumn(StreamColumn(name, STRING))
        return LabelColumn(StreamColumn(name, INT), self.head.n_classes)

    def stream_columns(
        self, sample: Mapping[str, SampleInput], with_weight: bool
    ) -> List[StreamColumn]:
        """What is sent of batches that look like `sample`; weights with the labels only."""
        uses = self.uses()
        if not with_weight and self.head.weight not in self.serving_features():
            uses.pop(self.head.weight or "", None)
        return stream_columns(uses, sample)

    def write(
        self, folder: pathlib.Path, sample: Mapping[str, SampleInput], label: str
    ) -> pathlib.Path:
        """Writes FOLDER/model.yaml for features that look like `sample`."""
        uses = self.uses()
        file = ModelFile(folder)
        columns = stream_columns(uses, sample)
        label_entry = self.label_column(label).column
        file.add_inputs([*columns, label_entry], uses, sample)
        model: Dict[str, Any] = {"type": self.type, **self.other}
        if self.linear_columns:
            model["linear"] = {"columns": file.part(self.linear_columns), **self.linear}
        if self.dnn_columns:
            # TensorFlow's input layer concatenates by name.
            ordered = sorted(self.dnn_columns, key=lambda column: column.name)
            model["dnn"] = {"columns": file.part(ordered), **self.dnn}
        words = self.head.words
        labels = label if words is None else {"input": label, "words": list(words)}
        text = file.text(labels, model, head=_head(self.head), weight=self.head.weight)
        path = folder / "model.yaml"
        path.write_text(text, encoding="utf-8")
        return path


def _head(head: Head) -> Any:
    return None if head.kind == "binary" else head.kind
