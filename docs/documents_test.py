"""A page whose commands fail, or print something else than it says, is found out."""

from __future__ import annotations

import os
import pathlib

import pytest

from testbed import documents

PAGE = """
```yaml
# greeting.yaml
hello
```

```sh
cp greeting.yaml copied
```

```console
$ cat copied \\
    greeting.yaml
# greeting.yaml
hello
...
$ echo trained 1000 in 3s, 338k examples/s
trained 1001 in 5s, 12k examples/s
```

```sh
# Not tested: it would end badly
false
```
"""


@pytest.fixture
def follow(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    def follow_text(text: str) -> int:
        (tmp_path / "page.md").write_text(text)
        monkeypatch.setattr(documents, "ROOT", tmp_path)
        return documents.follow("page.md", tmp_path, dict(os.environ))

    return follow_text


def test_files_are_written_and_commands_run_in_their_order(follow) -> None:
    assert follow(PAGE) == 2


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("cp greeting.yaml", "cp missing.yaml", "page.md:7: exit code 1"),
        ("hello\n...", "goodbye\n...", "page.md:11: cat copied"),
        ("trained 1001", "trained 1100", "page.md:11: echo trained"),
        ("```sh\n# Not tested: it would end badly", "```\n# run me", "exit code 1"),
        ("# Not tested: it would end badly", "# Not tested: no", "exit code 1"),
    ],
)
def test_a_page_that_is_wrong(old: str, new: str, says: str, follow) -> None:
    assert PAGE.count(old) == 1
    with pytest.raises(AssertionError) as caught:
        follow(PAGE.replace(old, new))
    assert says in str(caught.value)


def test_a_fence_that_is_not_closed(follow) -> None:
    with pytest.raises(AssertionError, match="page.md:2: a fence that is not closed"):
        follow("\n```sh\ntrue\n")


def test_the_side_of_a_diff_that_the_reader_has_in_the_end() -> None:
    assert documents.after_side(" a\n-b\n+c\n d\n") == "a\nc\nd\n"
