"""Who earns more than 50,000: the wide & deep census program of tf.estimator's tutorial.

    python adult_before.py --train adult.data --test adult.test --model-dir model
"""

import argparse

import tensorflow as tf

CSV_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation",
    "relationship", "race", "gender", "capital_gain", "capital_loss", "hours_per_week",
    "native_country", "income_bracket",
]
CSV_DEFAULTS = [
    [0], [""], [0], [""], [0], [""], [""], [""], [""], [""], [0], [0], [0], [""], [""],
]
SHUFFLE_ROWS = 32561
HASH_BUCKETS = 1000


def build_columns():
    """The wide and the deep columns."""
    age = tf.feature_column.numeric_column("age")
    education_num = tf.feature_column.numeric_column("education_num")
    capital_gain = tf.feature_column.numeric_column("capital_gain")
    capital_loss = tf.feature_column.numeric_column("capital_loss")
    hours_per_week = tf.feature_column.numeric_column("hours_per_week")
    education = tf.feature_column.categorical_column_with_vocabulary_list(
        "education",
        ["Bachelors", "HS-grad", "11th", "Masters", "9th", "Some-college", "Assoc-acdm",
         "Assoc-voc", "7th-8th", "Doctorate", "Prof-school", "5th-6th", "10th", "1st-4th",
         "Preschool", "12th"])
    marital_status = tf.feature_column.categorical_column_with_vocabulary_list(
        "marital_status",
        ["Married-civ-spouse", "Divorced", "Married-spouse-absent", "Never-married", "Separated",
         "Married-AF-spouse", "Widowed"])
    relationship = tf.feature_column.categorical_column_with_vocabulary_list(
        "relationship",
        ["Husband", "Not-in-family", "Wife", "Own-child", "Unmarried", "Other-relative"])
    workclass = tf.feature_column.categorical_column_with_vocabulary_list(
        "workclass",
        ["Self-emp-not-inc", "Private", "State-gov", "Federal-gov", "Local-gov", "?",
         "Self-emp-inc", "Without-pay", "Never-worked"])
    occupation = tf.feature_column.categorical_column_with_hash_bucket(
        "occupation", hash_bucket_size=HASH_BUCKETS)
    age_buckets = tf.feature_column.bucketized_column(
        age, boundaries=[18, 25, 30, 35, 40, 45, 50, 55, 60, 65])

    wide = [
        education, marital_status, relationship, workclass, occupation, age_buckets,
        tf.feature_column.crossed_column(
            ["education", "occupation"], hash_bucket_size=HASH_BUCKETS),
        tf.feature_column.crossed_column(
            [age_buckets, "education", "occupation"], hash_bucket_size=HASH_BUCKETS),
    ]
    deep = [
        age, education_num, capital_gain, capital_loss, hours_per_week,
        tf.feature_column.indicator_column(workclass),
        tf.feature_column.indicator_column(education),
        tf.feature_column.indicator_column(marital_status),
        tf.feature_column.indicator_column(relationship),
        tf.feature_column.embedding_column(occupation, dimension=8),
    ]
    return wide, deep


def build_estimator(model_dir, model_type, wide, deep, **options):
    hidden_units = [100, 75, 50, 25]
    config = tf.estimator.RunConfig().replace(tf_random_seed=1)
    if model_type == "wide":
        return tf.estimator.LinearClassifier(
            model_dir=model_dir, feature_columns=wide, config=config, **options)
    if model_type == "deep":
        return tf.estimator.DNNClassifier(
            model_dir=model_dir, feature_columns=deep, hidden_units=hidden_units, config=config,
            **options)
    return tf.estimator.DNNLinearCombinedClassifier(
        model_dir=model_dir, linear_feature_columns=wide, dnn_feature_columns=deep,
        dnn_hidden_units=hidden_units, config=config, **options)


def input_fn(data_file, num_epochs, shuffle, batch_size):
    assert tf.io.gfile.exists(data_file), f"{data_file} not found"

    def parse_csv(line):
        columns = tf.io.decode_csv(line, record_defaults=CSV_DEFAULTS)
        features = dict(zip(CSV_COLUMNS, columns))
        labels = features.pop("income_bracket")
        return features, tf.equal(labels, ">50K")

    dataset = tf.data.TextLineDataset(data_file)
    if shuffle:
        dataset = dataset.shuffle(buffer_size=SHUFFLE_ROWS, seed=1)
    dataset = dataset.map(parse_csv, num_parallel_calls=5)
    return dataset.repeat(num_epochs).batch(batch_size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--model-dir", required=True)
    parser.add_argument("--export-dir")
    parser.add_argument("--model-type", default="wide_deep", choices=["wide", "deep", "wide_deep"])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--epochs-between-evals", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=40)
    parser.add_argument("--no-shuffle", action="store_true")
    flags = parser.parse_args()

    wide, deep = build_columns()
    model = build_estimator(flags.model_dir, flags.model_type, wide, deep)
    for n in range(flags.epochs // flags.epochs_between_evals):
        model.train(input_fn=lambda: input_fn(
            flags.train, flags.epochs_between_evals, not flags.no_shuffle, flags.batch_size))
        results = model.evaluate(
            input_fn=lambda: input_fn(flags.test, 1, False, flags.batch_size))
        print("Results at epoch", (n + 1) * flags.epochs_between_evals)
        for key in sorted(results):
            print(f"{key}: {results[key]}")

    predictions = model.predict(input_fn=lambda: input_fn(flags.test, 1, False, flags.batch_size))
    for _, prediction in zip(range(5), predictions):
        print("predicted", prediction["classes"][0].decode(), prediction["probabilities"][1])

    if flags.export_dir:
        columns = {"wide": wide, "deep": deep, "wide_deep": wide + deep}[flags.model_type]
        feature_spec = tf.feature_column.make_parse_example_spec(columns)
        receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(feature_spec)
        print("exported", model.export_saved_model(flags.export_dir, receiver).decode())


if __name__ == "__main__":
    main()
