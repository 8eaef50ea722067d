"""The parameters that MusterEstimator and MusterModel have in common, as Spark ML has them."""

from __future__ import annotations

from typing import Any, List

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasPredictionCol, HasProbabilityCol, HasRawPredictionCol


class OutputParams(HasPredictionCol, HasProbabilityCol, HasRawPredictionCol):
    """Which columns transform adds. An empty name leaves a column out."""

    outputCols: Param[List[str]] = Param(
        Params._dummy(),
        "outputCols",
        "further outputs of the model to add, by the names that muster predict gives them",
        typeConverter=TypeConverters.toListString,
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(outputCols=[])

    def getOutputCols(self) -> List[str]:
        return list(self.getOrDefault(self.outputCols))

    def setOutputCols(self, value: List[str]) -> Any:
        return self._set(outputCols=value)

    def setPredictionCol(self, value: str) -> Any:
        return self._set(predictionCol=value)

    def setProbabilityCol(self, value: str) -> Any:
        return self._set(probabilityCol=value)

    def setRawPredictionCol(self, value: str) -> Any:
        return self._set(rawPredictionCol=value)
