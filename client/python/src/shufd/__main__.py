# SPDX-License-Identifier: MIT
"""`python -m shufd`: the program shufd of this package."""

from ._serve import shufd

shufd()
