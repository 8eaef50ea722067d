"""TensorFlow still writes the bytes of testdata/, so that bundle_test.cc compares with the real one."""

import pathlib
import runpy

FOLDER = pathlib.Path(__file__).parent


def test_committed_bundle_is_tensorflows(tmp_path: pathlib.Path) -> None:
    runpy.run_path(str(FOLDER / "make_test_bundle.py"))["save"](str(tmp_path / "tensorflow_bundle"))
    committed = sorted(p.name for p in (FOLDER / "testdata").glob("tensorflow_bundle.*"))
    assert committed == sorted(p.name for p in tmp_path.iterdir())
    for name in committed:
        assert (FOLDER / "testdata" / name).read_bytes() == (tmp_path / name).read_bytes(), name
