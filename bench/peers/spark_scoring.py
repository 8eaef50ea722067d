"""A SavedModel in tasks of Spark, for spark_driver.py, as a user of pandas and TensorFlow writes it."""

_LOADED = {}


def export_again(export_dir, out):
    """Writes a SavedModel of Muster as one of TensorFlow 2 that computes one output.

    TFModel finds inputs by the names of placeholders, which TensorFlow 2 has made lower case.
    """
    import tensorflow

    module = tensorflow.Module()
    module.loaded = tensorflow.saved_model.load(export_dir)
    signature = module.loaded.signatures["serving_default"]
    inputs = {name: spec.dtype for name, spec in signature.structured_input_signature[1].items()}

    @tensorflow.function
    def predict(**given):
        return {"logistic": signature(**{name: given[name.lower()] for name in inputs})["logistic"]}

    specs = {
        name.lower(): tensorflow.TensorSpec([None], dtype, name.lower()) for name, dtype in inputs.items()
    }
    tensorflow.saved_model.save(module, out, {"serving_default": predict.get_concrete_function(**specs)})


def predict_series(export_dir, columns, series):
    """The probabilities of a batch of a pandas UDF."""
    given = {name.lower(): values for name, values in zip(columns, series)}
    return predicted(export_dir, given, lambda outputs: outputs["logistic"])


def predict_keras(export_dir, columns, series):
    """The one output of a Keras model."""
    return predicted(export_dir, dict(zip(columns, series)), lambda outputs: next(iter(outputs.values())))


def predicted(export_dir, given, output):
    """Each Python worker loads the model once."""
    import pandas
    import tensorflow

    if export_dir not in _LOADED:
        _LOADED[export_dir] = tensorflow.saved_model.load(export_dir)
    predict = _LOADED[export_dir].signatures["serving_default"]
    tensors = {name: tensorflow.constant(values.to_numpy()) for name, values in given.items()}
    return pandas.Series(output(predict(**tensors)).numpy()[:, 0])
