"""Words of Optuna that `muster.tune` does not have, and what says the same here."""

from __future__ import annotations

from typing import Any, Mapping

CREATE_STUDY = {
    "study_name": "a study is known by its folder: create_study(study_dir=FOLDER)",
    "storage": "a study is kept in a folder of this machine: create_study(study_dir=FOLDER)",
    "load_if_exists": "create_study(study_dir=FOLDER) always continues the study that FOLDER has",
    "directions": "a study has one objective: direction='minimize' or 'maximize'",
}
OPTIMIZE = {
    "callbacks": "write the loop yourself, with study.ask() and study.tell(trial, value)",
    "show_progress_bar": "leave it out: print from the objective what you want to see",
    "gc_after_trial": "leave it out, and call gc.collect() in the objective",
}
STUDY = {
    "add_trial": "study.enqueue_trial(params) runs a trial at a point",
    "add_trials": "study.enqueue_trial(params) runs a trial at a point",
    "best_trials": "a study has one objective: study.best_trial",
    "directions": "a study has one objective: study.direction",
    "set_metric_names": "a study has one objective, which needs no name",
    "set_user_attr": "keep what you want to remember in a file of study.study_dir",
    "study_name": "a study is known by its folder: study.study_dir",
    "trials_dataframe": "pandas.DataFrame([vars(trial) for trial in study.trials])",
    "user_attrs": "keep what you want to remember in a file of study.study_dir",
}
TRIAL = {
    "distributions": "the space is that of the study: create_study(space=...)",
    "set_user_attr": "keep what you want to remember by trial.number",
    "suggest_discrete_uniform": "trial.suggest_categorical(name, values)",
    "suggest_loguniform": "trial.suggest_float(name, low, high, log=True)",
    "suggest_uniform": "trial.suggest_float(name, low, high)",
    "user_attrs": "keep what you want to remember by trial.number",
}
MODULE = {
    "TrialState": "states are the words 'complete', 'stopped' (pruned), 'failed' and 'running'",
    "copy_study": "copy the folder of the study",
    "delete_study": "remove the folder of the study",
    "load_study": "tune.create_study(study_dir=FOLDER) continues the study of FOLDER",
    "pruners": "pruner= is a word, or a map with settings: pruner='asha', pruner={'asha': {'factor': 2}}",
    "samplers": "sampler= is a word, or a map with settings: sampler={'tpe': {'startup_trials': 5}}",
    "visualization": "muster tensorboard FOLDER/hparams shows the study of FOLDER",
}


def check_keywords(call: str, given: Mapping[str, Any], known: Mapping[str, str]) -> None:
    """Raises TypeError for keywords that a call does not have."""
    for name in given:
        advice = f": {known[name]}" if name in known else ""
        raise TypeError(f"{call}() of muster.tune has no '{name}'{advice}")


def absent(owner: str, name: str, known: Mapping[str, str]) -> AttributeError:
    """The error of an attribute that an object does not have."""
    advice = f": {known[name]}" if name in known else ""
    return AttributeError(f"{owner} of muster.tune has no '{name}'{advice}")
