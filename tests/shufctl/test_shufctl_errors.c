/* SPDX-License-Identifier: MIT
 *
 * The failures of shufctl: the exit status and the message of every mistake; standard output, the
 * daemon and the terminal.
 */
#include "support/cmocka_all.h"
#include "support/sanitized.h"
#include "support/shufctl.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* ---- Mistakes ---- */

static void wrong_verbs_are_explained(void **state)
{
    (void)state;
    static const struct shufctl_mistake rows[] = {
        {"", 64, "Usage: shufctl VERB"},
        {"shufle", 64, "verb 'shufle': no such verb; did you mean shuffle?"},
        {"permut", 64, "verb 'permut': no such verb; did you mean permute?"},
        {"perm", 64, "did you mean permute?"},
        {"unshuffle", 64, "verb 'unshuffle': no such verb; shuffle --inverse restores the order"},
        {"sort", 64, "verb 'sort': no such verb; shufctl help lists them"},
        {"help shufle", 64, "help 'shufle': expected a verb or a topic; did you mean shuffle?"},
        {"help unit", 64, "help 'unit': expected a verb or a topic; did you mean units?"},
        {"help sorting", 64, "help 'sorting': expected a verb or a topic\n"},
        {"stop", 64, "verb 'stop': no such verb; kill -TERM PID or systemctl stop"},
        {"reload", 64,
         "again by systemctl reload shufd, as root, or without a unit by kill -HUP PID"},
        {"start", 64, "a daemon is started by shufd"},
        {"free", 64, "no such verb; drop frees"},
        {"ls", 64, "no such verb; leases lists"},
        {"normal", 64, "no such verb; gauss computes"},
        {"randn", 64, "no such verb; gauss computes"},
        {"lookup", 64, "no such verb; index looks up"},
        {"permutation", 64, "no such verb; permute computes"},
        {"units", 64, "verb 'units': no such verb; it is a topic: shufctl help units"},
        {"help numbers", 64, "help 'numbers': expected a verb or a topic; see shufctl help units"},
        {"help sizes", 64, "see shufctl help units"},
    };
    shufctl_fail_each(rows, sizeof rows / sizeof *rows);
}

