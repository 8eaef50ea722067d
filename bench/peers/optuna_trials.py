"""Optuna's side of `bench/run tune`: the same trials and functions as bench/tune/tune_trials.cc.

optuna_trials.py noop sqlite|journal FILE TRIALS THREADS: prints {"seconds": ...}.
optuna_trials.py tpe TRIALS SEED FUNCTION...: prints {"FUNCTION": best, ...}.
optuna_trials.py model TRIALS SEED MUSTER MODEL TRAIN EVAL FOLDER: prints {"best": ...}, the space and
    trainings of bench/tune_models.py.
"""

import json
import math
import shutil
import subprocess
import sys
import time

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)


def noop(kind: str, path: str, trials: int, threads: int) -> dict[str, float]:
    if kind == "sqlite":
        storage: optuna.storages.BaseStorage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    else:
        backend = optuna.storages.journal.JournalFileBackend(path)
        storage = optuna.storages.JournalStorage(backend)
    study = optuna.create_study(storage=storage, sampler=optuna.samplers.RandomSampler(seed=1))

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("y", 0.001, 1, log=True)
        return trial.suggest_float("x", 0, 1)

    start = time.monotonic()
    study.optimize(objective, n_trials=trials, n_jobs=threads)
    return {"seconds": time.monotonic() - start, "trials": len(study.trials)}


def cube(trial: optuna.Trial, dimensions: int, low: float, high: float) -> list[float]:
    return [trial.suggest_float(f"x{i}", low, high) for i in range(dimensions)]


def sphere(trial: optuna.Trial) -> float:
    return sum((x - 1) ** 2 for x in cube(trial, 5, -5, 5))


def rosenbrock(trial: optuna.Trial) -> float:
    x = cube(trial, 3, -2, 2)
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


def branin(trial: optuna.Trial) -> float:
    x = cube(trial, 2, 0, 1)
    a, b = 15 * x[0] - 5, 15 * x[1]
    bowl = (b - 5.1 / (4 * math.pi**2) * a * a + 5 / math.pi * a - 6) ** 2
    return bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10


def rastrigin(trial: optuna.Trial) -> float:
    x = cube(trial, 4, -5.12, 5.12)
    return 10 * len(x) + sum(a * a - 10 * math.cos(2 * math.pi * a) for a in x)


def ackley(trial: optuna.Trial) -> float:
    x = cube(trial, 4, -10, 10)
    squares = sum(a * a for a in x) / len(x)
    cosines = sum(math.cos(2 * math.pi * a) for a in x) / len(x)
    return -20 * math.exp(-0.2 * math.sqrt(squares)) - math.exp(cosines) + 20 + math.e


def mixed(trial: optuna.Trial) -> float:
    rate = math.log10(trial.suggest_float("rate", 1e-5, 1, log=True)) + 2
    layers = (trial.suggest_int("layers", 1, 8) - 3) / 2
    kind = trial.suggest_categorical("kind", [0, 1, 2])
    return rate**2 + layers**2 + 0.3 * kind + (-0.5 if kind == 1 else 0)


FUNCTIONS = {f.__name__: f for f in (sphere, rosenbrock, branin, rastrigin, ackley, mixed)}


def tpe(trials: int, seed: int, names: list[str]) -> dict[str, float]:
    best = {}
    for name in names:
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        study.optimize(FUNCTIONS[name], n_trials=trials)
        best[name] = study.best_value
    return best


def model(trials: int, seed: int, muster: str, spec: str, train: str, evaluation: str, folder: str) -> float:
    layers = ([16], [32, 16], [64, 32])

    def objective(trial: optuna.Trial) -> float:
        settings = {
            "model.linear.optimizer.ftrl.learning_rate": trial.suggest_float("wide", 0.003, 1, log=True),
            "model.dnn.optimizer.adagrad.learning_rate": trial.suggest_float("deep", 0.003, 1, log=True),
            "model.dnn.hidden_units": layers[trial.suggest_categorical("layers", [0, 1, 2])],
            "model.dnn.dropout": trial.suggest_float("dropout", 0, 0.5),
            "train.batch_size": trial.suggest_categorical("batch", [128, 256, 512]),
        }
        shutil.rmtree(folder, ignore_errors=True)
        command = [muster, "train", spec, folder, "--train", train, "--eval", evaluation, "--epochs", "1"]
        for path, value in settings.items():
            command += ["--set", f"{path}={json.dumps(value)}"]
        done = subprocess.run([*command, "--json", "--quiet"], check=True, capture_output=True, text=True)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return float([e for e in events if e["event"] == "evaluated"][-1]["auc"])

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(objective, n_trials=trials)
    return study.best_value


if __name__ == "__main__":
    if sys.argv[1] == "model":
        print(json.dumps({"best": model(int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])}))
    elif sys.argv[1] == "noop":
        print(json.dumps(noop(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))))
    else:
        print(json.dumps(tpe(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])))
