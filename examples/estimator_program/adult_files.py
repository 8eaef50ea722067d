"""The census program again, without TensorFlow: muster reads the CSV files itself.

    python adult_files.py --train train.csv --test test.csv --model-dir model

The files have a header with the names of adult.py's columns.
"""

import argparse

from muster import estimator, feature_column

from adult import build_columns, build_estimator


def input_fn(data_file, num_epochs, batch_size):
    return estimator.inputs.csv(
        data_file, label="income_bracket", num_epochs=num_epochs, batch_size=batch_size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--model-dir", required=True)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=40)
    flags = parser.parse_args()

    wide, deep = build_columns()
    model = build_estimator(
        flags.model_dir, "wide_deep", wide, deep, label_vocabulary=["<=50K", ">50K"])
    model.train(input_fn=lambda: input_fn(flags.train, flags.epochs, flags.batch_size))
    results = model.evaluate(input_fn=lambda: input_fn(flags.test, 1, 1000))
    for key in sorted(results):
        print(f"{key}: {results[key]}")

    for _, prediction in zip(range(5), model.predict(lambda: input_fn(flags.test, 1, 1000))):
        print("predicted", prediction["classes"][0].decode(), prediction["probabilities"][1])

    feature_spec = feature_column.make_parse_example_spec(wide + deep)
    receiver = estimator.export.build_parsing_serving_input_receiver_fn(feature_spec)
    print("exported", model.export_saved_model(flags.model_dir + "/saved", receiver).decode())


if __name__ == "__main__":
    main()
