"""muster.keras with the current TensorFlow; the checks are in testbed/exports."""

from __future__ import annotations

import os

import pytest

from testbed import keras_checks

NAMES = {
    "function_checks.py": keras_checks.names("function_checks.py"),
    "evaluation_checks.py": keras_checks.names("evaluation_checks.py"),
    "weights_checks.py": keras_checks.names("weights_checks.py"),
    "fit_checks.py": keras_checks.names("fit_checks.py"),
    "writing_checks.py": keras_checks.names("writing_checks.py"),
    "rule_checks.py": [
        *(f"rule_of_{name}" for name in keras_checks.keys("rule_checks.py", "RULES")),
        *(f"trains_by_{name}" for name in keras_checks.keys("rule_checks.py", "TRAINED")),
    ],
}

WITH_BINARY = ("fit_checks.py", "weights_checks.py", "writing_checks.py")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict[str, keras_checks.Checks]:
    folder = tmp_path_factory.mktemp("exports")
    return {
        file: keras_checks.Checks(file, folder / file, with_binary=file in WITH_BINARY)
        for file in NAMES
    }


@pytest.mark.parametrize("file, name", [(f, n) for f in NAMES for n in NAMES[f]])
def test_export(results, file, name) -> None:
    results[file].check(name)


def test_an_old_tensorflow_is_refused() -> None:
    """The TensorFlow of this interpreter has tf.estimator, hence Keras 2."""
    import muster.keras

    with pytest.raises(ImportError, match="needs TensorFlow 2.16 or later.*this is 2.15"):
        muster.keras.export(None, "sgd", "mse", "nowhere")
    assert not os.path.exists("nowhere")
