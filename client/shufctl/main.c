/* SPDX-License-Identifier: MIT
 *
 * shufctl: the table of its verbs. Each verb parses its own options.
 */
#include "daemon_options.h"
#include "program.h"
#include "shuf.h"
#include "topics.h"
#include "verbs.h"

static const struct shuf__verb verbs[] = {
    {"permute", "compute a pseudo-random permutation, or a part of one", shuf__verb_permute},
    {"shuffle", "shuffle the records of an array by a permutation", shuf__verb_shuffle},
    {"index", "look up values at single positions, or positions of values", shuf__verb_index},
    {"gauss", "compute normally distributed numbers of a stream", shuf__verb_gauss},
    {"uniform", "compute uniformly distributed numbers of a stream", shuf__verb_uniform},
    {"status", "print the daemon's device, load and memory", shuf__verb_status},
    {"leases", "list the leases of results", shuf__verb_leases},
    {"top", "show requests, memory, users and leases as they change", shuf__verb_top},
    {"doctor", "check the machine and the daemon, and say what to do", shuf__verb_doctor},
    {"bench", "measure the daemon next to memset and torch", shuf__verb_bench},
    {"metrics", "print the metrics of the daemon for Prometheus", shuf__verb_metrics},
    {"drop", "free the memory of unused results", shuf__verb_drop},
    {"version", "print the versions of shufctl and of the daemon", shuf__verb_version},
    {0},
};

int main(int argc, char **argv)
{
    const struct shuf__program program = {
        .name = "shufctl",
        .summary = "Requests permutations, shuffles and random numbers from a running shufd.",
        .version = shuf_version(),
        .verbs = verbs,
        .topics = shuf__topics,
        .global = &shuf__daemon_argp,
    };
    return shuf__program_run(&program, argc, argv);
}
