#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the golden tables in this directory: an independent reference.

It is written from the specification (docs/spec.md) and shares no code with the
C sources. So an error goes unseen only if it was made twice. The script uses NumPy
if it is installed; without NumPy the largest rows take minutes.

    make.py           write the tables again
    make.py --check   compare new tables with the files, and change nothing
"""
import argparse
import bisect
import fractions
import hashlib
import itertools
import math
import pathlib
import re
import struct
import sys

try:
    import numpy
except ImportError:
    numpy = None

# The rounds of Philox4x32 for the words of a draw, and for its early words. Both methods of Gaussian streams
# use them.
DRAW_ROUNDS, DRAW_EARLY_ROUNDS = 9, 6

HERE = pathlib.Path(__file__).resolve().parent
M32 = (1 << 32) - 1
M64 = (1 << 64) - 1
CHUNK = 1 << 20

# ---- Philox4x64-10 (Salmon et al., SC'11) --------------------------------------


def philox4x64(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        left = 0xD2E7470EE14C6C93 * c0
        right = 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (right >> 64) ^ c1 ^ k0, right & M64, (left >> 64) ^ c3 ^ k1, left & M64
        k0 = (k0 + 0x9E3779B97F4A7C15) & M64
        k1 = (k1 + 0xBB67AE8584CAA73B) & M64
    return c0, c1, c2, c3


def key_word(seed, epoch, purpose, i, last=0):
    """`seed`: a seed, or a named key as key_of() makes it."""
    lane = philox4x64((i // 8, epoch, purpose, last), (seed & M64, seed >> 64))[i % 8 // 2]
    return lane >> 32 if i % 2 else lane & M32


# ---- Bijections of [0, 2^bits): `x` is an int or a NumPy array of uint64 --------


def philox24(seed, epoch, bits):
    right_bits, left_bits = (bits + 1) // 2, bits // 2
    right_mask, left_mask = (1 << right_bits) - 1, (1 << left_bits) - 1
    keys = [key_word(seed, epoch, 1, r) for r in range(24)]

    def f(x):
        left, right = x >> right_bits, x & right_mask
        for key in keys:
            product = left * 0xD2B74407B1CE6E93 & M64
            low = (product & M32) << (right_bits - left_bits) | right >> left_bits
            left, right = ((product >> 32) ^ key ^ right) & left_mask, low & right_mask
        return left << right_bits | right

    return f


def lcg(seed, epoch, bits):
    words = [key_word(seed, epoch, 2, i) for i in range(4)]
    a = (words[1] << 32 | words[0]) | 1
    c = words[3] << 32 | words[2]
    mask = (1 << bits) - 1
    return lambda x: (x * a + c) & mask


COMPACTED = {"philox24": philox24, "lcg": lcg}


def compacted(algorithm, n, seed, epoch):
    """The values below n among f(0), f(1), ..., f(2^bits - 1), in that order."""
    bits = max(4, (n - 1).bit_length())
    f = COMPACTED[algorithm](seed, epoch, bits)
    if numpy is None:
        return [y for y in map(f, range(1 << bits)) if y < n]
    parts = []
    for start in range(0, 1 << bits, CHUNK):
        y = f(numpy.arange(start, min(start + CHUNK, 1 << bits), dtype=numpy.uint64))
        parts.append(y[y < n])
    return numpy.concatenate(parts)


# ---- primefold -------------------------------------------------------------------


def is_prime(p):
    """The test of Miller and Rabin. With these bases it is right for every p below 3.18e23."""
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if p < 2 or any(p % b == 0 for b in bases):
        return p in bases
    odd, twos = p - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1

    def passes(base):
        power = pow(base, odd, p)
        return power == 1 or any(pow(power, 1 << i, p) == p - 1 for i in range(twos))

    return all(map(passes, bases))


def exchanged(n, seed, epoch):
    """The permutation for n <= 256, by the shuffle of Fisher and Yates."""
    a = list(range(n))
    for k in range(n - 1, 0, -1):
        j = key_word(seed, epoch, 3, k, n) * (k + 1) >> 32
        a[k], a[j] = a[j], a[k]
    return a


def primefold_count(n, p):
    """The number of maps of primefold."""
    b, d = (p - 1).bit_length(), (n - 1).bit_length()
    if n <= 65521:
        return next(maps for most, maps in ((9, 10), (10, 9), (13, 8), (16, 7)) if b <= most)
    return next(maps for most, maps in ((21, 8), (62, 7)) if d <= most)


def weak_multipliers(p):
    """The weak multipliers: 2^k, p - 2^k and the inverses of both, for k below the number of bits of p - 1."""
    powers = [pow(2, k, p) for k in range((p - 1).bit_length())]
    signed_powers = set(powers) | {p - x for x in powers}
    return signed_powers | {pow(x, -1, p) for x in signed_powers}


def prime_from(n):
    return next(q for q in range(n, 2 * n) if is_prime(q))


def primefold_shift(n):
    return 2 if n <= 65521 else 6 if n <= 1 << 21 else 8


def primefold_prime(n):
    """The prime p for n > 256."""
    q, shift = prime_from(n), primefold_shift(n)
    if n <= 65521 or q % (1 << (q - 1).bit_length() - shift) < 1024:
        return q
    part = 1 << (n - 1).bit_length() - shift
    return prime_from(-(-n // part) * part)


def primefold_key(n, seed, epoch):
    """For n > 256: p, the shift, the addend, (multiplier, fold) of each map, and how many multipliers were
    weak before they were tripled."""
    small = n <= 65521
    p = primefold_prime(n)
    shift, z = primefold_shift(n), 32 if small else 64

    def word(i):
        if small:
            return key_word(seed, epoch, 3, i, n)
        return key_word(seed, epoch, 3, 2 * i + 1, n) << 32 | key_word(seed, epoch, 3, 2 * i, n)

    weak, maps, met = weak_multipliers(p), [], 0
    for r in range(primefold_count(n, p)):
        multiplier = 1 + (word(2 * r + 1) * (p - 1) >> z)
        met += r > 0 and multiplier in weak
        while r > 0 and multiplier in weak:
            multiplier = 3 * multiplier % p
        fold = word(2 * r + 2) % (1 << (p - 1).bit_length() - shift)
        maps.append((multiplier, fold))
    return p, shift, word(0) * p >> z, maps, met


def block_of(x, n, p, shift):
    """The size of the block in which x is folded."""
    most = 1 << (p - 1).bit_length() - shift
    if n > 65521:
        return most if x < p // most * most else 1
    return min(most, 1 << (x ^ p).bit_length() - 1)


def primefold_round(x, n, p, shift, addend, maps):
    """Applies all maps once. x is an int."""
    for r, (multiplier, fold) in enumerate(maps):
        x = (multiplier * x + (addend if r == 0 else 0)) % p
        if r + 1 < len(maps):
            x ^= (x >> shift ^ fold) % block_of(x, n, p, shift)
    return x


def primefold_at(n, seed, epoch, position):
    if n <= 256:
        return exchanged(n, seed, epoch)[position]
    key = primefold_key(n, seed, epoch)[:4]
    x = primefold_round(position, n, *key)
    while x >= n:
        x = primefold_round(x, n, *key)
    return x


def primefold(n, seed, epoch):
    if n <= 256:
        values = exchanged(n, seed, epoch)
        return values if numpy is None else numpy.array(values, dtype=numpy.uint64)
    p, shift, addend, maps = key = primefold_key(n, seed, epoch)[:4]
    if numpy is None or n <= 65521:
        values = [primefold_round(i, n, *key) for i in range(n)]
        if numpy is not None:
            values = numpy.array(values, dtype=numpy.uint64)
    else:
        assert p < 1 << 31  # so a product fits 64 bits
        block = 1 << (p - 1).bit_length() - shift
        x = numpy.arange(n, dtype=numpy.uint64)
        for r, (multiplier, fold) in enumerate(maps):
            x = (x * multiplier + (addend if r == 0 else 0)) % p
            if r + 1 < len(maps):
                x = numpy.where(x < p // block * block, x ^ x >> shift ^ fold, x)
        values = x
    for i in [i for i, y in enumerate(values) if y >= n] if p > n else []:
        y = int(values[i])
        while y >= n:
            y = primefold_round(y, n, *key)
        values[i] = y
    return values


# ---- Windowed orders ------------------------------------------------------------


def chunk_sizes(n, chunk):
    """The sizes of chunks of `chunk` records."""
    return [min(chunk, n - first) for first in range(0, n, chunk)]


def split_mix(z):
    """The last step of SplitMix64."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
    return z ^ z >> 31


