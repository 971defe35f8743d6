/* SPDX-License-Identifier: MIT
 *
 * shuf-quality: the table of its verbs.
 */
#include "program.h"
#include "provenance.h"
#include "shuf.h"
#include "verb.h"

static const struct shuf__verb verbs[] = {
    {"judge", "judges permutations of one size", shuf__quality_judge},
    {"suite", "judges a generator or a daemon at many sizes", shuf__quality_suite},
    {"rounds", "the discrepancy for each number of rounds", shuf__quality_rounds},
    {"plot", "draws reports of `rounds`", shuf__quality_plot},
    {"stream", "judges a stream of normal or uniform numbers", shuf__quality_stream},
    {"order", "judges windowed orders, mixtures and weighted draws", shuf__quality_order},
    {"bits", "writes values as random bits, for other programs", shuf__quality_bits},
    {"words", "compares the random words of neighbouring draws", shuf__quality_words},
    {"list", "the tests and the generators", shuf__quality_list},
    {0},
};

int main(int argc, char **argv)
{
    const struct shuf__program program = {
        .name = "shuf-quality",
        .summary = "Judges permutations, and streams of numbers: do they look like random ones?",
        .version = shuf_version(),
        .verbs = verbs,
    };
    shuf__provenance_begin(argc, argv);
    return shuf__program_run(&program, argc, argv);
}