static void wrong_options_are_explained(void **state)
{
    (void)state;
    static const struct shufctl_mistake rows[] = {
        {"permute --sede 7", 64, "unrecognized option '--sede'; did you mean --seed?"},
        {"permute --sede=7", 64, "unrecognized option '--sede=7'; did you mean --seed?"},
        {"permute -n 10 --seed 7", 64, "unrecognized option '-n'; did you mean --n?"},
        {"gauss --n 10 --seed 7", 64, "unrecognized option '--n'; did you mean --count?"},
        {"uniform -n 10 --seed 7", 64, "unrecognized option '-n'; did you mean --count?"},
        {"gauss --size 10 --seed 7", 64, "'--size'; did you mean --count?"},
        {"gauss --shape 3,4 --seed 7", 64, "'--shape'; did you mean --count?"},
        {"permute --n 9 --seed 7 --num-replicas 3", 64, "'--num-replicas'; did you mean --world?"},
        {"permute --n 9 --seed 7 --output x", 64, "'--output'; did you mean --out?"},
        {"permute --size 10 --seed 7", 64, "'--size'; did you mean --n?"},
        {"permute --length 10 --seed 7", 64, "'--length'; did you mean --n?"},
        {"uniform --length 10 --seed 7", 64, "'--length'; did you mean --count?"},
        {"permute --n 9 --seed 7 --world_size 3", 64, "'--world_size'; did you mean --world?"},
        {"permute --n 9 --seed 7 --world_size=3", 64, "'--world_size=3'; did you mean --world?"},
        {"permute --n 9 --seed 7 --replicas 3", 64, "'--replicas'; did you mean --world?"},
        {"permute --n 9 --seed 7 --drop_last", 64, "'--drop_last'; did you mean --drop-last?"},
        {"permute --n 9 --random-seed 7", 64, "'--random-seed'; did you mean --seed?"},
        {"permute --n 9 --random_state 7", 64, "'--random_state'; did you mean --seed?"},
        {"permute --n 9 --seed 7 --outfile x", 64, "'--outfile'; did you mean --out?"},
        {"permute --n 9 --seed 7 -o x", 64, "'-o'; did you mean --out?"},
        {"index --n 9 --seed 7 --length 5", 64, "'--length'; did you mean --n?"},
        {"index --n 9 --seed 7 --replicas 5", 64, "shufctl index --help lists the options"},
        {"gauss --count 9 --seed 7 --sigma 2", 64, "'--sigma'; did you mean --std?"},
        {"gauss --count 9 --seed 7 --stddev 2", 64, "'--stddev'; did you mean --std?"},
        {"gauss --count 9 --seed 7 --scale 2", 64, "'--scale'; did you mean --std?"},
        {"gauss --count 9 --seed 7 --mu 2", 64, "'--mu'; did you mean --mean?"},
        {"gauss --count 9 --seed 7 --loc 2", 64, "'--loc'; did you mean --mean?"},
        {"uniform --count 9 --seed 7 --low 2", 64,
         "--low: no such option; values of f64 and f32 are in [0, 1), those of u32 and u64"},
        {"uniform --count 9 --seed 7 --high 2", 64, "--high: no such option; values"},
        {"uniform --count 9 --seed 7 --min 2", 64, "--min: no such option; values"},
        {"uniform --count 9 --seed 7 --max=2", 64, "--max: no such option; values"},
        {"uniform --count 9 --seed 7 --scale 2", 64, "shufctl uniform --help lists the options"},
        {"permute -seed 7", 64, "unrecognized option '-seed'; did you mean --seed?"},
        {"permute -x", 64, "unrecognized option '-x'; shufctl permute --help lists the options"},
        {"permute --out --bogus --sede 7", 64, "unrecognized option '--sede'"},
        {"--sokcet /tmp/s status", 64, "unrecognized option '--sokcet'; did you mean --socket?"},
        {"--json", 64, "verb: missing behind --json"},
        {"shuffle", 64,
         "--in, --seed, --out: missing; expected them, as in --in rows.npy --seed 7 --out "
         "shuffled.npy"},
        {"permute", 64, "--n, --seed: missing; expected them, as in --n 1e9 --seed 7"},
        {"gauss", 64, "--count, --seed: missing; expected them, as in --count 1e9 --seed 7"},
        {"index --seed 7", 64, "--n, --at: missing; expected them, as in --n 1e9 --at 0,5,1e8"},
        {"permute --n 10m --seed 7", 64, "did you mean 10M?"},
        {"permute --n 10 --seed 7 --algorithm primfold", 64, "did you mean primefold?"},
        {"permute --n 10 --seed 7 --transport mem", 64, "did you mean memfd?"},
        {"permute --n 10 --seed 7 --dtype int32", 64,
         "--dtype int32: expected u32, u64 or i64; did you mean uint32?"},
        {"permute --n 10 --seed 7 --out", 64,
         "option '--out' requires an argument; expected --out FILE\n"},
        {"status --wait", 64, "option '--wait' requires an argument; expected --wait TIME\n"},
        {"--socket", 64, "option '--socket' requires an argument; expected --socket PATH\n"},
        {"-q", 64, "shufctl: verb: missing behind -q; shufctl help lists the verbs\n"},
        {"--wait status", 64, "verb: missing behind status"},
        {"--completion", 64, "--completion: expected one shell behind it: bash, zsh or fish\n"},
        {"permute --bogus", 64, "unrecognized option '--bogus'"},
    };
    shufctl_fail_each(rows, sizeof rows / sizeof *rows);
}

static void wrong_arguments_are_explained(void **state)
{
    (void)state;
    static const struct shufctl_mistake rows[] = {
        {"permute 10", 64, "argument '10': expected only options; did you mean --n 10?\n"},
        {"permute 1e9 --seed 7", 64, "did you mean --n 1e9?\n"},
        {"permute --n 10 order.npy --seed 7", 64, "did you mean --out order.npy?\n"},
        {"permute --n=10 20 --seed 7", 64, "did you mean --count 20?\n"},
        {"shuffle order.npy --seed 7", 64,
         "argument 'order.npy': expected only options; did you mean --in order.npy?\n"},
        {"shuffle 1.npy --seed 7", 64, "did you mean --in 1.npy?\n"},
        {"shuffle --in a.npy b.npy --seed 7", 64, "did you mean --out b.npy?\n"},
        {"shuffle --in a.npy --out=b.npy c.npy", 64, "argument 'c.npy': expected only options\n"},
        {"gauss 10 --seed 7", 64, "did you mean --count 10?\n"},
        {"index --n 10 --seed 7 0,5", 64, "did you mean --at 0,5?\n"},
        {"status 10", 64, "argument '10': expected only options\n"},
    };
    shufctl_fail_each(rows, sizeof rows / sizeof *rows);
}

