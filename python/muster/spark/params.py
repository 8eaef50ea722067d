"""The parameters that MusterEstimator and MusterModel have in common, as Spark ML has them."""

from __future__ import annotations

from typing import Any, List, Sequence

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasPredictionCol, HasProbabilityCol, HasRawPredictionCol


_ALL = "*"


class OutputParams(HasPredictionCol, HasProbabilityCol, HasRawPredictionCol):
    """Which columns transform adds, and which it keeps. An empty name leaves a column out."""

    outputCols: Param[List[str]] = Param(
        Params._dummy(),
        "outputCols",
        "further outputs of the model to add, by the names that muster predict gives them",
        typeConverter=TypeConverters.toListString,
    )
    keptCols: Param[List[str]] = Param(
        Params._dummy(),
        "keptCols",
        "columns of the DataFrame that transform keeps, * for all",
        typeConverter=TypeConverters.toListString,
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(outputCols=[], keptCols=[_ALL])

    def getOutputCols(self) -> List[str]:
        return list(self.getOrDefault(self.outputCols))

    def setOutputCols(self, value: List[str]) -> Any:
        return self._set(outputCols=value)

    def getKeptCols(self) -> List[str]:
        return list(self.getOrDefault(self.keptCols))

    def setKeptCols(self, value: List[str]) -> Any:
        return self._set(keptCols=value)

    def kept_of(self, names: Sequence[str]) -> List[str]:
        """Those of the DataFrame's columns that are kept. Raises ValueError for one that is not there."""
        wanted = self.getKeptCols()
        for name in wanted:
            if name not in names and name != _ALL:
                raise ValueError(f"keptCols: the DataFrame has no column '{name}'; it has: {', '.join(names)}")
        return [name for name in names if name in wanted or _ALL in wanted]

    def setPredictionCol(self, value: str) -> Any:
        return self._set(predictionCol=value)

    def setProbabilityCol(self, value: str) -> Any:
        return self._set(probabilityCol=value)

    def setRawPredictionCol(self, value: str) -> Any:
        return self._set(rawPredictionCol=value)
