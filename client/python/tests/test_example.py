# SPDX-License-Identifier: MIT
"""Runs examples/train.py like a user: the job is killed with 4 ranks, continues with 3, and then with 8."""

import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
EXAMPLE = pathlib.Path(__file__).parent.parent / "examples/train.py"


def test_training_survives_kills(daemon):
    if not torch.distributed.is_available():
        pytest.skip("this torch has no distributed package")
    result = subprocess.run(
        [sys.executable, str(EXAMPLE), "--samples", "300_007", "--batch", "2000", "--every", "3"],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("killed; the checkpoint is at epoch") == 2
    for epoch in (0, 1):
        assert f"epoch {epoch}: 300,007 samples, 0 missing" in result.stdout
