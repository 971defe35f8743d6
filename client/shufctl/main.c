/* SPDX-License-Identifier: MIT
 *
 * shufctl: the table of its verbs, which parse their own options, and its help topics.
 */
#include "end_by_signal.h"
#include "program.h"
#include "shuf.h"
#include "verb_options.h"
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

/* The pages of `shufctl help TOPIC`. docs/man/shufctl.1.scd has the same facts. */
static const struct shuf__topic topics[] = {
    {"units", "how numbers, sizes and durations are written",
     "Whole numbers and sizes, in options and in the configuration of shufd:\n"
     "\n"
     "  1000000, 1_000_000   decimal; underscores may separate digits\n"
     "  1e6, 2.5e3           with an exponent of ten\n"
     "  0x7                  hexadecimal\n"
     "  10k, 10M, 8G         times a power of 1000: k, M, G, T, P, E (K means k)\n"
     "  64Ki, 8Gi            times a power of 1024: Ki, Mi, Gi, Ti, Pi, Ei\n"
     "  8GB, 8GiB            the same with a B\n"
     "  1.5k, 0.5Gi          a fraction, if the result is whole\n"
     "\n"
     "Case matters in M, G, T, P, E: 10m is an error.\n"
     "\n"
     "Durations, in --wait and in the configuration:\n"
     "\n"
     "  10min, 5s, 1.5h      units: ns, us, ms, s, min, h\n"
     "  30                   without a unit: seconds\n"},
    {"types", "names of the types of values, for --dtype",
     "  name  also                        values\n"
     "  u32   uint32, u4, <u4             whole numbers of 0 to 2^32 - 1\n"
     "  u64   uint64, <u8                 whole numbers of 0 to 2^64 - 1\n"
     "  i64   int64, long, <i8            whole numbers of 0 to 2^63 - 1; torch indexes with it\n"
     "  f64   float64, double, fp64, f8, <f8\n"
     "                                    IEEE 754, 64 bits\n"
     "  f32   float32, single, fp32, f4, <f4\n"
     "                                    IEEE 754, 32 bits\n"
     "  f16   float16, half, fp16, f2, <f2\n"
     "                                    IEEE 754, 16 bits\n"
     "  bf16  bfloat16                    the upper half of an f32\n"
     "\n"
     "permute takes u32, u64 and i64; gauss f64, f32, f16 and bf16; uniform u32, u64, f64 and "
     "f32;\nexponential f64 and f32; bernoulli and integers u32 and u64.\n"
     "NumPy's u8 and i8 have 8 bytes; elsewhere these names have 8 bits. So write u64 or <u8, and\n"
     "i64 or <i8.\n"
     "\n"
     "torch., numpy. or np. may stand before a name of theirs: torch.float16. float alone is "
     "refused,\n"
     "because it has 32 bits in C and PyTorch, and 64 in Python and NumPy. torch.float is f32.\n"},
    {"algorithms", "the permutations, for --algorithm",
     "  primefold   the default: the cost of a part is proportional to its size\n"
     "  philox24    a value depends on all positions before its own, so a late part costs more\n"
     "  lcg         for comparison only: not random enough for use\n"
     "\n"
     "Each algorithm gives different permutations.\n"},
    {"transports", "how values reach a process, for --transport",
     "  inline      a copy over the socket\n"
     "  memfd       host memory of the daemon, mapped by the client\n"
     "  cuda-fd     device memory of the daemon, mapped by the client\n"
     "  cuda-ipc    the same for CUDA IPC; only for processes of the daemon's user\n"
     "\n"
     "memfd, cuda-fd and cuda-ipc copy nothing. A daemon on a CPU has only inline and memfd.\n"},
    {"keys", "keys of the daemon, for --key",
     "A key has 128 random bits and a name. It takes the place of the seed, and only the daemon "
     "has\n"
     "it. Root, the daemon's user and the members of the key's group may use it.\n"
     "\n"
     "  shufctl permute --n 1e6 --key training\n"
     "\n"
     "Keys are credentials of systemd (shufd.service(8)), or files (shufd.conf(5), keys).\n"},
    {"environment", "variables that shufctl reads",
     "  SHUFD_SOCKET          the socket of the daemon, unless --socket names one\n"
     "  CUDA_VISIBLE_DEVICES  without SHUFD_SOCKET, selects the daemon of the first GPU in it. The "
     "GPU\n"
     "                        is a UUID. An index counts only with CUDA_DEVICE_ORDER=PCI_BUS_ID, "
     "or\n"
     "                        on a machine with one GPU\n"
     "  XDG_RUNTIME_DIR       without such a daemon, the first of these sockets that exists:\n"
     "                        $XDG_RUNTIME_DIR/shufd.sock (not for root), /run/shufd/shufd.sock, "
     "the\n"
     "                        only socket of a GPU in /run/shufd\n"
     "  SHUFD_RUNTIME_DIR     a directory instead of /run/shufd\n"
     "  TMPDIR                where shuffle makes temporary files; else /tmp\n"
     "  NO_COLOR              if it is not empty, no key on a terminal is bold\n"},
    {"exit-status", "the meaning of each exit status",
     "   0  success\n"
     "  64  wrong verb, option or parameter\n"
     "  65  the array cannot be shuffled\n"
     "  66  the array cannot be opened, or is neither a regular file nor a pipe\n"
     "  69  no daemon answers\n"
     "  70  a bug in shufd\n"
     "  71  the device failed, or the result does not fit in memory\n"
     "  73  the output file cannot be created\n"
     "  74  reading or writing failed\n"
     "  75  the daemon is busy or does not answer in time: try again\n"
     "  76  client and daemon have different protocols\n"
     "  77  not permitted\n"
     "\n"
     "A signal gives 128 + its number in the shell, and leaves no partial file. Such a signal is\n"
     "SIGPIPE (141), when the reader of a pipe ends early, as head does.\n"},
    {0},
};

int main(int argc, char **argv)
{
    const struct shuf__program program = {
        .name = "shufctl",
        .summary = "Requests permutations, shuffles and random numbers from a running shufd.",
        .version = shuf_version(),
        .verbs = verbs,
        .topics = topics,
        .others = others,
        .global = &shuf__daemon_argp,
    };
    shuf__signals_end_first_process();
    return shuf__program_run(&program, argc, argv);
}