def chunks_name(sizes):
    """The word that stands for the sizes in the counter of the keys."""
    if all(size == sizes[0] for size in sizes[:-1]) and sizes[-1] <= sizes[0]:
        return sizes[0]
    return 1 << 63 | sum(split_mix(size + (i + 1) * GOLDEN & M64) for i, size in enumerate(sizes)) % (1 << 63)


def windows_of(sizes, window, seed, epoch):
    """For each window, (first record, size) of its chunks; and the key of the orders within windows."""
    words = philox4x64((chunks_name(sizes), epoch, 6, sum(sizes)), (seed & M64, seed >> 64))
    of_chunks, of_windows = words[0] | words[1] << 64, words[2] | words[3] << 64
    begins = [0, *itertools.accumulate(sizes)]
    order = [int(k) for k in primefold(len(sizes), of_chunks, 0)]
    windows = [order[first : first + window] for first in range(0, len(order), window)]
    return [[(begins[k], sizes[k]) for k in chunks] for chunks in windows], of_windows


def windowed(sizes, window, seed, epoch):
    """All values, from lists of the records of each window."""
    if window >= len(sizes):
        return [int(v) for v in primefold(sum(sizes), seed, epoch)]
    windows, key = windows_of(sizes, window, seed, epoch)
    values = []
    for number, chunks in enumerate(windows):
        records = [record for first, size in chunks for record in range(first, first + size)]
        values += [records[int(i)] for i in primefold(len(records), key, number)]
    return values


def subset(kept, sizes, window, seed, epoch):
    """All values of the subset of ascending records of a windowed order."""
    counts, begin = [], 0
    for size in sizes:
        counts.append(sum(begin <= record < begin + size for record in kept))
        begin += size
    return [kept[i] for i in windowed([count for count in counts if count], window, seed, epoch)]


def windowed_at(sizes, window, seed, epoch, position):
    """One value of an order with fewer than 2^16 chunks, each of which may be large."""
    if window >= len(sizes):
        return primefold_at(sum(sizes), seed, epoch, position)
    windows, key = windows_of(sizes, window, seed, epoch)
    for number, chunks in enumerate(windows):
        count = sum(size for _, size in chunks)
        if position < count:
            break
        position -= count
    i = primefold_at(count, key, number, position)
    for first, size in chunks:
        if i < size:
            return first + i
        i -= size
    raise AssertionError


# ---- Mixtures -----------------------------------------------------------------------


def mixture_key(seed, number, use):
    words = philox4x64((number, use, 7, 0), (seed & M64, 0))
    return words[0] | words[1] << 64


def mixture_tree(weights):
    """A tree of nested pairs. `weights` has (source, weight); a leaf is a source."""
    nodes = [(weight, number, source) for number, (source, weight) in enumerate(weights)]
    number = len(nodes)
    while len(nodes) > 1:
        nodes.sort(key=lambda node: node[:2])
        (v, _, left), (u, _, right) = nodes[:2]
        nodes[:2] = [(v + u, number, (v, u, left, right))]
        number += 1
    return nodes[0][2]


def mixture_lack(tree, lacks):
    """What the sources of a tree lack together."""
    return sum(mixture_lack(child, lacks) for child in tree[2:]) if isinstance(tree, tuple) else lacks[tree]


