/* SPDX-License-Identifier: MIT
 *
 * The table of the tests on permutations. A new test is one new row, and a function in the file of
 * its family.
 */
#include "test.h"

#define ROW(name, text, least, most, relatives, what)                                 \
    {                                                                                 \
        text, what, least, most, relatives, shuf__##name##_words, shuf__##name##_add, \
            shuf__##name##_judge                                                      \
    }

const struct shuf__test shuf__tests[] = {
    ROW(orders, "orders", 2, 8, false, "each of all n! permutations"),
    ROW(places, "places", 2, 0, false, "each value at each position"),
    ROW(differences, "differences", 3, 0, false, "differences of two values at several distances"),
    ROW(parallelograms, "parallelograms", 32, 0, false,
        "equal and opposite differences at one distance"),
    ROW(ratios, "ratios", 96, 257, false, "three values at two equal distances"),
    ROW(characters, "characters", 97, 1024, false,
        "character sums of positions and values, of each 16th row"),
    ROW(fixed_points, "fixed-points", 2, 0, false, "values that stand at their own position"),
    ROW(cycles, "cycles", 2, 0, false, "number of cycles, and parity"),
    ROW(descents, "descents", 2, 0, false, "values that are less than the one before"),
    ROW(inverse_descents, "inverse-descents", 2, 0, false,
        "values that stand before the next lower one"),
    ROW(inversions, "inversions", 2, 0, false, "pairs in the wrong order"),
    ROW(patterns, "patterns", 3, 0, false, "relative order of 3 and of 5 neighbours"),
    ROW(second_differences, "second-differences", 4, 0, false,
        "differences of the differences of 3 neighbours"),
    ROW(mallows, "mmd", 2, 0, false, "maximum mean discrepancy by the Mallows kernel"),
    ROW(epochs, "rows", 2, 0, false, "a row against the next one"),
    ROW(seeds, "neighbours", 2, 0, true, "a row against that of the next seed"),
    ROW(avalanche, "avalanche", 2, 0, true, "a row against that of a seed with one other bit"),
    {0},
};