static void wrong_values_are_explained(void **state)
{
    (void)state;
    static const struct shufctl_mistake rows[] = {
        {"permute --seed 7", 64, "--n: missing"},
        {"permute --n 10", 64, "--seed: missing"},
        {"permute --n 0 --seed 7", 64, "n 0: expected 1 to 2^62"},
        {"permute --n 1.5 --seed 7", 64, "--n 1.5: expected a whole number, 1 to 2^62"},
        {"permute --n -1 --seed 7", 64, "--n -1: expected 1 to 2^62"},
        {"permute --n 1e30 --seed 7", 64, "--n 1e30: expected 1 to 2^62"},
        {"permute --n ten --seed 7", 64, "--n ten: expected a whole number"},
        {"permute --n 10 --seed 2e19", 64, "--seed 2e19: expected 0 to 2^64 - 1"},
        {"permute --n 4611686018427387905 --seed 7", 64, "n 4611686018427387905"},
        {"permute --n 10 --seed 7 --epochs 3:3", 64, "--epochs 3:3: no epoch"},
        {"permute --n 10 --seed 7 --epochs 3", 64, "--epochs 3: expected A:B"},
        {"permute --n 10 --seed 7 --epochs :3", 64, "--epochs :3: expected A:B"},
        {"permute --n 10 --seed 7 --epochs 0:x", 64, "--epochs 0:x: expected A:B"},
        {"permute --n 10 --seed 7 --epochs 1:", 64, "--epochs 1:: expected A:B"},
        {"permute --n 10 --seed 7 --epochs 1:2:3", 64, "--epochs 1:2:3: expected A:B"},
        {"permute --n 10 --seed 7 --epochs=", 64, "--epochs '': expected A:B"},
        {"permute --n 10 --seed 7 --epoch 0:3", 64,
         "--epoch 0:3: expected a single epoch; did you mean --epochs 0:3?\n"},
        {"permute --n 10 --seed 7 --epoch 1 --epochs 0:3", 64, "--epochs: excludes --epoch"},
        {"permute --n 10 --seed 7 --algorithm sattolo", 64, "sattolo"},
        {"permute --n 10 --seed 7 --offset 11", 64, "offset 11: expected less than n = 10"},
        {"permute --n 10 --seed 7 --offset 10 --count 1", 64,
         "offset 10: expected less than n = 10"},
        {"permute --n 10 --seed 7 --count 11", 64, "count 11: expected at most 10"},
        {"permute --n 10 --seed 7 --count 0", 64, "count 0"},
        {"permute --n 10 --seed 7 --stride 0", 64, "--stride 0: expected at least 1"},
        {"permute --n 10 --seed 7 --rank 2 --world 2", 64, "rank 2: expected less than world"},
        {"permute --n 10 --seed 7 --rank 0 --world 0", 64, "world 0"},
        {"permute --n 10 --seed 7 --rank 0", 64, "--world: missing"},
        {"permute --n 10 --seed 7 --world 2", 64, "--rank: missing"},
        {"permute --n 10 --seed 7 --drop-last", 64, "--drop-last: expected --rank and --world"},
        {"permute --n 10 --seed 7 --rank 0 --world 2 --offset 1", 64,
         "--rank: excludes --offset; expected only one of the two\n"},
        {"permute --n 10 --seed 7 --rank 0 --world 2 --stride 1", 64, "excludes --stride"},
        {"permute --n 10 --seed 7 --step 1", 64, "--step: expected --rank and --world"},
        {"permute --n 10 --seed 7 --step 1 --offset 1", 64, "excludes --offset"},
        {"permute --n 10 --seed 7 --rank 0 --world 2 --count 0", 64, "count 0"},
        {"permute --n 10 --seed 7 --rank 0 --world 2 --step 6", 64,
         "step 6: expected at most 5, the length of a shard of n = 10 with world = 2"},
        {"permute --n 10 --seed 7 --dtype f32", 64, "--dtype f32: expected u32, u64 or i64"},
        {"permute --n 10 --seed 7 --dtype u8", 64, "; NumPy's u8 (8 bytes) is u64 or <u8 here"},
        {"gauss --count 10 --seed 7 --dtype i8", 64,
         "--dtype i8: expected f64, f32, f16 or bf16\n"},
        {"permute --n 10 --seed 7 --dtype auto", 64, "--dtype auto: expected u32, u64 or i64"},
        {"permute --n 4294967297 --seed 7 --dtype u32", 64, "dtype u32: too small"},
    };
    shufctl_fail_each(rows, sizeof rows / sizeof *rows);
}

