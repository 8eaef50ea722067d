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
    """The probabilities of a batch of a pandas UDF. Each Python worker loads the model once."""
    import pandas
    import tensorflow

    if export_dir not in _LOADED:
        _LOADED[export_dir] = tensorflow.saved_model.load(export_dir)
    predict = _LOADED[export_dir].signatures["serving_default"]
    given = {name.lower(): tensorflow.constant(values.to_numpy()) for name, values in zip(columns, series)}
    return pandas.Series(predict(**given)["logistic"].numpy()[:, 0])


def predict_keras(export_dir, columns, series):
    """The same of an exported Keras model with one output."""
    import pandas
    import tensorflow

    if export_dir not in _LOADED:
        _LOADED[export_dir] = tensorflow.saved_model.load(export_dir)
    predict = _LOADED[export_dir].signatures["serving_default"]
    given = {name: tensorflow.constant(values.to_numpy()) for name, values in zip(columns, series)}
    return pandas.Series(next(iter(predict(**given).values())).numpy()[:, 0])
