/* SPDX-License-Identifier: MIT
 *
 * shufctl: the table of its verbs. Each verb parses its own options.
 */
#include "daemon_options.h"
#include "end_by_signal.h"
#include "program.h"
#include "shuf.h"
#include "topics.h"
#include "verbs.h"

static const struct shuf__verb verbs[] = {
    {"permute", "compute a pseudo-random permutation, or a part of one", shuf__verb_permute},
    {"shuffle", "shuffle the records of an array by a permutation", shuf__verb_shuffle},
    {"index", "look up values at single positions, or positions of values", shuf__verb_index},
    {"mix", "compute a mixture of data sets by weights, without a daemon", shuf__verb_mix},
    {"gauss", "compute normally distributed numbers of a stream", shuf__verb_draw},
    {"uniform", "compute uniformly distributed numbers of a stream", shuf__verb_draw},
    {"exponential", "compute exponentially distributed numbers of a stream", shuf__verb_draw},
    {"bernoulli", "compute random bits of a stream, each 1 with a probability", shuf__verb_draw},
    {"integers", "compute integers below a bound, of a stream", shuf__verb_draw},
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

/* Words that users know from other programs, from NumPy and from the manual. */
static const struct shuf__other_word others[] = {
    {"start", "a daemon is started by shufd, or systemctl start shufd.socket"},
    {"stop", "kill -TERM PID or systemctl stop shufd.socket shufd ends the daemon; shufctl status "
             "has its PID"},
    {"restart", "systemctl restart shufd, or kill -TERM PID and shufd; shufctl status has the PID"},
    {"reload", "the configuration is read again by systemctl reload shufd, as root, or without a "
               "unit by kill -HUP PID, as the daemon's user; shufctl status has the PID"},
    {"free", "drop frees the memory of unused results"},
    {"clear", "drop frees the memory of unused results"},
    {"ls", "leases lists the leases of results"},
    {"list", "leases lists the leases of results"},
    {"ps", "leases lists the leases of results, top the users"},
    {"unshuffle", "shuffle --inverse restores the order of a shuffled array"},
    {"permutation", "permute computes a permutation"},
    {"randperm", "permute computes a permutation"},
    {"normal", "gauss computes normally distributed numbers"},
    {"randn", "gauss computes normally distributed numbers"},
    {"rand", "uniform computes uniformly distributed numbers"},
    {"random", "uniform and gauss compute random numbers"},
    {"randint", "integers computes integers below a bound"},
    {"bits", "bernoulli computes random bits"},
    {"lookup", "index looks up single positions or values"},
    {"get", "index looks up single positions or values"},
    {"mixture", "mix computes a mixture of data sets"},
    {"interleave", "mix computes a mixture of data sets"},
    {"numbers", "see shufctl help units"},
    {"sizes", "see shufctl help units"},
    {"durations", "see shufctl help units"},
    {"dtypes", "see shufctl help types"},
    {"dtype", "see shufctl help types"},
    {"formats", "see shufctl help permute, --format"},
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
        .others = others,
        .global = &shuf__daemon_argp,
    };
    shuf__signals_end_first_process();
    return shuf__program_run(&program, argc, argv);
}