static void wrong_outputs_are_explained(void **state)
{
    (void)state;
    static const struct shufctl_mistake rows[] = {
        {"permute --n 10 --seed 7 --format xls --out x", 64,
         "--format xls: expected npy, raw, text or csv"},
        {"permute --n 10 --seed 7 --out x.pt", 64,
         "--out x.pt: unknown suffix .pt; expected .npy, .txt, .csv, .bin or .raw, or --format"},
        {"permute --n 10 --seed 7 --out x.npz", 64, "--out x.npz: unknown suffix .npz"},
        {"permute --n 10 --seed 7 --out a.npy/x", 64, "--out a.npy/x: no suffix"},
        {"gauss --count 10 --seed 7 --out .npy", 64, "--out .npy: no suffix"},
        {"index --n 10 --seed 7 --at 1 --out x.pt", 64, "--out x.pt: unknown suffix .pt"},
        {"permute --n 10 --seed 7 --format npy", 64, "--format: nothing is written"},
        {"permute --n 10 --seed 7 --transport none", 64,
         "--transport none: expected inline, memfd"},
        {"permute --n 10 --seed 7 --transport=", 64, "--transport '': expected inline, memfd"},
        {"permute --n 10 --seed 7 --prefetch --out x.npy", 64, "--prefetch: excludes --out"},
        {"permute --n 10 --seed 7 --transport memfd --out /dev/full", 74,
         "/dev/full: No space left"},
        {"permute --n 10 --seed 7 --transport memfd --algorithm sattolo", 64, "sattolo"},
        {"permute --n 35184372088832 --seed 7 --transport memfd", 71,
         "; without --transport the result is computed in parts\n"},
        {"permute --n 10 --seed 7 --out=", 64, "--out '': expected a file, or -"},
        {"shuffle --in x --seed 7 --out=", 64, "--out '': expected a file, or -"},
        {"shuffle --in= --seed 7 --out x", 64, "--in '': expected a file"},
        {"permute --n 35184372088832 --seed 7 --prefetch", 71,
         "--prefetch: the result has 256 TiB, but the daemon keeps at most "},
        {"permute --n 2^62 --seed 7", 64, "--n 2^62"},
        {"permute --n 4611686018427387904 --seed 7 --epochs 0:4", 71, "pass 2^63"},
        {"permute --n 10 --seed 7 --out /nonexistent/file.npy", 73,
         "/nonexistent/file.npy: cannot create: No such file or directory; expected a path whose "
         "directory exists\n"},
        {"permute --n 10 --seed 7 --out /tmp", 73,
         "/tmp: cannot create: Is a directory; expected the path of a file\n"},
        {"permute --n 35184372088832 --seed 7 --out /tmp/shuf-huge.npy", 74, ": it needs 281 TB, "},
        {"permute --n 10 --seed 7 --out /dev/full", 74, "/dev/full: No space left on device"},
        {"permute --n 10 --seed 7 --out /dev/full --format text", 74, "/dev/full: No space"},
        {"permute --n 10 --seed 7 --algorithm=", 64,
         "--algorithm \"\": expected primefold, philox24 or lcg"},
    };
    shufctl_fail_each(rows, sizeof rows / sizeof *rows);
}

static void wrong_daemons_are_explained(void **state)
{
    (void)state;
    static const struct shufctl_mistake rows[] = {
        {"permute --n 10 --seed 7 --socket=", 64, "--socket '': expected the path of a socket"},
        {"permute --n 10 --seed 7 --socket /tmp/shuf-none", 69,
         "start one: shufd --socket /tmp/shuf-none &\n"},
        {"status --socket /tmp/shuf-none", 69, "start one: shufd --socket /tmp/shuf-none &\n"},
        {"status --socket /nonexistent/s", 69, "no daemon answers (No such file or directory)\n"},
        {"status --socket /tmp", 69, "socket /tmp: another kind of file, expected the socket"},
        {"status --socket=", 64, "--socket '': expected the path of a socket"},
        {"status --wait 5m", 64, "--wait 5m: expected a duration such as 10min, 5s or 50us"},
        {"status --wait 1e18", 64, "--wait 1e18: expected 0 to 1000000h"},
        {"status now", 64, "argument 'now'"},
        {"leases now", 64, "argument 'now'"},
        {"leases --socket /tmp/shuf-none", 69, "start one: shufd --socket /tmp/shuf-none &\n"},
        {"help permute status", 64, "at most one verb or topic"},
    };
    shufctl_fail_each(rows, sizeof rows / sizeof *rows);
}

