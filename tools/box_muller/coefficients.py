#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes kernels/inline/shuf/box_muller_table.h: the polynomials for ln, sin and cos of Box and Muller's method, for floats
and for doubles, with the relative error of each, in exact arithmetic.

    pip install mpmath
    tools/box_muller/coefficients.py >kernels/inline/shuf/box_muller_table.h
    clang-format -i kernels/inline/shuf/box_muller_table.h

Remez' algorithm finds the polynomial with the smallest largest relative error. Its coefficients are rounded to the type
one by one, the lowest first, and the remaining ones are fitted again each time. The values of a stream depend on every
bit of this table, so the table does not change after the first release of the method.
"""
import re
import textwrap

from mpmath import mp, mpf, cos, linspace, log, log1p, lu_solve, matrix, pi, sin

mp.prec = 300


def solve(f, weight, terms, powers, low, high, rounds=12):
    """The polynomial of these powers whose weighted error on [low, high] is least."""
    n = len(powers)
    at = [(low + high) / 2 - (high - low) / 2 * cos(pi * i / n) for i in range(n + 1)]
    at[0] = max(at[0], (high - low) * mpf(10) ** -12)
    grid = [low + (high - low) * (1 - cos(pi * (i + mpf(1) / 2) / (40 * n))) / 2
            for i in range(40 * n)] + [high]
    for _ in range(rounds):
        rows = matrix(n + 1, n + 1)
        right = matrix(n + 1, 1)
        for i, x in enumerate(at):
            for j, p in enumerate(powers):
                rows[i, j] = x**p * weight(x)
            rows[i, n] = (-1) ** i
            right[i] = (f(x) - sum(c * x**p for p, c in terms)) * weight(x)
        found = lu_solve(rows, right)
        every = terms + [(p, found[j]) for j, p in enumerate(powers)]
        error = [(sum(c * x**p for p, c in every) - f(x)) * weight(x) for x in grid]
        peaks = []
        for x, e in zip(grid, error):
            if peaks and (peaks[-1][1] > 0) == (e > 0):
                if abs(e) > abs(peaks[-1][1]):
                    peaks[-1] = (x, e)
            else:
                peaks.append((x, e))
        while len(peaks) > n + 1:
            peaks.pop(0 if abs(peaks[0][1]) < abs(peaks[-1][1]) else -1)
        if len(peaks) < n + 1:
            break
        at = [x for x, _ in peaks]
    return every, max(map(abs, error))


def rounded(x, bits):
    exponent = mp.floor(log(abs(x), 2))
    unit = mpf(2) ** (exponent - bits + 1)
    return mp.nint(x / unit) * unit


def find(f, weight, fixed, powers, high, bits):
    terms, left = list(fixed), list(powers)
    while left:
        every, _ = solve(f, weight, terms, left, mpf(0), mpf(high))
        terms.append((left[0], rounded(every[len(terms)][1], bits)))
        left.pop(0)
    return terms


def w(a):
    return -2 * log1p(-a) / a if a else mpf(2)


def sine(z):
    y = mp.sqrt(z)
    return sin(pi / 4 * y) / y if z else pi / 4


def cosine(z):
    return cos(pi / 4 * mp.sqrt(z))


FUNCTIONS = {"LOG": (w, [(0, mpf(2))], mpf(1) / 2), "SIN": (sine, [], 1), "COS": (cosine, [(0, mpf(1))], 1)}
# For floats, pi / 4 is rounded up, so SIN is too large near 0. Therefore both polynomials are fitted to a
# little less everywhere else. The mean square of the values is then 1, within 2 x 10^-9.
SHARE = {"F32": {"SIN": 1 - mpf("1.1e-8"), "COS": 1 - mpf("1.1e-8")}, "F64": {}}
DEGREES = {"F32": (24, {"LOG": 9, "SIN": 3, "COS": 3}), "F64": (53, {"LOG": 21, "SIN": 6, "COS": 7})}


def decimal(x, bits):
    """With so many digits that a compiler rounds it to x: C++ before C++17 reads no hexadecimal ones."""
    text = f"{float(x):.9g}f" if bits == 24 else repr(float(x))
    return text if re.search(r"[.e]", text) else text.replace("f", ".0f")


HEAD = """/* SPDX-License-Identifier: MIT
 *
 * The polynomials of shuf/box_muller.h, the lowest coefficient first. Written by
 * tools/box_muller/coefficients.py; do not edit.
 *
 *     LOG  -2 ln(1 - a) / a       in a, 0 < a <= 1/2
 *     SIN  sin(pi / 4 y) / y      in y^2, 0 < y <= 1
 *     COS  cos(pi / 4 y)          in y^2, 0 < y <= 1
 */
#ifndef SHUF_BOX_MULLER_TABLE_H
#define SHUF_BOX_MULLER_TABLE_H
"""


def main():
    print(HEAD)
    for number, (bits, degrees) in DEGREES.items():
        octave = rounded(2 * log(mpf(2)), bits)
        print(f"/* 2 ln 2 */\n#define SHUF_BOX_MULLER_OCTAVE_{number} {decimal(octave, bits)}\n")
        for name, degree in degrees.items():
            f, fixed, high = FUNCTIONS[name]
            if name == "SIN":
                fixed = [(0, rounded(pi / 4, bits))]
            powers = range(len(fixed), degree + 1)
            share = SHARE[number].get(name, 1)
            terms = find(lambda x: f(x) * share, lambda x: 1 / f(x), fixed, powers, high, bits)
            error = max(
                abs(sum(c * x**p for p, c in terms) / f(x) - 1)
                for x in linspace(mpf(high) / 4096, high, 4096)
            )
            print(f"/* Relative error at most 2^{float(log(error, 2)):.2f}. */")
            values = [decimal(c, bits) for _, c in terms]
            values = textwrap.wrap(", ".join(values), 88)
            print(f"#define SHUF_BOX_MULLER_{name}_{number}" + "".join(" \\\n    " + v for v in values))
            print()
    print("#endif")


if __name__ == "__main__":
    main()
