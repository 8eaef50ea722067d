"""TextEstimator, an Estimator of Spark ML, and what its fit returns."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters

from muster.text_estimator import cluster, trials, writing
from muster.text_estimator.mock_topic import MockTopic
from muster.text_estimator.reading import Data
from muster.text_estimator.topic import Topic, fresh
from muster.text_estimator.trials import MapFun, Trial

_MODES = ("Normal", "TFoS")
_KAFKA_KEYS = (
    "bootstrap_servers", "topic", "group_id", "reuse_topic", "test_mode", "mock_kafka_file",
    "delete_topic", "max_bad_records",
)  # fmt: skip
_FitParam = Mapping[str, Any]


def _param(name: str, doc: str, converter: Any) -> Param[Any]:
    return Param(Params._dummy(), name, doc, typeConverter=converter)


class TextEstimator(Estimator):
    """Writes a DataFrame's rows to a topic of Kafka, and runs a function that learns from them.

    kafkaParam: where the rows go: "bootstrap_servers" (a list, or a text with commas) and "topic", to
      whose name each fit adds its time. "reuse_topic": the topic is one that a fit has written, under
      its whole name, and nothing is written. "group_id" is taken and not used: nothing is committed.
      "test_mode" and "mock_kafka_file": a folder in place of Kafka. "delete_topic": remove the topic
      when fit ends, but no reused one after an error. "max_bad_records": so many records may be no rows; 0 by default.
    fitParam: sets of parameters. In Normal mode each is a trial; TFoS takes the first one.
    runningMode: "Normal": independent trials. "TFoS": one distributed job.
    mapFnParam: map_fun(args, ctx, _read_data); args["params"]["fitParam"] is the trial's set, or in
      TFoS the list of sets; ctx is None in Normal mode; _read_data is Data.read.
    """

    kafkaParam = _param("kafkaParam", "the topic that carries the rows", TypeConverters.identity)
    fitParam = _param("fitParam", "sets of parameters", TypeConverters.identity)
    runningMode = _param("runningMode", "Normal or TFoS", TypeConverters.toString)
    mapFnParam = _param("mapFnParam", "map_fun(args, ctx, _read_data)", TypeConverters.identity)

    _input_kwargs: Dict[str, Any]

    @keyword_only
    def __init__(
        self,
        *,
        kafkaParam: Optional[Mapping[str, Any]] = None,
        fitParam: Optional[Sequence[_FitParam]] = None,
        runningMode: str = "Normal",
        mapFnParam: Optional[MapFun] = None,
    ) -> None:
        super().__init__()
        self._setDefault(runningMode="Normal", fitParam=[{}])
        self._set(**{k: v for k, v in self._input_kwargs.items() if v is not None})

    @keyword_only
    def setParams(
        self,
        *,
        kafkaParam: Optional[Mapping[str, Any]] = None,
        fitParam: Optional[Sequence[_FitParam]] = None,
        runningMode: Optional[str] = None,
        mapFnParam: Optional[MapFun] = None,
    ) -> TextEstimator:
        self._set(**{k: v for k, v in self._input_kwargs.items() if v is not None})
        return self

    def setKafkaParam(self, value: Mapping[str, Any]) -> TextEstimator:
        self._set(kafkaParam=value)
        return self

    def getKafkaParam(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.getOrDefault(self.kafkaParam)
        return found

    def setFitParam(self, value: Sequence[_FitParam]) -> TextEstimator:
        self._set(fitParam=value)
        return self

    def getFitParam(self) -> List[_FitParam]:
        given = self.getOrDefault(self.fitParam)
        return [given] if isinstance(given, dict) else list(given)

    def setRunningMode(self, value: str) -> TextEstimator:
        self._set(runningMode=value)
        return self

    def getRunningMode(self) -> str:
        return str(self.getOrDefault(self.runningMode))

    def setMapFnParam(self, value: MapFun) -> TextEstimator:
        self._set(mapFnParam=value)
        return self

    def getMapFnParam(self) -> MapFun:
        found: MapFun = self.getOrDefault(self.mapFnParam)
        return found

    def fit(
        self, dataset: Any, params: Optional[Union[_FitParam, Sequence[_FitParam]]] = None
    ) -> Any:
        """Returns a TextModel when all trials, or the job, have ended.

        params: sets of parameters in place of fitParam, one or a list; or param maps of Spark ML.
        """
        sets = [params] if isinstance(params, Mapping) else params
        if sets and not any(isinstance(key, Param) for one in sets for key in one):
            return self.copy({self.fitParam: list(sets)})._fit(dataset)
        return super().fit(dataset, params or None)

    def _fit(self, dataset: Any) -> TextModel:
        self._check()
        given, topic = self.getKafkaParam(), self._topic()
        try:
            ended = self._run(dataset.sparkSession, self._data(dataset, topic))
        except BaseException:
            # One that was to be reused may be of somebody else.
            if given.get("delete_topic") and not given.get("reuse_topic"):
                with contextlib.suppress(Exception):
                    topic.delete()
            raise
        if given.get("delete_topic"):
            topic.delete()
        return TextModel(topic.name, ended)

    def _data(self, dataset: Any, topic: Any) -> Data:
        given = self.getKafkaParam()
        data = writing.read_end(topic) if given.get("reuse_topic") else writing.write(dataset, topic)
        return data._replace(max_bad_records=int(given.get("max_bad_records", 0)))

    def _run(self, spark: Any, data: Data) -> List[Trial]:
        args = {"kafkaParam": dict(self.getKafkaParam()), "runningMode": self.getRunningMode()}
        sets, map_fun = self.getFitParam(), self.getMapFnParam()
        if self.getRunningMode() == "TFoS":
            return cluster.run(spark, data, sets, args, map_fun)
        return trials.run(spark.sparkContext, data, sets, args, map_fun)

    def _topic(self) -> Any:
        given = self.getKafkaParam()
        servers = given.get("bootstrap_servers", [])
        brokers = servers if isinstance(servers, str) else ",".join(servers)
        named = Topic(brokers, given["topic"])
        topic = named if given.get("reuse_topic") else fresh(named)
        if given.get("test_mode"):
            return MockTopic(os.path.abspath(given["mock_kafka_file"]), topic.name)
        return topic

    def _check(self) -> None:
        """Raises ValueError for what cannot be fitted."""
        for param in (self.kafkaParam, self.mapFnParam):
            if not self.isDefined(param):
                raise ValueError(f"TextEstimator has no {param.name}")
        given = self.getKafkaParam()
        unknown = [key for key in given if key not in _KAFKA_KEYS]
        if unknown:
            raise ValueError(
                f"kafkaParam: '{unknown[0]}' is not known; the keys are {', '.join(_KAFKA_KEYS)}"
            )
        where = "mock_kafka_file" if given.get("test_mode") else "bootstrap_servers"
        for key in ("topic", where):
            if not given.get(key):
                raise ValueError(f"kafkaParam has no '{key}'")
        if self.getRunningMode() not in _MODES:
            raise ValueError(f"runningMode '{self.getRunningMode()}': it is Normal or TFoS")
        if not self.getFitParam():
            raise ValueError("fitParam has no set of parameters: one for each trial, [{}] for none")


class TextModel(Model):
    """What a fit has found: the trials, in the order of fitParam. It does not transform."""

    def __init__(self, topic: str, ended: List[Trial]) -> None:
        super().__init__()
        self.topic = topic  # the whole name, for reuse_topic
        self.trials = ended

    def collect(self) -> List[Tuple[_FitParam, Any]]:
        """Each set of parameters with what its map_fun returned, without those that failed."""
        return [(trial.params, trial.result) for trial in self.trials if trial.state == "complete"]

    def _transform(self, dataset: Any) -> Any:
        raise NotImplementedError(
            "a TextModel has what map_fun returned, and no predictions: score with the model that map_fun "
            "has saved or returned"
        )
