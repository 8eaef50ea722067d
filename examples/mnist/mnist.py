"""Handwritten digits: a convolutional network with BatchNorm and dropout, exported for muster.

    python examples/mnist/mnist.py exported
"""

import sys

import keras

import muster.keras

layers = keras.layers

model = keras.Sequential(
    [
        layers.Input((28, 28, 1), dtype="uint8", name="image"),
        layers.Rescaling(1 / 255),
        layers.Conv2D(32, 3, use_bias=False),
        layers.BatchNormalization(momentum=0.9),
        layers.ReLU(),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dropout(0.4),
        layers.Dense(128, activation="relu"),
        layers.Dense(10, activation="softmax", name="digit"),
    ],
    name="mnist",
)

muster.keras.export(
    model,
    keras.optimizers.Adam(0.001),
    "sparse_categorical_crossentropy",
    sys.argv[1],
    # As `muster records from-idx` writes images.
    inputs={"image": muster.keras.Field("image", "uint8", [28, 28, 1], decode="raw")},
    label="label",
    metrics=["accuracy"],
)