/* Every message begins with the program and the verb, whichever function writes it. */
static void messages_begin_with_program_and_verb(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"permute --bogus", "shufctl permute: "},
        {"permute --n 10", "shufctl permute: --seed: "},
        {"permute --n 10 --seed 7 --offset 11", "shufctl permute: offset 11: "},
        {"permute --n 10 --seed 7 --out /tmp", "shufctl permute: --out /tmp: "},
        {"shuffle --in /nonexistent --seed 7 --out -", "shufctl shuffle: --in /nonexistent: "},
        {"shuffle --in /proc/self/exe --seed 7 --out -", "shufctl shuffle: --record: "},
        {"status --socket /tmp/shuf-none", "shufctl status: socket /tmp/shuf-none: "},
        {"sort", "shufctl: verb 'sort': "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct command c;
        shufctl_run(&c, 0, "%s", rows[i][0]);
        assert_memory_equal(c.err.bytes, rows[i][1], strlen(rows[i][1]));
        command_free(&c);
    }
}

static void help_succeeds(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"--help", "permute   "},
        {"--help", "before the verb: --json --socket PATH"},
        {"help", "permute   "},
        {"help permute", "--drop-last"},
        {"permute --help", "--drop-last"},
        {"help status", "--json"},
        {"help leases", "--json"},
        {"--version", "shufctl "},
        {"-V", "shufctl "},
        {"--json -V", "shufctl "},
        {"permute --version", "shufctl "},
        {"permute -V", "shufctl "},
        {"--usage", "permute   "},
        {"help units", "64Ki"},
        {"help types", "bfloat16"},
        {"help algorithms", "primefold"},
        {"help transports", "cuda-ipc"},
        {"help environment", "SHUFD_SOCKET"},
        {"help exit-status", "neither a regular file nor a pipe"},
        {"help exit-status", "75  the daemon is busy"},
        {"--json --socket /tmp/none help status", "--wait"},
        {"permute --usage", "--epochs"},
        {"-h", "permute   "},
        {"help --help", "Usage: shufctl help [VERB|TOPIC]"},
        {"--help units", "64Ki"},
        {"permute -h", "--drop-last"},
        {"permute -h", "output: by default text on a terminal, else raw"},
        {"gauss -h", "output: by default text on a terminal, else raw"},
        {"status -h", "--wait"},
        {"version --help", "--wait"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = shufctl_succeed(NULL, "%s", rows[i][0]);
        assert_non_null(strstr(text, rows[i][1]));
        free(text);
    }
}

/* If standard output is full, every verb fails. */
static void full_standard_output_is_an_error(void **state)
{
    (void)state;
    static const char *const verbs[] = {
        "permute --n 10 --seed 7",        "status", "leases", "version", "help", "permute --help",
        "permute --n 10 --seed 7 --out -"};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        struct command c;
        assert_int_equal(shufctl_script(&c, "exec \"$0\" %s >/dev/full", verbs[i]), 74);
        assert_non_null(strstr(c.err.bytes, "No space left on device"));
        command_free(&c);
    }
}

/* If a standard stream is closed, its output does not go to a file or to the daemon instead. */
static void closed_standard_output_is_an_error(void **state)
{
    (void)state;
    struct command c;
    size_t size;
    assert_int_equal(shufctl_script(&c,
                                    "exec \"$0\" permute --n 10 --seed 7 --out %s/v.bin <&- >&-",
                                    shufctl_directory),
                     74);
    assert_non_null(
        strstr(c.err.bytes, "standard output: Bad file descriptor: it is closed; expected "));
    command_free(&c);
    free(shufctl_read(shufctl_path("v.bin"), &size));
    assert_int_equal(size, 40);
    shufctl_remove("v.bin");
    assert_int_equal(
        shufctl_script(&c, "exec \"$0\" permute --n 10 --seed 7 --out - --format raw <&- >&-"), 74);
    assert_non_null(strstr(c.err.bytes, "--out -: Bad file descriptor"));
    command_free(&c);
}

static void missing_daemon_lists_socket_paths(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(shufctl_script(&c, "unset SHUFD_SOCKET XDG_RUNTIME_DIR CUDA_VISIBLE_DEVICES\n"
                                        "SHUFD_RUNTIME_DIR=/nowhere exec $0 status"),
                     69);
    assert_non_null(strstr(c.err.bytes, "socket /nowhere/shufd.sock: no daemon answers (No such "
                                        "file or directory); tried in this order: $SHUFD_SOCKET "
                                        "(not set), CUDA context (none), CUDA_VISIBLE_DEVICES (not "
                                        "set), $XDG_RUNTIME_DIR (not "));
    assert_non_null(strstr(c.err.bytes, "), /nowhere/shufd.sock, /nowhere/GPU-*.sock (none)"));
    command_free(&c);
    assert_int_equal(shufctl_script(&c, "SHUFD_SOCKET=/nowhere/s exec $0 status"), 69);
    assert_non_null(strstr(c.err.bytes, "; $SHUFD_SOCKET sets this path"));
    command_free(&c);
    assert_int_equal(
        shufctl_script(&c, "SHUFD_SOCKET=/%s exec $0 permute --n 1 --seed 1",
                       "0123456789012345678901234567890123456789012345678901234567890"
                       "0123456789012345678901234567890123456789012345678901234567890"),
        64);
    assert_non_null(strstr(c.err.bytes, "; $SHUFD_SOCKET sets this path"));
    command_free(&c);
    assert_int_equal(shufctl_script(&c, "SHUFD_SOCKET=/nowhere/s exec $0 status --socket /no"), 69);
    assert_null(strstr(c.err.bytes, "SHUFD_SOCKET"));
    command_free(&c);
}

