"""The model of examples/adult/adult.yaml in tf.estimator, from TFRecord files."""

import argparse
import json
import math
import time

import tensorflow as tf

fc = tf.feature_column
STRINGS = ["workclass", "education", "marital-status", "occupation", "relationship", "race", "sex",
           "native-country", "income-per-year"]  # fmt: skip
FLOATS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
PARSE = {
    **{name: tf.io.FixedLenFeature([], tf.string, "") for name in STRINGS},
    **{name: tf.io.FixedLenFeature([], tf.float32) for name in FLOATS},
}
VOCABULARIES = {
    "workclass": "Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc "
    "State-gov Without-pay",
    "education": "10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors "
    "Doctorate HS-grad Masters Preschool Prof-school Some-college",
    "marital-status": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent "
    "Never-married Separated Widowed",
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
}
EVALUATION_BATCH = 1024
AGES = [18, 25, 30, 35, 40, 45, 50, 55, 60, 65]


def parse(serialized):
    features = tf.io.parse_example(serialized, PARSE)
    label = tf.cast(tf.equal(features.pop("income-per-year"), ">50K"), tf.float32)[:, tf.newaxis]
    for name in ("workclass", "occupation", "native-country"):
        features[name] = tf.where(tf.equal(features[name], "?"), "", features[name])
    return features, label


def training_input(path, batch_size):
    data = tf.data.TFRecordDataset(path).shuffle(30_000, seed=1).repeat().batch(batch_size)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    return data.map(parse).prefetch(2).with_options(options)


def evaluation_input(path):
    return tf.data.TFRecordDataset(path).batch(EVALUATION_BATCH).map(parse).prefetch(2)


def columns():
    categorical = [
        fc.categorical_column_with_vocabulary_list(name, words.split())
        for name, words in VOCABULARIES.items()
    ]
    categorical += [
        fc.categorical_column_with_hash_bucket(name, 1000)
        for name in ("occupation", "native-country")
    ]
    age = fc.numeric_column("age")
    bucket = fc.bucketized_column(age, AGES)
    wide = categorical + [
        bucket,
        fc.crossed_column(["education", "occupation"], 1000),
        fc.crossed_column([bucket, "education", "occupation"], 1000),
    ]

    def standardised(name, mean, deviation):
        return fc.numeric_column(name, normalizer_fn=lambda x: (x - mean) / deviation)

    deep = [
        standardised("age", 38.641982, 13.697271),
        standardised("education-num", 10.069254, 2.571195),
        standardised("hours-per-week", 40.368767, 12.410660),
        fc.numeric_column("capital-gain", normalizer_fn=tf.math.log1p),
        fc.numeric_column("capital-loss", normalizer_fn=tf.math.log1p),
    ]
    deep += [
        fc.embedding_column(
            column, 8, initializer=tf.compat.v1.truncated_normal_initializer(stddev=1 / math.sqrt(8))
        )
        for column in categorical
    ]
    return wide, deep


class SteadyState(tf.estimator.SessionRunHook):
    """CPU seconds of the whole process from a step on: starting up and tracing are left out."""

    def __init__(self, first_step):
        self.first_step = first_step
        self.step = 0
        self.start = 0.0

    def after_run(self, run_context, run_values):
        self.step += 1
        if self.step == self.first_step:
            self.start = time.process_time()

    def seconds(self):
        return time.process_time() - self.start


ONE_THREAD = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)


def new_estimator(model_dir, session, **settings):
    """`session`: None for tf.estimator's own settings; `settings`: of RunConfig."""
    wide, deep = columns()
    legacy = tf.keras.optimizers.legacy
    return tf.estimator.DNNLinearCombinedClassifier(
        model_dir=model_dir,
        linear_feature_columns=wide,
        linear_optimizer=legacy.Ftrl(0.1, initial_accumulator_value=0.1),
        dnn_feature_columns=deep,
        dnn_optimizer=legacy.Adagrad(0.05, initial_accumulator_value=0.1),
        dnn_hidden_units=[100, 75, 50, 25],
        config=tf.estimator.RunConfig(
            tf_random_seed=1, session_config=session, save_summary_steps=10**9,
            log_step_count_steps=10**9, save_checkpoints_steps=10**9,
            **settings,
        ),
    )  # fmt: skip


def score(model_dir, path):
    """Rows a CPU second, from the first batch on: predict as it is by default, row by row; in whole
    batches on one thread a pool; and evaluate, on one thread a pool."""
    rates = {}
    for single in (True, False):
        estimator = new_estimator(model_dir, None if single else ONE_THREAD)
        found = iter(
            estimator.predict(lambda: evaluation_input(path), yield_single_examples=single)
        )
        for _ in range(EVALUATION_BATCH if single else 1):
            next(found)
        start = time.process_time()
        rows = sum(1 if single else len(batch["logits"]) for batch in found)
        rates["predict" if single else "batches"] = rows / (time.process_time() - start)
    steady = SteadyState(1)
    estimator.evaluate(lambda: evaluation_input(path), hooks=[steady])
    rates["evaluate"] = (steady.step - 1) * EVALUATION_BATCH / steady.seconds()
    return {f"{what}_rate": rate for what, rate in rates.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--test")
    parser.add_argument("--score", help="rows to predict and evaluate for speed")
    parser.add_argument("--model-dir", required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warm-steps", type=int, required=True)
    flags = parser.parse_args()
    estimator = new_estimator(flags.model_dir, ONE_THREAD)
    steady = SteadyState(flags.warm_steps)
    estimator.train(
        lambda: training_input(flags.train, flags.batch_size), max_steps=flags.steps, hooks=[steady]
    )
    # Nothing is trained, and no rate known, when the model is there already.
    examples = max(steady.step - flags.warm_steps, 0) * flags.batch_size
    result = {"rate": examples / steady.seconds()}
    if flags.score:
        result |= score(flags.model_dir, flags.score)
    if flags.test:
        metrics = estimator.evaluate(lambda: evaluation_input(flags.test))
        result |= {key: float(value) for key, value in metrics.items()}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
