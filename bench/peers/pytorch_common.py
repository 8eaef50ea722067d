"""What the PyTorch peers share: their flags, relu layers, and a timed training on one thread."""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence

import torch

Batch = tuple[torch.Tensor, ...]


def flags_of(modes: Sequence[str]) -> argparse.Namespace:
    """The flags, and a process of one thread and a fixed seed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--mode", choices=modes, required=True)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    return parser.parse_args()


def shuffled(*parts: torch.Tensor) -> Batch:
    """The rows of all parts in one order, the same in each run."""
    order = torch.randperm(len(parts[0]), generator=torch.Generator().manual_seed(1))
    return tuple(part[order] for part in parts)


def batches_of(parts: Sequence[torch.Tensor], size: int) -> list[Batch]:
    return list(zip(*(part.split(size) for part in parts)))


def relu_layers(sizes: Sequence[int]) -> torch.nn.Sequential:
    """Dense layers from sizes[0] inputs to sizes[-1] outputs, relu between them."""
    layers: list[torch.nn.Module] = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        dense = torch.nn.Linear(inputs, outputs)
        torch.nn.init.xavier_uniform_(dense.weight)
        torch.nn.init.zeros_(dense.bias)
        layers += [dense, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def adagrad(parameters: Iterable, **options: float) -> torch.optim.Optimizer:
    """TensorFlow's settings of it."""
    return torch.optim.Adagrad(
        parameters, initial_accumulator_value=0.1, eps=1e-7, fused=True, **options
    )


def train(
    batches: Sequence[Batch],
    epochs: int,
    optimizer: torch.optim.Optimizer,
    loss_of: Callable[..., torch.Tensor],
) -> None:
    """Prints examples a CPU second after the first epoch, and the last epoch's mean loss.

    The last tensor of a batch is its labels.
    """
    rows = sum(len(batch[-1]) for batch in batches)

    def epoch() -> float:
        total = 0.0
        for batch in batches:
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(*batch)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch[-1])
        return total / rows

    loss = epoch()  # warm: caches, and the compiler
    start = time.process_time()
    for _ in range(epochs - 1):
        loss = epoch()
    seconds = time.process_time() - start
    print(json.dumps({"rate": (epochs - 1) * rows / seconds, "loss": loss}))