/* shufctl waits for a daemon that starts later, and gives up if none starts. */
static void wait_option_waits_for_daemon(void **state)
{
    (void)state;
    struct command c;
    harness_kill(&shufctl_daemon, SIGTERM);
    assert_int_equal(shufctl_run(&c, 0, "status --wait 1"), 69);
    command_free(&c);
    shufctl_start(&c, 0, "permute --n 3 --seed 7 --wait 60");
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    assert_true(harness_restart(&shufctl_daemon));
    command_finish(&c);
    assert_int_equal(c.status, 0);
    command_free(&c);
}

/* A machine with several sockets has a line for each. */
static void wait_option_waits_for_each_daemon(void **state)
{
    (void)state;
    struct command c;
    const char *const status[] = {
        "sh",
        "-c",
        "unset SHUFD_SOCKET XDG_RUNTIME_DIR; d=$(mktemp -d); ln -s $1 $d/GPU-1.sock; "
        "ln -s $1 $d/GPU-2.sock; SHUFD_RUNTIME_DIR=$d $0 status --wait 60; s=$?; rm -r $d; exit $s",
        SHUFCTL_PATH,
        shufctl_daemon.socket,
        NULL};
    harness_kill(&shufctl_daemon, SIGKILL); /* its socket stays */
    command_start(&c, 0, status);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    assert_true(harness_restart(&shufctl_daemon));
    command_finish(&c);
    assert_int_equal(c.status, 0);
    assert_non_null(strstr(c.out.bytes, "GPU-1.sock"));
    assert_non_null(strstr(c.out.bytes, "GPU-2.sock"));
    assert_null(strstr(c.out.bytes, "no answer"));
    command_free(&c);
}

/* The example waits for a daemon that starts later, and gives up if none starts. */
static void example_waits_for_daemon(void **state)
{
    (void)state;
    struct command c;
    const char *const shortly[] = {WAIT_PATH, "0.3", NULL}, *const longer[] = {WAIT_PATH, NULL};
    harness_kill(&shufctl_daemon, SIGTERM);
    assert_int_equal(command_run(&c, 0, shortly), 1);
    assert_non_null(strstr(c.err.bytes, "wait: socket "));
    command_free(&c);
    command_start(&c, 0, longer);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    assert_true(harness_restart(&shufctl_daemon));
    command_finish(&c);
    assert_int_equal(c.status, 0);
    assert_non_null(strstr(c.out.bytes, " answers: "));
    command_free(&c);
}

/* shufctl also waits for a daemon that hangs. The daemon may continue within the waiting time. */
static void wait_option_waits_for_hung_daemon(void **state)
{
    (void)state;
    struct command c;
    kill(shufctl_daemon.pid, SIGSTOP);
    assert_int_equal(shufctl_run(&c, 0, "status --wait 1"), 75);
    assert_non_null(strstr(c.err.bytes, "the daemon did nothing for 1"));
    assert_null(strstr(c.err.bytes, "for 10000 ms"));
    command_free(&c);
    shufctl_start(&c, 0, "permute --n 3 --seed 7 --wait 120");
    /* longer than shufctl waits without --wait */
    nanosleep(&(struct timespec){.tv_sec = 11}, NULL);
    kill(shufctl_daemon.pid, SIGCONT);
    command_finish(&c);
    assert_int_equal(c.status, 0);
    command_free(&c);
}

/* Expects that two verbs that need the daemon fail. `version` prints its version and the same
 * reason. */
static void expect_refused(unsigned flags, const char *socket, int code, const char *words)
{
    static const char *const verbs[] = {"status", "permute --n 10 --seed 7"};
    struct command c;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(shufctl_run(&c, flags, "%s --socket %s", verbs[i], socket), code);
        assert_non_null(strstr(c.err.bytes, words));
        assert_null(strstr(c.err.bytes, "start one"));
        command_free(&c);
    }
    assert_int_equal(shufctl_run(&c, flags, "version --socket %s", socket), code);
    assert_memory_equal(c.out.bytes, "shufctl ", 8);
    assert_non_null(strstr(c.err.bytes, words));
    command_free(&c);
}

