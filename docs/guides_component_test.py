"""The pages name flags that exist, and the guide from Keras has a line for each argument of `fit`."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from testbed import documents, keras_checks
from testbed.muster import Muster

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9_-]*")
# Flags of other programs, and of programs that a page has as an example.
OTHERS = {
    "--build", "--preset", "--target", "--test", "--no-install", "--soak",  # cmake, ./test
    "--install", "--prefix", "--component",  # cmake
    "--openssl", "--libdir", "--openssldir",  # tools/release.sh, OpenSSL's Configure
    "--logdir", "--log_dir", "--port",  # tensorboard, and the programs that it reads
    "--clusterrole", "--previous", "--replicas", "--user", "--create-namespace",
    "--reuse-values",  # kubectl, helm
    "--tag", "--log_dir",  # docker; of programs of TensorFlow
    "--hook-calls",  # of the Python package alone: no help shows it
    "--epoch",  # a misspelt one, as an example
    "--num_ps", "--num_worker",  # TensorFlowOnYARN
    "--train_dir", "--worker_size", "--steps", "--dir", "--model_dir", "--job_name", "--task_index",
    "--ps_hosts", "--worker_hosts", "--ps-hosts", "--worker-hosts", "--worker-type", "--worker-index",
    "--test-dir",
    "--app_id", "--application",  # ydl-tf
    "--archives", "--conf", "--jars", "--py-files",  # spark-submit
}  # fmt: skip
KERAS = """
import inspect, json, keras
def arguments(function):
    return [name for name in inspect.signature(function).parameters if name not in ("self", "kwargs")]
kinds = {name: kind for name, kind in vars(keras.callbacks).items()
         if inspect.isclass(kind) and issubclass(kind, keras.callbacks.Callback) and name != "CallbackList"}
print(json.dumps({
    "compile": arguments(keras.Model.compile),
    "fit": arguments(keras.Model.fit),
    "callbacks": {name: arguments(kind.__init__) for name, kind in kinds.items()},
}))
"""
# Of these callbacks each argument has its words. All have `verbose`, which is the progress lines'.
WITH_ARGUMENTS = (
    "BackupAndRestore",
    "EarlyStopping",
    "ModelCheckpoint",
    "OrbaxCheckpoint",
    "TensorBoard",
)


def flags_of(muster: Muster, *verbs: str) -> set[str]:
    """The flags in the help of a verb and of those below it."""
    help_text = muster.run(*verbs, "--help")
    everything = muster.call(*verbs, "--help-all")
    flags = set(FLAG.findall(help_text))
    if everything.returncode == 0:
        flags |= set(FLAG.findall(everything.stdout))
    # Verbs below are listed by two spaces; at the top in groups, each with a title.
    below = help_text if not verbs else "".join(re.findall(r"^Verbs:\n((?:  .*\n)+)", help_text, re.MULTILINE))
    names = re.findall(r"^  ([a-z][a-z-]+) {2,}\S", below, re.MULTILINE)
    return flags.union(*(flags_of(muster, *verbs, name) for name in names))


def test_each_flag_that_a_page_names_exists(muster: Muster) -> None:
    known = flags_of(muster)
    assert {"--workers", "--out", "--shards", "--hosts"} <= known
    unknown = [
        f"{page}:{number}: {flag}"
        for page in documents.pages()
        for number, line in enumerate((documents.ROOT / page).read_text().splitlines(), start=1)
        for flag in FLAG.findall(line)
        if flag not in known | OTHERS
    ]
    assert unknown == []


def section(page: str, heading: str) -> str:
    """The page's text from a heading to the next one of its level or above."""
    text = (documents.ROOT / page).read_text(encoding="utf-8")
    level = len(heading.split(" ")[0])
    begin = text.index(f"\n{heading}\n") + len(heading) + 2
    end = re.search(rf"^#{{1,{level}}} ", text[begin:], re.MULTILINE)
    return text[begin : begin + end.start()] if end else text[begin:]


def words_in_code(text: str) -> set[str]:
    return {word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", code)}


def rows_of(text: str) -> list[list[str]]:
    rows = [line for line in text.splitlines() if line.startswith("| ") and "| --- |" not in line]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


@pytest.fixture(scope="module")
def keras() -> dict:
    done = subprocess.run(
        [os.environ["MUSTER_PYTHON_TENSORFLOW"], "-c", KERAS], env=keras_checks.environment(),
        capture_output=True, text=True, timeout=documents.DEADLINE_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("call", ["compile", "fit"])
def test_each_argument_has_its_line(call: str, keras: dict) -> None:
    first = "".join(row[0] for row in rows_of(section("docs/from-keras-fit.md", f"### {call}")))
    assert set(keras[call]) - words_in_code(first) == set()


def test_each_callback_has_its_line(keras: dict) -> None:
    rows = rows_of(section("docs/from-keras-fit.md", "### Callbacks"))
    first = words_in_code("".join(row[0] for row in rows))
    assert set(keras["callbacks"]) - first == set()
    for name in WITH_ARGUMENTS:
        words = words_in_code(
            "".join("".join(row) for row in rows if re.search(rf"\b{name}\b", row[0]))
        )
        assert set(keras["callbacks"][name]) - {"verbose"} - words == set(), name
    assert "`verbose`" in section("docs/from-keras-fit.md", "### Callbacks")


def test_each_row_of_what_works_has_its_test() -> None:
    rows = rows_of(section("README.md", "## What works where"))[1:]
    assert len(rows) > 10
    for where, what, tests in rows:
        paths = re.findall(r"\]\(([^)]+_component_test\.py)\)", tests)
        assert paths, f"README.md: {where} {what}: no test"
        for path in paths:
            assert (documents.ROOT / path).is_file(), path


def anchor(heading: str) -> str:
    """As GitHub names a heading."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def test_each_link_between_pages_leads_somewhere() -> None:
    broken = []
    for path in sorted(documents.ROOT.glob("*.md")) + sorted(documents.ROOT.glob("[de]*/**/*.md")):
        prose = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        for link in re.findall(r"\]\(([^)\s]+)\)", prose):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, part = link.partition("#")
            target = path.parent / name if name else path
            where = f"{path.relative_to(documents.ROOT)}: {link}"
            if not target.exists():
                broken.append(where)
            elif part and target.suffix == ".md":
                text = re.sub(r"^```.*?^```", "", target.read_text(), flags=re.M | re.S)
                headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
                if part not in map(anchor, headings):
                    broken.append(where)
    assert broken == []
