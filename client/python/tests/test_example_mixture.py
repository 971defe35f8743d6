# SPDX-License-Identifier: MIT
"""Runs examples/mixture.py like a user: the job is killed with 4 ranks, continues with 3, and then with 8."""

import pathlib
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
EXAMPLE = pathlib.Path(__file__).parent.parent / "examples/mixture.py"


def test_each_source_is_read_as_the_mixture_says():
    if not torch.distributed.is_available():
        pytest.skip("this torch has no distributed package")
    result = subprocess.run(
        [sys.executable, str(EXAMPLE), "--steps", "600", "--every", "3"], capture_output=True, text=True, timeout=900
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("killed; the checkpoint is at position") == 2
    assert re.search(r"^maths: ([\d,]+) records read, \1 expected, each 1 to 2 times$", result.stdout, re.M), result.stdout