static void busy_daemon_is_an_error(void **state)
{
    (void)state;
    FILE *file = fopen(shufctl_path("conf"), "we");
    const char *const extra[] = {"--config", shufctl_path("conf"), NULL};
    struct harness h;
    fputs("clients = 1\nframe_timeout = 1h\n", file);
    fclose(file);
    assert_true(harness_start(&h, shufctl_backend, extra));
    int fd = harness_connect(h.socket); /* the only client that the daemon accepts */
    assert_true(fd >= 0);
    expect_refused(0, h.socket, 75, "clients");
    close(fd);
    assert_true(harness_stop(&h));
    shufctl_remove("conf");
}

/* Only the owner may access the harness's directory. */
static void denied_socket_is_an_error(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    expect_refused(COMMAND_AS_NOBODY, shufctl_daemon.socket, 77, "uid 65534 may not search");
}

/* The reader closes the pipe early. SIGPIPE has its default action, or is ignored. Then there is a
 * message, as from other programs. */
static void closed_pipe_ends_output(void **state)
{
    (void)state;
    static const char *const starts[] = {"", "trap '' PIPE; "};
    for (int i = 0; i < 2; i++) {
        struct command c;
        assert_int_equal(shufctl_script(&c,
                                        "%s\"$0\" permute --n 1e6 --seed 7 --out - --format text "
                                        "| head -n 1",
                                        starts[i]),
                         0);
        assert_true(i == 0 ? c.err.size == 0 : strstr(c.err.bytes, "Broken pipe") != NULL);
        assert_true(c.out.size > 0 && strchr(c.out.bytes, '\n') == c.out.bytes + c.out.size - 1);
        command_free(&c);
    }
}

/* ---- Files, terminals, signals ---- */

static void terminal_gets_only_text(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(
        shufctl_run(&c, COMMAND_TERMINAL_OUT, "permute --n 10 --seed 7 --out - --format raw"), 64);
    assert_int_equal(c.out.size, 0);
    assert_non_null(strstr(c.err.bytes, "binary to a terminal; expected --format text"));
    command_free(&c);
    assert_int_equal(shufctl_run(&c, COMMAND_TERMINAL_OUT,
                                 "permute --n 10 --seed 7 --algorithm philox24 --out -"),
                     0);
    assert_memory_equal(c.out.bytes, "5\r\n9\r\n", 6); /* the terminal adds the \r */
    command_free(&c);
    assert_int_equal(
        shufctl_run(&c, COMMAND_TERMINAL_OUT,
                    "permute --n 10 --seed 7 --algorithm philox24 --out /proc/self/fd/1"),
        0);
    assert_memory_equal(c.out.bytes, "5\r\n9\r\n", 6);
    command_free(&c);
}

/* Writing this much text takes seconds on any machine, so the progress line appears. */
static void progress_line_on_terminal(void **state)
{
    (void)state;
    struct command c;
    const char *request = TEST_SANITIZED ? "permute --n 4e7 --seed 7 --format text --out /dev/null"
                                         : "permute --n 2e8 --seed 7 --format text --out /dev/null";
    assert_int_equal(shufctl_run(&c, COMMAND_TERMINAL_ERR, "%s", request), 0);
    assert_non_null(strstr(c.err.bytes, "\rwriting: "));
    assert_non_null(strstr(c.err.bytes, TEST_SANITIZED ? " of 160 MB, " : " of 800 MB, "));
    assert_non_null(strstr(c.err.bytes, "/s, "));
    assert_non_null(strstr(c.err.bytes, " %, "));
    assert_non_null(strstr(c.err.bytes, " left\033[K"));
    assert_memory_equal(c.err.bytes + c.err.size - 4, "\r\033[K", 4);
    command_free(&c);
    assert_int_equal(shufctl_run(&c, COMMAND_TERMINAL_ERR, "%s -q", request), 0);
    assert_int_equal(c.err.size, 0);
    command_free(&c);
    assert_int_equal(shufctl_run(&c, 0, "%s", request), 0);
    assert_int_equal(c.err.size, 0);
    command_free(&c);
}

static void end_by_sigterm(struct command *c)
{
    assert_int_equal(kill(c->pid, SIGTERM), 0);
    command_finish(c);
    assert_int_equal(c->status, 128 + SIGTERM);
}