def mixture_shares(tree, n, lacks, shares):
    """Adds source: draws to a dictionary whose order is that of the slots."""
    if isinstance(tree, tuple):
        v, u, left, right = tree
        w = v + u
        carry = (mixture_lack(left, lacks) * w - mixture_lack(tree, lacks) * v) >> 32
        share = min(n, max(0, (2 * (n * v + carry) + w) // (2 * w)))
        mixture_shares(left, share, lacks, shares)
        mixture_shares(right, n - share, lacks, shares)
    else:
        shares[tree] = n
    return shares


class Mixture:
    """sources: (n, epochs, chunk, window) with None for what is not there; stages: (first, weights)."""

    def __init__(self, sources, stages, block, seed):
        self.sources, self.seed, self.block, self.stages = sources, seed, block, []
        drawn, lacks = [0] * len(sources), [0] * len(sources)
        ends, begin = [first for first, _ in stages[1:]] + [1 << 62], 0
        for (_, given), end in zip(stages, ends):
            weights = [w // math.gcd(*given) for w in given]
            while begin < end:
                active = [
                    (i, w) for i, w in enumerate(weights)
                    if w and (sources[i][1] is None or drawn[i] < sources[i][0] * sources[i][1])
                ]  # fmt: skip
                if not active:
                    break
                tree = mixture_tree(active)
                length = self.length_of(tree, drawn, lacks, end - begin)
                blocks = sum(-(-stage[1] // block) for stage in self.stages)
                self.stages.append((begin, length, tree, list(drawn), list(lacks), blocks))
                weight = sum(w for _, w in active)
                for i, count in mixture_shares(tree, length, self.stages[-1][4], {}).items():
                    drawn[i] += count
                    lacks[i] += (length * weights[i] << 32) // weight - (count << 32)
                begin += length
        self.length = begin

    def length_of(self, tree, drawn, lacks, most):
        """By halving: the most positions with which no source passes its end."""

        def fits(n):
            return all(
                self.sources[i][1] is None or drawn[i] + count <= self.sources[i][0] * self.sources[i][1]
                for i, count in mixture_shares(tree, n, lacks, {}).items()
            )

        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle) else (low, middle - 1)
        return low

    def place(self, position):
        begin, length, tree, drawn, lacks, blocks = [s for s in self.stages if s[0] <= position][-1]
        inside = position - begin
        first = inside - inside % self.block
        slots = min(self.block, length - first)
        order = [int(slot) for slot in primefold(slots, mixture_key(self.seed, 0, 1), blocks + first // self.block)]
        before, after = (mixture_shares(tree, n, lacks, {}) for n in (first, first + slots))
        owner = [source for source in before for _ in range(after[source] - before[source])]
        source = owner[order[inside - first]]
        rank = sum(owner[slot] == source for slot in order[: inside - first])
        n, _, chunk, window = self.sources[source]
        epoch, at = divmod(drawn[source] + before[source] + rank, n)
        key = mixture_key(self.seed, source, 0)
        if chunk:
            record = windowed_at(chunk_sizes(n, chunk), window, key, epoch, at)
        else:
            record = primefold_at(n, key, epoch, at)
        return source, epoch, record


ALGORITHMS = ("primefold", "philox24", "lcg")


def permutation(algorithm, n, seed, epoch):
    if algorithm == "primefold":
        return primefold(n, seed, epoch)
    return compacted(algorithm, n, seed, epoch)


# ---- Fingerprint ----------------------------------------------------------------


GOLDEN = 0x9E3779B97F4A7C15


def fingerprint_mix(z):
    w = (z & M32) * (z >> 32)
    x = w ^ z
    return ((x ^ w >> 32) & M32) * (x >> 32 | 1) + z


def fingerprint_term(value, i):
    return fingerprint_mix(value + (i + 1) * GOLDEN & M64) & M64


def fingerprint(values):
    """The sum of the terms, mod 2^64."""
    if numpy is None:
        return sum(fingerprint_term(v, i) for i, v in enumerate(values)) & M64
    place = numpy.arange(1, len(values) + 1, dtype=numpy.uint64)
    return int(fingerprint_mix(values + place * GOLDEN).sum(dtype=numpy.uint64))


# ---- Streams ---------------------------------------------------------------------


def philox4x32(counter, key, rounds):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(rounds):
        left = 0xD2511F53 * c0
        right = 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (right >> 32) ^ c1 ^ k0, right & M32, (left >> 32) ^ c3 ^ k1, left & M32
        k0 = (k0 + 0x9E3779B9) & M32
        k1 = (k1 + 0xBB67AE85) & M32
    return c0, c1, c2, c3


def stream_words(seed, stream, block, index, rounds):
    """Words 4 * index to 4 * index + 3 of a stream. `block`: 1 for uniform streams, 0 and 2 for normal ones, 5 and 6
    for weighted draws and samples, 7 for exponential streams."""
    k0, k1, k2, k3 = (key_word(seed, stream, 4, 8 * block + i) for i in range(4))
    low, high = index & M32, index >> 32
    counter = (low, high, k2, k3) if block in (1, 5, 6) else (low, k2, high, k3)
    return philox4x32(counter, (k0, k1), rounds)


def gauss_table():
    """Reads the table from the C header. No formula gives its numbers: a search has found them."""
    text = (HERE / "../../kernels/inline/shuf/gauss_table.h").read_text()
    body = text[text.index("shuf_gauss_table[256]") :]
    entries = [int(e) for e in re.findall(r"-?\d+", body[body.index("{") :])]
    assert len(entries) == 4096
    return entries


# Bits of the fraction, and the exponent of the smallest normal number.
FORMATS = {"f64": (52, -1022), "f32": (23, -126), "f16": (10, -14), "bf16": (7, -126)}


def rounded(x, dtype):
    """Rounds x to the nearest number of a type, and ties to even. x must not be too large for the type."""
    fraction, smallest = FORMATS[dtype]
    if x == 0:
        return fractions.Fraction(0)
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length() - 1
    while abs(x) >= fractions.Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = fractions.Fraction(2) ** (max(exponent, smallest) - fraction)
    return round(x / unit) * unit  # round() rounds ties to even


def number_bits(x, dtype):
    """The bits of a number of the type."""
    if dtype == "bf16":
        return struct.unpack("<I", struct.pack("<f", float(x)))[0] >> 16
    form, word = {"f64": "dQ", "f32": "fI", "f16": "eH"}[dtype]
    return struct.unpack("<" + word, struct.pack("<" + form, float(x)))[0]


def hadamard(x):
    return [
        sum(-v if (p & q).bit_count() % 2 else v for q, v in enumerate(x)) for p in range(len(x))
    ]


class Gauss:
    def __init__(self, seed, stream, mean, std, dtype):
        self.table = gauss_table()
        self.key, self.dtype = (seed, stream), dtype
        self.format = "f64" if dtype == "f64" else "f32"
        self.std, self.mean = (rounded(x, self.format) for x in (std, mean))
        self.blocks = {}

    def draw(self, index):
        """The words of a draw, and its words after fewer rounds (the early words)."""
        return [stream_words(*self.key, 0, index, r) for r in (DRAW_ROUNDS, DRAW_EARLY_ROUNDS)]

    def entry(self, word, table):
        """Twice an input of the transform."""
        first = self.table[(word >> 24) * 16 + table % 16]
        second = self.table[word % 256 * 16 + (table + 8) % 16]
        return 2 * (first + second + (word >> 8) % 2**15 - 2**14) + 1

    def block(self, number):
        if number not in self.blocks:
            draws = [self.draw(16 * number + j) for j in range(16)]
            word, early = ([w for draw in draws for w in draw[i]] for i in (0, 1))
            x = [self.entry(early[q], q + number % 32) for q in range(32)]
            s = [fractions.Fraction(twice, 2) for twice in hadamard(x)]
            self.blocks[number] = [*zip(s, word, word[32:], early[32:])]
        return self.blocks[number]

    def double(self, s, word, tail, early):
        unit = fractions.Fraction(1, 2**37)
        high = (s * 2**18 + word % 2**23 - 2**22) * unit
        low = rounded((tail + (early + fractions.Fraction(1, 2)) / 2**32) / 2**32 * unit, "f64")
        return rounded(high + low, "f64")

    def standard(self, s, word, tail, early):
        """The standard value before its sign is applied."""
        if self.dtype == "f64":
            return self.double(s, word, tail, early)
        exact = (s * 2**18 + (word % 2**23 | 1) - 2**22) * fractions.Fraction(1, 2**37)
        z = rounded(exact, "f32")
        if abs(z) <= fractions.Fraction(1, 2**12):
            exact = self.double(s, word, tail, early)
            z = rounded(exact, "f32")
        if self.dtype != "f32":
            bits = number_bits(z, "f32")
            bits = bits - (abs(z) > abs(exact)) | 1
            z = fractions.Fraction(struct.unpack("<f", struct.pack("<I", bits))[0])
        return z

    def bits(self, i):
        p, block = i % 1024 // 64 * 2 + i % 2, self.block(i // 1024 * 32 + i % 64 // 2)
        z = self.standard(*block[p])
        z = -z if block[p][1] >> 31 else z
        y = rounded(z * self.std + self.mean, self.format)
        final = rounded(y, self.dtype)
        minus = 0x8000 if final == 0 and y < 0 else 0  # a fraction has no -0
        return number_bits(final, self.dtype) | minus


class BoxMuller:
    """The method of Box and Muller. All numbers are exact fractions."""

    def __init__(self, seed, stream, mean, std, dtype):
        self.key, self.dtype = (seed, stream), dtype
        self.format, self.size = ("f64", 64) if dtype == "f64" else ("f32", 32)
        self.mean, self.std = map(self.rn, (mean, std))
        self.number = self.parameters()

    @staticmethod
    def parameters():
        text = (HERE / "../../kernels/inline/shuf/box_muller_table.h").read_text()
        number = r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
        lists = re.findall(rf"#define SHUF_BOX_MULLER_(\w+_(F\d\d))((?:[ ,f\\\n]+{number})+)", text)
        return {
            name: [rounded(fractions.Fraction(v), format.lower()) for v in re.findall(number, values)]
            for name, format, values in lists
        }

    def rn(self, x):
        return rounded(fractions.Fraction(x), self.format)

    def fma(self, x, y, z):
        return self.rn(x * y + z)

    def root(self, x):
        """The rounded square root of x. Scales x to an integer, so that its root has 40 bits more than needed."""
        if x == 0:
            return x
        shift = 2 * (FORMATS[self.format][0] + 40 + max(0, x.denominator.bit_length()))
        scaled = (x.numerator << shift) // x.denominator
        below = math.isqrt(scaled)
        exact = below * below == scaled and scaled * x.denominator == x.numerator << shift
        # If the root is not exact, one more bit is set. So a root that is not exact is never a tie.
        return self.rn(fractions.Fraction(2 * below + (0 if exact else 1), 2 << shift // 2))

    def polynomial(self, x, coefficients):
        value = coefficients[-1]
        for c in coefficients[-2::-1]:
            value = self.fma(x, value, c)
        return value

    def log(self, a):
        p = self.number["LOG_" + self.format.upper()]
        if self.format == "f32":
            return self.polynomial(a, p)
        b = self.rn(a * a)
        even, odd = self.polynomial(b, p[2::2]), self.polynomial(b, p[1::2])
        return self.fma(a, self.fma(a, even, odd), p[0])

    def square(self, high, low):
        """The square of the radius, -2 ln u."""
        two, size, rest = fractions.Fraction(2), self.size, (1 << self.size - 1) - 1
        x = self.fma(self.rn(low & rest | 1), two ** (1 - size), self.rn(high & rest))
        if high >> size - 1:
            k, a = 0, x / two**size
        else:
            k = next(k for k in range(-1, 2 * size) if two ** (size - k - 1) <= x < two ** (size - k))
            a = 1 - x * two ** (k - size)
        assert self.rn(a) == a
        octaves = self.rn(k * self.number["OCTAVE_" + self.format.upper()][0])
        return self.fma(a, self.log(a), octaves)

    def radius(self, high, low):
        return self.root(self.square(high, low))

    def angle(self, high, low):
        two, size, rest = fractions.Fraction(2), self.size, (1 << self.size - 1) - 1
        y = self.fma(
            self.rn(low & rest), two ** (2 - 2 * size), self.rn(high & rest) * two ** (1 - size)
        )
        z = self.rn(y * y)
        sine, cosine = (
            self.polynomial(z, self.number[name + self.format.upper()]) for name in ("SIN_", "COS_")
        )
        sine = self.rn(sine * y)
        return (
            -cosine if high >> size - 1 else cosine,
            -sine if low >> size - 1 else sine,
        )

    def pair(self, radius, angle):
        r, (c, s) = self.radius(*radius), self.angle(*angle)
        x, y = self.rn(c * r), self.rn(s * r)
        if self.format == "f32":
            turn, grow = self.small(radius[1] | 1), self.small(angle[1])
            x, y = self.fma(x, grow, x), self.fma(y, self.rn(turn + grow), y)
        return (y, x) if radius[1] >> self.size - 1 else (x, y)

    def small(self, low):
        two = fractions.Fraction(2)
        return self.fma(self.rn(low & (1 << 31) - 1), two**-41, -(two**-11))

    def words(self, m):
        return [stream_words(*self.key, 2, m, r) for r in (DRAW_ROUNDS, DRAW_EARLY_ROUNDS)]

    def standard(self, i):
        if self.format == "f64":
            word, early = self.words(i // 2)
            return self.pair(
                *((word[j] << 32 | word[j + 1], early[j] << 32 | early[j + 1]) for j in (0, 2))
            )[i % 2]
        word, early = self.words(i // 4)
        j = i % 4 // 2 * 2
        return self.pair((word[j], early[j]), (word[j + 1], early[j + 1]))[i % 2]

    def bits(self, i):
        v = self.standard(i)
        if self.dtype in ("f16", "bf16"):  # a fraction has no -0; v is 0 once in 2^62 values
            odd = number_bits(v, "f32") | 1
            v = fractions.Fraction(struct.unpack("<f", struct.pack("<I", odd))[0])
        y = self.fma(v, self.std, self.mean)
        final = rounded(y, self.dtype)
        minus = 0x8000 if final == 0 and y < 0 else 0  # a fraction has no -0
        return number_bits(final, self.dtype) | minus


def uniform_bits(seed, stream, dtype, i):
    if dtype in ("u32", "f32"):
        word = stream_words(seed, stream, 1, i // 4, 10)[i % 4]
    else:
        words = stream_words(seed, stream, 1, i // 2, 10)
        word = words[i % 2 * 2 + 1] << 32 | words[i % 2 * 2]
    if dtype == "f32":
        return number_bits(fractions.Fraction(word >> 8, 1 << 24), "f32")
    if dtype == "f64":
        return number_bits(fractions.Fraction(word >> 11, 1 << 53), "f64")
    return word


class Exponential:
    def __init__(self, seed, stream, mean, dtype):
        self.key, self.dtype = (seed, stream), dtype
        self.half = fractions.Fraction(mean) / 2
        self.log = BoxMuller(0, 0, 0, 1, "f64")

    def bits(self, i):
        each = 2 if self.dtype == "f64" else 4
        word, early = (stream_words(*self.key, 7, i // each, r) for r in (DRAW_ROUNDS, DRAW_EARLY_ROUNDS))
        j = i % each
        if self.dtype == "f64":
            high, low = (w[2 * j] << 32 | w[2 * j + 1] for w in (word, early))
        else:
            high, low = word[j] << 32 | early[j], 0
        y = rounded(self.log.square(high, low) * self.half, "f64")
        return number_bits(rounded(y, self.dtype), self.dtype)


class Bernoulli:
    def __init__(self, seed, stream, mean, dtype):
        self.key, self.size = (seed, stream), int(dtype[1:])
        self.threshold = round(fractions.Fraction(mean) * 2**63)

    def word(self, i):
        """The bits 32 i to 32 i + 31."""
        k0, k1, k2, k3 = (key_word(*self.key, 4, 64 + j) for j in range(4))
        low, high = i // 4 & M32, i // 4 >> 32
        digits = [philox4x32((low, high, k2 ^ j, k3), (k0, k1), 10)[i % 4] for j in range(63)]
        fractions_of_bits = [sum((w >> bit & 1) << 62 - j for j, w in enumerate(digits)) for bit in range(32)]
        return sum((f < self.threshold) << bit for bit, f in enumerate(fractions_of_bits))

    def bits(self, i):
        return self.word(i) if self.size == 32 else self.word(2 * i + 1) << 32 | self.word(2 * i)


class Integers:
    def __init__(self, seed, stream, bound, dtype):
        self.key, self.bound, self.size = (seed, stream), bound, int(dtype[1:])

    def word(self, i, attempt):
        k0, k1, k2, k3 = (key_word(*self.key, 4, 72 + j) for j in range(4))
        draw, number = divmod(i, 128 // self.size)
        words = philox4x32((draw & M32, draw >> 32, k2 ^ attempt, k3), (k0, k1), 10)
        return words[number] if self.size == 32 else words[2 * number + 1] << 32 | words[2 * number]

    def bits(self, i):
        for attempt in itertools.count():
            value, rest = divmod(self.word(i, attempt) * self.bound, 2**self.size)
            if rest >= 2**self.size % self.bound:
                return value


# ---- Weighted draws --------------------------------------------------------------


def exact_weight(kind, bits):
    """The value of a weight, whose bits are given."""
    if kind == "u64":
        return fractions.Fraction(bits)
    whole, real = ("<Q", "<d") if kind == "f64" else ("<I", "<f")
    return fractions.Fraction(struct.unpack(real, struct.pack(whole, bits))[0])


def power_of_two(exponent):
    return fractions.Fraction(2) ** exponent


def exponent_of(weights):
    """The least e with all weights below 2^e."""
    largest = max(weights)
    e = largest.numerator.bit_length() - largest.denominator.bit_length()
    while largest >= power_of_two(e):
        e += 1
    while largest < power_of_two(e - 1):
        e -= 1
    return e


def rounded_weights(weights):
    """The numerators of the probabilities, with the sum 2^63."""
    e, sums = exponent_of(weights), [0]
    for weight in weights:
        sums.append(sums[-1] + math.floor(weight * power_of_two(95 - e)))
    s = sums[-1].bit_length() - 64
    parts = [((c >> s) << 63) // (sums[-1] >> s) for c in sums]
    return [end - begin for begin, end in zip(parts, parts[1:])]


def weight_columns(q):
    """(threshold, alias) of each column."""
    c = (len(q) - 1).bit_length()
    full = 1 << (63 - c)
    q = q + [0] * ((1 << c) - len(q))
    light = [j for j, x in enumerate(q) if x <= full]
    heavy = [j for j, x in enumerate(q) if x > full]
    gaps, surplus = [0], []
    for j in light:
        gaps.append(gaps[-1] + full - q[j])
    for j in heavy:
        surplus.append(q[j] - full + (surplus[-1] if surplus else 0))
    columns = [None] * len(q)
    for a, j in enumerate(light):
        columns[j] = (full, j) if q[j] == full else (q[j], heavy[bisect.bisect_right(surplus, gaps[a])])
    for b, j in enumerate(heavy):
        least = gaps[bisect.bisect_left(gaps, surplus[b])]
        columns[j] = full + surplus[b] - least, heavy[b + 1] if b + 1 < len(heavy) else j
    return columns


def weighted_draw(columns, seed, epoch, i):
    words = stream_words(seed, epoch, 5, i // 2, 10)
    number = (words[i % 2 * 2 + 1] << 32 | words[i % 2 * 2]) >> 1
    low = 63 - (len(columns) - 1).bit_length()
    threshold, alias = columns[number >> low]
    return number >> low if number % (1 << low) < threshold else alias


# ---- DistributedSampler ----------------------------------------------------------


def sampler_positions(n, world, rank, drop_last):
    """The positions that torch's DistributedSampler gives to one rank."""
    indices = list(range(n))
    if drop_last and n % world != 0:
        samples = math.ceil((n - world) / world)
    else:
        samples = math.ceil(n / world)
    total = samples * world
    if drop_last:
        indices = indices[:total]
    else:
        padding = total - n
        indices += (indices * math.ceil(padding / n))[:padding]
    assert len(indices) == total
    return indices[rank:total:world]


# ---- Tables ----------------------------------------------------------------------

NOTE = "# SPDX-License-Identifier: MIT\n# Written by make.py; do not edit.\n"

KEYS = [
    (7, 0),
    (7, 3),
    (0, 0),
    (0xFEDCBA9876543210, (1 << 40) + 5),
    (M64, M64),
]
SMALL = list(range(1, 41))
MIDDLE = [63, 64, 65, 95, 96, 97, 98, 100, 128, 255, 256, 257, 1000, 65535, 65536, 65537]
LARGE = [1000003, (1 << 20) + 1, (1 << 24) + 1]


def longest_tail(whole):
    """The largest prime less than 1024 above `whole`, a multiple of the blocks' size. For a larger n, n is
    rounded up to a whole block."""
    return next(q for q in range(whole + 1023, whole, -1) if is_prime(q))


# Sizes for primefold only, on both sides of each limit at which the number of maps or the form of the folds changes.
BORDERS = [
    97, 98, 99, 127, 128, 129, 131, 132, 191, 193, 255, 256, 257, 258, 383, 384, 385, 509, 510, 512,
    513, 521, 522, 769, 1000, 1020, 1021, 1022, 1024, 1025, 1031, 2038, 2039, 2040, 2048, 2053,
    4093, 4094, 4096, 4099, 8190, 8191, 8192, 8209, 12289, 16380, 16381, 16382, 16384, 16411, 32748,
    32749, 32750, 32768, 32771, 40961, 49157, 65519, 65520, 65521, 65522, 65535, 65536, 65537, 65538,
    (1 << 17) - 1, 1 << 17, (1 << 17) + 1, (1 << 18) - 1, 1 << 18, (1 << 18) + 1,
    *(longest_tail(whole) + i for whole in (1 << 16, 1 << 20, 33 << 15) for i in (0, 1)),
]  # fmt: skip


def permute_row(algorithm, n, seed, epoch):
    values = permutation(algorithm, n, seed, epoch)
    shown = [*values] if n <= 40 else [*values[:8], *values[-4:]]
    head = f"{algorithm} {n} {seed:#x} {epoch:#x} {fingerprint(values):#018x}"
    return " ".join([head, *map(str, shown)])


def permute_table():
    yield NOTE + (
        "# Permutations. Columns: algorithm, n, seed, epoch, fingerprint of the whole\n"
        "# permutation, then its values: all of them if n <= 40, otherwise the first 8 and\n"
        "# the last 4."
    )
    for algorithm in ALGORITHMS:
        for n in SMALL + MIDDLE:
            for seed, epoch in KEYS:
                yield permute_row(algorithm, n, seed, epoch)
        for n in LARGE:
            for seed, epoch in (KEYS[0], KEYS[3]):
                yield permute_row(algorithm, n, seed, epoch)
    for n in BORDERS:
        yield permute_row("primefold", n, *KEYS[3])
    for n in (257, 263, 337, 509, 1021, 1093):
        for epoch in weak_epochs(n):
            yield permute_row("primefold", n, 7, epoch)


def weak_epochs(n):
    """Two epochs: the one with the most weak multipliers, and the one where a multiplier is tripled most often."""
    p, weak = primefold_key(n, 7, 0)[0], weak_multipliers(primefold_key(n, 7, 0)[0])

    def steps(epoch):
        """The largest number of times that a multiplier is tripled."""
        maps = primefold_count(n, p)
        first = [1 + (key_word(7, epoch, 3, 2 * r + 1, n) * (p - 1) >> 32) for r in range(1, maps)]
        count = [0] * len(first)
        for i, m in enumerate(first):
            while m in weak:
                m, count[i] = 3 * m % p, count[i] + 1
        return max(count)

    epochs = range(400)
    most_tripled = max(epochs, key=steps)
    most_weak = max(epochs, key=lambda e: primefold_key(n, 7, e)[4])
    return sorted({most_tripled, most_weak})


def positions_in_last_block(n, seed, epoch):
    """Positions whose value after the first map is at the end of [0, p), in the block that p cuts short.
    Found by undoing the first map."""
    p, shift, addend, maps, _ = primefold_key(n, seed, epoch)
    block = 1 << (p - 1).bit_length() - shift
    whole = p // block * block
    multiplier = maps[0][0]
    candidates = (whole, whole + 1, (whole + p) // 2, p - 2, p - 1)
    positions = [(x - addend) * pow(multiplier, -1, p) % p for x in candidates if x < p]
    return sorted({i for i in positions if i < n})


WIDE_BORDERS = [
    *range(65519, 65540), 131071, 131073, *range((1 << 28) - 2, (1 << 28) + 3),
    (1 << 21) - 1, 1 << 21, (1 << 21) + 1, (1 << 26) - 5, (1 << 26) + 15, (1 << 29) - 3, (1 << 29) + 3,
    (1 << 30) - 35, (1 << 31) - 1 - (1 << 23), (1 << 31) - (1 << 23), (1 << 31) - (1 << 23) + 1,
    (1 << 31) - 3, (1 << 31) - 2, (1 << 31) + 2, (1 << 31) + 11, (1 << 32) - 5, (1 << 38) - (1 << 30),
    (1 << 38) - (1 << 30) + 1, (1 << 40) - (1 << 32), (1 << 40) - (1 << 32) + 1, (1 << 50) - (1 << 42),
    (1 << 50) - (1 << 42) + 1, (1 << 50) - 27, 10**9, 10**12, 10**15, 10**18,
    *(
        longest_tail(first << power) + i
        for first, power in (
            (1, 16), (1, 17), (1, 20), (33, 15), (1, 24), (181, 17), (1, 28), (1, 29), (141, 22),
            (1, 30), (255, 23), (1, 31), (129, 24), (1, 40), (255, 42), (1, 50), (129, 54), (1, 61),
        )
        for i in (-1, 0, 1)
    ),
]  # fmt: skip


def primefold_table():
    yield NOTE + (
        "# primefold at single positions, for n near every power of two up to 2^62 and near the\n"
        "# limits between forms. Columns: n, seed, epoch, then pairs of a position and its value."
    )
    powers = [2**k + i for k in range(1, 63) for i in (-1, 0, 1)][:-1]
    for n in powers + WIDE_BORDERS:
        for seed, epoch in (KEYS[0], KEYS[3]):
            candidates = (0, 1, 2, n // 3, n // 2, n - 2, n - 1)
            positions = sorted({i for i in candidates if 0 <= i < n})
            yield positions_row(n, seed, epoch, positions)
            if n > 256 and positions_in_last_block(n, seed, epoch):
                yield positions_row(n, seed, epoch, positions_in_last_block(n, seed, epoch))


def positions_row(n, seed, epoch, positions):
    pairs = [f"{i} {primefold_at(n, seed, epoch, i)}" for i in positions]
    return f"{n} {seed:#x} {epoch:#x} " + " ".join(pairs)


# Mean and standard deviation, in the notation of both Python and C.
MEANS_AND_DEVIATIONS = {
    "f64": [("0", "1"), ("-2.5", "0.001"), ("1e6", "1e3")],
    "f32": [("0", "1"), ("-2.5", "0.001"), ("1e6", "1e3"), ("0", "1e-30")],
    "f16": [("0", "1"), ("-2.5", "0.001"), ("0", "1e-6"), ("0", "3e-8")],
    "bf16": [("0", "1"), ("-2.5", "0.001")],
}
STREAMS = [(7, 0), (0xFEDCBA9876543210, (1 << 40) + 5)]
# Offsets and counts of parts of a stream. They are within a superblock, across its end, at indices of more
# than 32 bits, beyond 2^40, and at the end of the stream. Three parts are single values. The rounding of h'
# decides the first one. The other two would be 2^-12 and -2^-12 in f32 and stream (7, 0), if they had the
# short dither.
PARTS = [
    (0, 1), (0, 100), (31, 3), (1021, 5), (1023, 1026), (405399, 1),
    ((1 << 33) - 3, 7), ((1 << 34) - 3, 7), (31747823942, 1), (39362094265, 1),
    ((1 << 37) - 3, 7), ((1 << 40) + 12345, 70),
    ((1 << 62) - 5, 5),
]  # fmt: skip


# Each bit of a Bernoulli stream is slow here.
PARTS_OF_DRAWS = [(0, 1), (0, 70), (1021, 5), ((1 << 34) - 3, 7), ((1 << 40) + 12345, 9), ((1 << 62) - 5, 5)]


BOUNDS = {
    "u32": (1, 10, 1000003, 3 << 30, (1 << 31) + 1, 1 << 32),
    "u64": (1, 10, 1000003, (1 << 32) + 1, 3 << 62, (1 << 63) + 1, M64),
}


def stream_row(law, dtype, key, normal, part, bits):
    values = [bits(i) for i in range(part[0], part[0] + part[1])]
    plain = sum(fingerprint_term(v, i) for i, v in enumerate(values)) & M64
    head = f"{law} {dtype} {key[0]:#x} {key[1]:#x} {normal[0]} {normal[1]} {part[0]} {part[1]}"
    return " ".join([head, f"{plain:#018x}", *(f"{v:#x}" for v in values[:8])])


def stream_table():
    yield NOTE + (
        "# Streams. Columns: distribution (box-muller: the method of gauss), dtype, seed, stream, mean (integers: the\n"
        "# bound), std (0 1 for uniform; 0 if there is none), offset, count, the fingerprint of the bits of these values, and the\n"
        "# bits of the first 8."
    )
    for dtype in ("f64", "f32", "f16", "bf16"):
        for key in STREAMS:
            for mean, std in MEANS_AND_DEVIATIONS[dtype]:
                exact = [fractions.Fraction(float(x)) for x in (mean, std)]
                gauss = Gauss(*key, *exact, dtype)
                for part in PARTS:
                    yield stream_row("gauss", dtype, key, (mean, std), part, gauss.bits)
    for dtype in ("f64", "f32", "f16", "bf16"):
        for key in STREAMS:
            for mean, std in MEANS_AND_DEVIATIONS[dtype]:
                exact = [fractions.Fraction(float(x)) for x in (mean, std)]
                gauss = BoxMuller(*key, *exact, dtype)
                for part in PARTS:
                    yield stream_row("box-muller", dtype, key, (mean, std), part, gauss.bits)
    for dtype in ("u32", "u64", "f32", "f64"):
        for key in STREAMS:
            for part in PARTS:
                yield stream_row(
                    "uniform", dtype, key, ("0", "1"), part,
                    lambda i: uniform_bits(*key, dtype, i),
                )  # fmt: skip
    for law, make, dtypes, means in (
        ("exponential", Exponential, ("f64", "f32"), ("1", "0.001", "1e29")),
        ("bernoulli", Bernoulli, ("u32", "u64"), ("0.5", "0.1", "1e-18", "1")),
    ):
        for dtype in dtypes:
            for key in STREAMS:
                for mean in means:
                    bits = make(*key, float(mean), dtype).bits
                    for part in PARTS_OF_DRAWS if law == "bernoulli" else PARTS:
                        yield stream_row(law, dtype, key, (mean, "0"), part, bits)
    for dtype, bounds in BOUNDS.items():
        for key in STREAMS:
            for bound in bounds:
                for part in PARTS:
                    yield stream_row("integers", dtype, key, (bound, "0"), part, Integers(*key, bound, dtype).bits)


NAMED_KEYS = ["000102030405060708090a0b0c0d0e0f", "b7e151628aed2a6abf7158809cf4f3c7"]


def key_of(digits):
    """A named key as one number. Its first word is the lower half."""
    return int.from_bytes(bytes.fromhex(digits), "little")


def named_key_table():
    yield NOTE + (
        "# Named keys. Columns: `permute`, key, algorithm, n, epoch, fingerprint of the whole permutation;\n"
        "# or `place`, key, n, epoch, then pairs of a position and its value by primefold;\n"
        "# or `stream`, key, distribution, dtype, stream, mean (integers: the bound), std,\n"
        "# offset, count, fingerprint of the bits."
    )
    for digits in NAMED_KEYS:
        key = key_of(digits)
        for algorithm in ALGORITHMS:
            for n in (1, 2, 17, 40, 255, 256, 257, 1000, 65521, 65522, 1000003):
                for epoch in (0, 3, M64):
                    values = permutation(algorithm, n, key, epoch)
                    yield f"permute {digits} {algorithm} {n} {epoch} {fingerprint(values):#018x}"
        for n in (10**9, 10**12, 1 << 62):
            pairs = [f"{i} {primefold_at(n, key, 5, i)}" for i in (0, 1, n // 3, n - 1)]
            yield f"place {digits} {n} 5 " + " ".join(pairs)
        yield from named_stream_rows(digits, key)


def named_stream_rows(digits, key):
    one = fractions.Fraction(1)
    sources = [
        (law, dtype, make(key, 9, 0 * one, one, dtype).bits)
        for law, make in (("gauss", Gauss), ("box-muller", BoxMuller))
        for dtype in ("f64", "f32", "f16", "bf16")
    ]
    for dtype in ("u32", "u64", "f32", "f64"):
        sources.append(("uniform", dtype, lambda i, dtype=dtype: uniform_bits(key, 9, dtype, i)))
    sources += [("exponential", dtype, Exponential(key, 9, 3.0, dtype).bits) for dtype in ("f64", "f32")]
    sources += [("bernoulli", dtype, Bernoulli(key, 9, 0.1, dtype).bits) for dtype in ("u32", "u64")]
    sources += [("integers", dtype, Integers(key, 9, 3 << 30, dtype).bits) for dtype in ("u32", "u64")]
    for law, dtype, bits in sources:
        for offset, count in ((0, 1100), ((1 << 40) + 12345, 70)):
            count = 70 if law == "bernoulli" else count
            values = [bits(i) for i in range(offset, offset + count)]
            plain = sum(fingerprint_term(v, i) for i, v in enumerate(values)) & M64
            mean = {"exponential": "3", "bernoulli": "0.1", "integers": 3 << 30}.get(law, "0")
            std = "1" if law in ("gauss", "box-muller") else "0"
            yield f"stream {digits} {law} {dtype} 9 {mean} {std} {offset} {count} {plain:#018x}"


def special_words(size):
    """Pairs of a high and a low word: at the ends of their range, near powers of two, and near words that round up
    to a power of two."""
    top, bits = 1 << size - 1, 24 if size == 32 else 53
    rests = [0, 1, 2, 3, top >> 1, (top >> 1) - 1, top - 1, top - (1 << size - 1 - bits)]
    rests += [top - (1 << size - 2 - bits), (top >> 1) - (1 << size - 3 - bits), top // 3, top // 7]
    rests += [1 << bits, (1 << bits) + 1, (1 << bits) - 1]
    lows = [0, 1, top // 5, top - 1]
    return [
        (high | (i % 2) * top ^ turn * top, lows[(i + j) % 4] | ((i // 2 + j) % 2) * top)
        for turn in (0, 1)
        for j in range(4)
        for i, high in enumerate(rests)
    ]


def box_muller_table():
    yield NOTE + (
        "# Pairs of values by the method of Box and Muller, from special words. Columns: dtype, high and low\n"
        "# word of R, high and low word of T, and the bits of both values with mean 0 and std 1."
    )
    for dtype in ("f64", "f32"):
        b = BoxMuller(0, 0, 0, 1, dtype)
        words = special_words(b.size)
        for i, radius in enumerate(words):
            angle = words[(7 * i + 3) % len(words)]
            values = (number_bits(v, dtype) for v in b.pair(radius, angle))
            yield " ".join([dtype, *(f"{w:#x}" for w in (*radius, *angle, *values))])


PHILOX = [
    ((0, 0, 0, 0), (0, 0)),
    ((M64, M64, M64, M64), (M64, M64)),
    (
        (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89),
        (0x452821E638D01377, 0xBE5466CF34E90C6C),
    ),
    ((0, 0, 1, 0), (7, 0)),
    ((2, 3, 1, 0), (7, 0)),
    ((1, (1 << 40) + 5, 2, 0), (0xFEDCBA9876543210, 0)),
]


PHILOX32 = [
    (7, (0, 0, 0, 0), (0, 0)),
    (10, (0, 0, 0, 0), (0, 0)),
    (7, (M32,) * 4, (M32,) * 2),
    (10, (M32,) * 4, (M32,) * 2),
    (7, (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)),
    (10, (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)),
]


def philox_table():
    yield NOTE + (
        "# Philox4x32 and Philox4x64. Columns: bits of a word, rounds (both decimal), four counter\n"
        "# words, two key words, four output words (hexadecimal). Random123 publishes the rows of 32\n"
        "# bits, and the first three of 64 bits."
    )
    for rounds, counter, key in PHILOX32:
        output = philox4x32(counter, key, rounds)
        yield f"32 {rounds} " + " ".join(f"{w:08x}" for w in (*counter, *key, *output))
    for counter, key in PHILOX:
        yield "64 10 " + " ".join(f"{w:016x}" for w in (*counter, *key, *philox4x64(counter, key)))


SHARDS = [
    (1, 1), (1, 2), (1, 5), (2, 3), (3, 8), (5, 16), (10, 1), (10, 3), (10, 4), (10, 5),
    (10, 9), (10, 10), (10, 11), (12, 5), (16, 4), (17, 4), (40, 7),
]  # fmt: skip


# (n, world) of the rows. A rank resumes at its first value, in the middle, at its last value, and at its end.
RESUMED_SHARDS = [(1, 1), (1, 5), (3, 8), (10, 1), (10, 3), (10, 5), (10, 11), (17, 4), (40, 7), (1000, 8)]


def shard_rows():
    """n, world, rank, drop_last, all positions, step, and the positions from there."""
    for n, world in SHARDS:
        for rank in range(world):
            for drop_last in (0, 1):
                positions = sampler_positions(n, world, rank, drop_last)
                yield n, world, rank, drop_last, positions, 0, positions
    for n, world in RESUMED_SHARDS:
        for rank in sorted({0, 1 % world, world // 2, world - 1}):
            for drop_last in (0, 1):
                positions = sampler_positions(n, world, rank, drop_last)
                for step in sorted({0, len(positions) // 3, max(len(positions) - 1, 0), len(positions)}):
                    for length in sorted({min(1, len(positions) - step), (len(positions) - step + 1) // 2}):
                        yield n, world, rank, drop_last, positions, step, positions[step : step + min(length, 20)]


def shard_table():
    yield NOTE + (
        "# Positions that torch's DistributedSampler gives to a rank, and parts of them. Columns: n, world,\n"
        "# rank, drop_last (0 or 1), count of all positions, step, length, then the `length` positions\n"
        "# [step:step + length]."
    )
    for n, world, rank, drop_last, positions, step, part in shard_rows():
        yield " ".join(map(str, (n, world, rank, drop_last, len(positions), step, len(part), *part)))


# (n, chunk, window) of the rows: chunks of one record, a short last chunk, windows of one chunk, a last window of
# fewer chunks, a single window, and words of 16, 32 and 64 bits.
WINDOWED = [
    (1, 1, 1), (2, 1, 1), (7, 1, 3), (10, 3, 2), (10, 10, 1), (12, 4, 1), (23, 5, 2), (40, 7, 3), (40, 8, 9), (1000, 1, 100),
    (1000, 10, 7), (1001, 100, 3), (5000, 64, 8), (70001, 1000, 3), (70001, 97, 400), (300007, 4096, 30),
]
# The same for rows of single positions.
WINDOWED_LARGE = [
    ((1 << 31) + (1 << 20), 1 << 20, 2048), (5 * (1 << 31) + 5, 1 << 31, 1), ((1 << 33) + 300, 1 << 31, 1),
    (2 * ((1 << 31) + 11) + 10**6, (1 << 31) + 11, 1), (3 * 1200000000 + 10, 1200000000, 2), (58396243120309, 29198121560154, 2),
    ((1 << 32) + 5, 1 << 20, 7), ((1 << 32) - 1, 999983, 4096), (10**13 + 1, 10**9 + 7, 12), ((1 << 62) - 3, (1 << 47) + 1, 5),
]


def whole_order(values):
    """The fingerprint of an order, and its values, or of a long one the first and the last values."""
    assert sorted(values) == list(range(len(values)))
    numbers = values if numpy is None else numpy.array(values, dtype=numpy.uint64)
    return hex(fingerprint(numbers)), *(values if len(values) <= 40 else values[:8] + values[-4:])


def single_places(sizes, window, seed, epoch, positions):
    """0, and position and value of each."""
    return 0, *(x for i in sorted(positions) for x in (i, windowed_at(sizes, window, seed, epoch, i)))


def windowed_table():
    yield NOTE + (
        "# Windowed orders of primefold. Columns: n, chunk, window, seed, epoch, then for a whole order its fingerprint,\n"
        "# and all values if n <= 40, otherwise the first 8 and the last 4; or for single values 0, and position value ..."
    )
    for row, (n, chunk, window) in enumerate(WINDOWED):
        for seed, epoch in ((7, 0), (0xFEDCBA9876543210, 0x1_0000_0000 + row)):
            values = windowed(chunk_sizes(n, chunk), window, seed, epoch)
            yield " ".join(map(str, (n, chunk, window, hex(seed), hex(epoch), *whole_order(values))))
    for n, chunk, window in WINDOWED_LARGE:
        sizes = chunk_sizes(n, chunk)
        positions = {0, 1, n // 3, n // 2 + 1, n - 2, n - 1} | odd_places(sizes, window, 7, 3)
        places = single_places(sizes, window, 7, 3, positions)
        yield " ".join(map(str, (n, chunk, window, hex(7), hex(3), *places)))


def odd_places(sizes, window, seed, epoch):
    """The first and last positions of the window of the last chunk, and of the last window."""
    windows, places, begin = windows_of(sizes, window, seed, epoch)[0], set(), 0
    for chunks in windows:
        end = begin + sum(size for _, size in chunks)
        if any(first + size == sum(sizes) for first, size in chunks) or chunks is windows[-1]:
            places |= {begin, begin + (end - begin) // 2, end - 1}
        begin = end
    return places


# (sizes, window): one chunk, windows of all chunks, equal sizes, a long last chunk, sizes far apart, many chunks.
CHUNKS = [
    ([1], 1), ([5], 3), ([1, 1], 1), ([3, 9], 1), ([9, 3], 1), ([4, 4, 4, 1], 2), ([4, 4, 4, 5], 2), ([4, 5, 4, 4], 2),
    ([1, 2, 3, 4, 5, 6, 7], 3), ([7, 6, 5, 4, 3, 2, 1], 3), ([1, 30, 1, 1, 2, 1], 2), ([2, 3, 5], 3), ([2, 3, 5], 9),
    ([1000 - 7 * i for i in range(100)], 10), ([1 + i * i % 83 for i in range(300)], 64), ([64] * 50 + [65], 8),
    ([1] * 200 + [70000] + [1] * 57, 100), ([1 + i % 2 for i in range(1000)], 1),
]
CHUNKS_LARGE = [
    ([1 << 40, 3, 1 << 33, 1 << 50, 7, (1 << 40) + 1], 2), ([(1 << 62) - 10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 4),
    ([(1 << 31) + 10**8 * i for i in range(20)], 3), ([1 << 31, 1 << 31, 1], 2), ([10**6 + i * i for i in range(500)], 512),
]


def chunks_table():
    yield NOTE + (
        "# Windowed orders over unequal chunks. Columns: seed, epoch, window, number of chunks, their sizes, then as in\n"
        "# windowed.txt."
    )
    for row, (sizes, window) in enumerate(CHUNKS):
        for seed, epoch in ((7, 0), (0xFEDCBA9876543210, 0x1_0000_0000 + row)):
            order = whole_order(windowed(sizes, window, seed, epoch))
            yield " ".join(map(str, (hex(seed), hex(epoch), window, len(sizes), *sizes, *order)))
    for sizes, window in CHUNKS_LARGE:
        n = sum(sizes)
        places = single_places(sizes, window, 7, 3, {0, 1, n // 3, n // 2 + 1, n - 2, n - 1})
        yield " ".join(map(str, (hex(7), hex(3), window, len(sizes), *sizes, *places)))


# (sources, stages, block, seed): sources that end, stages, windows, weights far apart, one source, 300 sources, weights with
# a common divisor.
MIXTURES = [
    ([(10, None, None, None)], [(0, [1])], 4, 7),
    ([(100, None, None, None), (7, None, None, None), (3, None, None, None)], [(0, [7, 2, 1])], 16, 7),
    ([(50, 1, None, None), (9, 2, None, None), (4, None, None, None)], [(0, [3, 1, 1])], 8, 1),
    ([(50, 1, None, None), (9, 2, None, None), (40, 1, None, None)], [(0, [5, 1, 4])], 4096, 0xFEDCBA9876543210),
    ([(1000, None, 10, 7), (300, None, 1, 4), (77, None, 100, 3)], [(0, [1, 1, 1]), (500, [0, 5, 1]), (777, [9, 0, 2])], 64, 3),
    ([(8 * 10**9, None, None, None), (2 * 10**6, None, None, None), (5 * 10**5, None, None, None)], [(0, [7, 2, 1])], 4096, 7),
    ([(1 << 61, None, None, None), (5, None, None, None)], [(0, [1 << 60, 1])], 1000, 5),
    ([(100 + i, None, None, None) for i in range(300)], [(0, [1 + i * i for i in range(300)])], 300, 11),
    ([(20 + i, 1 + i % 3, None, None) for i in range(40)], [(0, [1 + i % 7 for i in range(40)])], 50, 2),
    ([(1000, None, None, None), (700, None, None, None), (60, 1, None, None)], [(0, [3, 2, 1]), (10, [20, 40, 60])], 8, 7),
]


def mixture_table():
    yield NOTE + (
        "# Mixtures. A row has: block, seed, number of sources, and for each source its records, epochs, chunk and window,\n"
        "# 0 for what it has not; number of stages, and for each stage its first position and the weights; the length;\n"
        "# and then position source epoch record ... of some places."
    )
    random = [0x9E3779B97F4A7C15 * (i + 1) & M64 for i in range(12)]
    for sources, stages, block, seed in MIXTURES:
        mixture = Mixture(sources, stages, block, seed)
        head = [block, seed, len(sources), *(x or 0 for source in sources for x in source)]
        head += [len(stages), *(x for first, weights in stages for x in (first, *weights)), mixture.length]
        ends = [s[0] + d for s in mixture.stages for d in (-1, 0, 1)] + [mixture.length - 1]
        some = [*range(24), *ends, *(r % mixture.length for r in random), *(r % min(mixture.length, 10**6) for r in random)]
        for position in sorted({p for p in some if 0 <= p < mixture.length}):
            head += [position, *mixture.place(position)]
        yield " ".join(map(str, head))


def weighted_sample(weights, seed, epoch):
    """All indices of a weight above 0, in the order of successive draws."""
    law, e, keys = BoxMuller(0, 0, 0, 1, "f64"), exponent_of(weights), []
    for j, weight in enumerate(weights):
        if weight:
            words = stream_words(seed, epoch, 6, j, 10)
            number = law.square(words[1] << 32 | words[0], words[3] << 32 | words[2])
            part = max(law.rn(weight) * power_of_two(-e), power_of_two(-1000))
            keys.append((law.rn(number / part), j))
    return [j for _, j in sorted(keys)]


def f64_bits(*values):
    return [struct.unpack("<Q", struct.pack("<d", value))[0] for value in values]


# (type, bits of the weights, seed, epoch)
WEIGHTS = [
    ("f64", f64_bits(2.5), 7, 0),
    ("f64", f64_bits(0.0, 1e-300, 0.0), 7, 1),
    ("f64", f64_bits(0.5, 0.0, 3.0, 1.5), 7, 0),
    ("u64", [1] * 8, 1, 2**64 - 1),
    ("u64", [1, 1, 1], 2**64 - 1, 3),
    ("u64", [2**64 - 1, 1, 2**63, 0, 12345678901234567890], 3, 0),
    ("f64", f64_bits(5e-324, 1.5e-323, 2.2e-308, -0.0, 1e-307), 4, 0),
    ("f64", f64_bits(1.7976931348623157e308, 1e308, 1e290, 1e-300, 8e307), 5, 9),
    ("f64", f64_bits(1.0, *(2.0**-i for i in range(40, 70))), 6, 0),
    ("f32", [0x3F800000, 1, 0x7F7FFFFF, 0x80000000, 0x7F000000, 0x3DCCCCCD], 7, 0),
    ("f32", [0x3F800000 + 0x2000 * (i * i % 97) for i in range(100)], 8, 4),
    ("u64", [i * i * i % 1009 for i in range(129)], 9, 0),
    ("f64", f64_bits(*(1 / (i + 1) for i in range(256))), 10, 1),
    ("u64", [0] * 100 + [1] + [0] * 100 + [3] * 5, 11, 0),
]


def weights_table():
    yield NOTE + (
        "# Weighted draws. A row has: type, seed, epoch, number of weights, their bits; number of columns, and the threshold\n"
        "# and the alias of each; and then number draw ... of some draws."
    )
    for kind, bits, seed, epoch in WEIGHTS:
        columns = weight_columns(rounded_weights([exact_weight(kind, x) for x in bits]))
        row = [kind, seed, epoch, len(bits), *(f"{x:#x}" for x in bits), len(columns), *(x for pair in columns for x in pair)]
        for i in [*range(40), 1000, 2**32 + 1, 2**33, 2**61 - 1, 2**62 - 1]:
            row += [i, weighted_draw(columns, seed, epoch, i)]
        yield " ".join(map(str, row))


def weighted_samples_table():
    yield NOTE + (
        "# Weighted samples. A row has: type, seed, epoch, number of weights, their bits; and the size of the largest sample\n"
        "# and its indices."
    )
    for kind, bits, seed, epoch in WEIGHTS:
        order = weighted_sample([exact_weight(kind, x) for x in bits], seed, epoch)
        yield " ".join(map(str, [kind, seed, epoch, len(bits), *(f"{x:#x}" for x in bits), len(order), *order]))


TABLES = {
    "box_muller.txt": box_muller_table,
    "chunks.txt": chunks_table,
    "mixture.txt": mixture_table,
    "named_keys.txt": named_key_table,
    "permute.txt": permute_table,
    "primefold.txt": primefold_table,
    "philox.txt": philox_table,
    "shard.txt": shard_table,
    "streams.txt": stream_table,
    "weighted_samples.txt": weighted_samples_table,
    "weights.txt": weights_table,
    "windowed.txt": windowed_table,
}


# ---- Published known answers -------------------------------------------------


def check_published():
    def expect(what, got, expected):
        if got != expected:
            sys.exit(f"{what}: got {got}, expected {expected}")

    def words(text):
        return tuple(int(w, 16) for w in text.split())

    known = (
        "16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b",
        "87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0",
        "a528f45403e61d95 38c72dbd566e9788 a5a1610e72fd18b5 57bd43b5e52b7fe6",
    )
    for (counter, key), expected in zip(PHILOX, known):
        expect(f"Philox4x64-10 of {counter}", philox4x64(counter, key), words(expected))
    for rounds, counter, key, expected in (
        (7, (0, 0, 0, 0), (0, 0), "5f6fb709 0d893f64 4f121f81 4f730a48"),
        (10, (0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (10, (M32,) * 4, (M32,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ):
        got = philox4x32(counter, key, rounds)
        expect(f"Philox4x32-{rounds} of {counter}", got, words(expected))
    for algorithm, n, epoch, expected in (
        ("philox24", 10, 0, "5 9 8 0 1 6 2 4 3 7"),
        ("philox24", 17, 3, "15 14 2 7 11 3 16 0 12 10 6 9 13 1 5 4 8"),
        ("lcg", 10, 0, "1 8 6 4 2 9 0 7 5 3"),
    ):
        got = " ".join(str(int(v)) for v in permutation(algorithm, n, 7, epoch))
        expect(f"{algorithm} n={n} epoch {epoch}", got, expected)
    values = [int(v) for v in permutation("philox24", 1000003, 7, 0)]
    expect(
        "SHA-256 of philox24 n=1000003",
        hashlib.sha256(struct.pack(f"<{len(values)}Q", *values)).hexdigest(),
        "ef20c369708d908b2360a741eb6390cda5b75daf08de70e8a5bcdc06a8bbee13",
    )


def main():
    parser = argparse.ArgumentParser(description="Writes or checks the golden tables.")
    parser.add_argument("--check", action="store_true", help="compare the tables with the files, and change nothing")
    arguments = parser.parse_args()
    check_published()
    for name, rows in TABLES.items():
        text = "\n".join(rows()) + "\n"
        if not arguments.check:
            (HERE / name).write_text(text)
        elif (HERE / name).read_text() != text:
            sys.exit(f"{name}: differs from what make.py writes")


if __name__ == "__main__":
    main()
