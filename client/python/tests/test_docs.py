# SPDX-License-Identifier: MIT
"""The examples of the documents and docstrings."""

import doctest
import pathlib

import pytest

import shufd

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = {PACKAGE.parent.parent / "docs/python.md": 30, PACKAGE / "README.md": 2}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_document(daemon, path):
    if path.name == "python.md":
        pytest.importorskip("torch")
    failed, tried = doctest.testfile(str(path), module_relative=False, optionflags=doctest.REPORT_NDIFF)
    assert failed == 0 and tried >= DOCUMENTS[path]


def test_docstrings(daemon):
    failed, tried = doctest.testmod(shufd)
    assert failed == 0 and tried >= 2


def test_everything_public_has_a_docstring():
    for name in shufd.__all__:
        value = getattr(shufd, name)
        assert value.__doc__, name
        if isinstance(value, type):
            for method, function in vars(value).items():
                assert method.startswith("_") or not callable(function) or function.__doc__, (name, method)