static void progress_line_during_wait(void **state)
{
    (void)state;
    struct command c;
    const char *status = "status --socket /tmp/shuf-none --wait 4";
    assert_int_equal(shufctl_run(&c, COMMAND_TERMINAL_ERR, "%s", status), 69);
    assert_non_null(strstr(c.err.bytes, "\rwaiting for the daemon: "));
    assert_non_null(strstr(c.err.bytes, "\r\033[Kshufctl status: socket /tmp/shuf-none"));
    command_free(&c);
    assert_int_equal(shufctl_run(&c, 0, "%s", status), 69);
    assert_null(strstr(c.err.bytes, "waiting"));
    command_free(&c);
    shufctl_start(&c, COMMAND_TERMINAL_ERR, "version --socket /tmp/shuf-none --wait 1h");
    assert_true(command_await_err(&c, " s\033[K"));
    end_by_sigterm(&c);
    assert_memory_equal(c.err.bytes, "\rwaiting for the daemon: ", 25);
    command_free(&c);
}

/* Returns the width of the widest progress line on standard error. */
static size_t widest_progress_line(const char *text)
{
    size_t widest = 0;
    for (const char *end; (end = strstr(text, "\033[K")) != NULL; text = end + 3)
        widest = (size_t)(end - text) > widest ? (size_t)(end - text) : widest;
    return widest;
}

/* A progress line that is wider than the terminal would wrap. The next line could not replace it
 * then. */
static void progress_line_fits_narrow_terminals(void **state)
{
    (void)state;
    char script[512];
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct command c;
    for (unsigned columns = 1; columns < 41; columns += 13) {
        snprintf(script, sizeof script,
                 "stty cols %u <&2; exec %s version --socket /tmp/shuf-none --wait 1h", columns,
                 SHUFCTL_PATH);
        command_start(&c, COMMAND_TERMINAL_ERR, argv);
        assert_true(command_await_err(&c, "\033[K"));
        end_by_sigterm(&c);
        const size_t width = strlen("\rwaiting for the daemon: 1 s");
        assert_int_equal(widest_progress_line(c.err.bytes), columns < width ? columns : width);
        command_free(&c);
    }
}

/* The line shows as many values as fit, and "..." for the others. */
static void summary_line_fits_terminal(void **state)
{
    (void)state;
    static const struct {
        unsigned columns;
        const char *line; /* NULL: the output has no such line */
    } rows[] = {
        {1, NULL},
        {17, NULL},
        {18, "\r\nvalues      4 ...\r\n"},
        {20, "\r\nvalues      4 0 ...\r\n"},
        {31, "\r\nvalues      4 0 5 1 2 9 6 8 ...\r\n"},
        {33, "\r\nvalues      4 0 5 1 2 9 6 8 7 3\r\n"},
        {200, "\r\nvalues      4 0 5 1 2 9 6 8 7 3\r\n"},
    };
    char script[512];
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct command c;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(script, sizeof script,
                 "stty cols %u <&1; NO_COLOR=1 exec %s permute --n 10 --seed 7", rows[i].columns,
                 SHUFCTL_PATH);
        assert_int_equal(command_run(&c, COMMAND_TERMINAL_OUT, argv), 0);
        const char *found = strstr(c.out.bytes, rows[i].line ? rows[i].line : "\r\nvalues");
        if (!found == !!rows[i].line)
            fail_msg("%u columns:\n%s", rows[i].columns, c.out.bytes);
        command_free(&c);
    }
}

int main(int argc, char **argv)
{
    shufctl_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_verbs_are_explained),
        cmocka_unit_test(wrong_options_are_explained),
        cmocka_unit_test(wrong_arguments_are_explained),
        cmocka_unit_test(wrong_values_are_explained),
        cmocka_unit_test(wrong_outputs_are_explained),
        cmocka_unit_test(wrong_daemons_are_explained),
        cmocka_unit_test(messages_begin_with_program_and_verb),
        cmocka_unit_test(help_succeeds),
        cmocka_unit_test(full_standard_output_is_an_error),
        cmocka_unit_test(closed_standard_output_is_an_error),
        cmocka_unit_test(missing_daemon_lists_socket_paths),
        cmocka_unit_test(wait_option_waits_for_daemon),
        cmocka_unit_test(wait_option_waits_for_each_daemon),
        cmocka_unit_test(example_waits_for_daemon),
        cmocka_unit_test(wait_option_waits_for_hung_daemon),
        cmocka_unit_test(busy_daemon_is_an_error),
        cmocka_unit_test(denied_socket_is_an_error),
        cmocka_unit_test(closed_pipe_ends_output),
        cmocka_unit_test(terminal_gets_only_text),
        cmocka_unit_test(progress_line_on_terminal),
        cmocka_unit_test(progress_line_during_wait),
        cmocka_unit_test(progress_line_fits_narrow_terminals),
        cmocka_unit_test(summary_line_fits_terminal),
    };
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down);
}
