"""The names of tf.estimator that Muster does not have, and what to use instead."""

from __future__ import annotations

import sys
from typing import NoReturn

MODEL_FN = (
    "a model_fn is TensorFlow code, which Muster's trainer does not run. Where no canned estimator "
    "and no head of LinearEstimator, DNNEstimator or DNNLinearCombinedEstimator will do, there are "
    "three ways (examples/custom_model_fn/README.md). The program unchanged, with the TensorFlow it "
    "was written for (docs/run.md):\n"
    f"    muster run --chief --workers 2 --ps 1 --evaluator -- python {sys.argv[0]}\n"
    "Its model as Keras, trained without Python (docs/keras.md):\n"
    "    muster.keras.export(model, optimizer, loss, 'exported')\n"
    "    muster train exported --train 'data/part-*' --model-dir model --workers 3\n"
    "Its model in C++ (docs/estimator.md): see examples/custom_estimator/custom_estimator.cc"
)
_TENSORS = "works on tensors of a graph, which there is none of: derive a hook from SessionRunHook"
_SIGNATURES = "the exported signatures are those of the head"

_UNCHANGED = (
    "run the program unchanged with its TensorFlow (docs/run.md): muster run --chief -- python "
    f"{sys.argv[0]}"
)
_TREES = (
    "Muster trains no boosted trees: use xgboost or LightGBM, or DNNClassifier and DNNRegressor, or "
    f"{_UNCHANGED}"
)

_INSTEAD = {
    "BoostedTreesClassifier": _TREES,
    "BoostedTreesEstimator": _TREES,
    "BoostedTreesRegressor": _TREES,
    "KMeans": f"Muster does not cluster: use KMeans of scikit-learn, or {_UNCHANGED}",
    "EstimatorSpec": MODEL_FN,
    "add_metrics": "give the metrics that the head has (docs/metrics.md), or a head of another kind",
    "call_logit_fn": MODEL_FN,
    "Head": "use one of the heads by name, such as BinaryClassHead",
    "MultiHead": "a model has one head: train one model a label, or use MultiLabelHead",
    "FeedFnHook": _TENSORS,
    "FinalOpsHook": _TENSORS,
    "GlobalStepWaiterHook": "one process has nobody to wait for: leave it out",
    "InMemoryEvaluatorHook": "use train_and_evaluate, which evaluates while it trains",
    "make_early_stopping_hook": "derive a hook from SessionRunHook that calls request_stop()",
    "make_stop_at_checkpoint_step_hook": "use StopAtStepHook",
    "NanLossDuringTrainingError": "a loss that is not finite raises muster.MusterError",
    "VocabInfo": "changed vocabularies are found where WarmStartSettings is given a model's folder",
    "classifier_parse_example_spec": "use feature_column.make_parse_example_spec, and add the label",
    "regressor_parse_example_spec": "use feature_column.make_parse_example_spec, and add the label",
    "LinearSDCA": "use another optimizer, such as 'Ftrl'",
    "RNNClassifier": "use DNNClassifier with sequence columns that are pooled (docs/features.md)",
    "RNNEstimator": "use DNNEstimator with sequence columns that are pooled (docs/features.md)",
    "build_raw_supervised_input_receiver_fn": "only 'infer' is exported",
    "TensorServingInputReceiver": "use ServingInputReceiver",
    "ClassificationOutput": _SIGNATURES,
    "EvalOutput": _SIGNATURES,
    "ExportOutput": _SIGNATURES,
    "PredictOutput": _SIGNATURES,
    "RegressionOutput": _SIGNATURES,
}


def refuse(module: str, name: str) -> NoReturn:
    """Raises AttributeError, as for any name that a module does not have."""
    if name in _INSTEAD:
        raise AttributeError(f"{module} has no {name}: {_INSTEAD[name]}")
    raise AttributeError(f"module {module!r} has no attribute {name!r}")
