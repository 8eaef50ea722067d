"""Exporters: when train_and_evaluate writes a SavedModel, and how many stay."""

from __future__ import annotations

from typing import Any, Optional

from muster.estimator.export import Finishing, check_receiver


class Exporter:
    """Base of exporters. `name` is the folder in MODEL_DIR/export; `kind` the name for `muster
    train`."""

    kind = ""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Any,
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: Optional[int] = None,
    ) -> None:
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError("`exports_to_keep`, if provided, must be positive number. "
                             f"Got {exports_to_keep}")  # fmt: skip
        check_receiver(serving_input_receiver_fn)
        self.name = name
        self.serving_input_receiver_fn = serving_input_receiver_fn
        self.exports_to_keep = exports_to_keep
        self.finishing = Finishing(assets_extra, as_text)


class FinalExporter(Exporter):
    """Exports once, at the end of training."""

    kind = "final"

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Any,
        assets_extra: Any = None,
        as_text: bool = False,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)


class LatestExporter(Exporter):
    """Exports after every evaluation; the newest `exports_to_keep` exports are kept."""

    kind = "latest"

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Any,
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: Optional[int] = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)


class BestExporter(Exporter):
    """Exports after each evaluation whose loss is the lowest so far."""

    kind = "best"

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Any = None,
        event_file_pattern: str = "eval/*.tfevents.*",
        compare_fn: Any = None,
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: Optional[int] = 5,
    ) -> None:
        if compare_fn is not None:
            raise ValueError("BestExporter: Muster compares the loss; compare_fn cannot be given")
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)
        self.event_file_pattern = event_file_pattern
