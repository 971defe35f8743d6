/* SPDX-License-Identifier: MIT
 *
 * `shufctl shuffle`: shuffles the records of a file by a permutation, in the memory of the daemon.
 * If the daemon has no room for the array and its copy, this process moves the records.
 */
#include "array.h"
#include "clock.h"
#include "connect.h"
#include "exit.h"
#include "json.h"
#include "option.h"
#include "output.h"
#include "progress.h"
#include "summary.h"
#include "units.h"
#include "verbs.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- The options ---- */

enum key {
    KEY_IN = 0x100,
    KEY_RECORD,
    KEY_SEED,
    KEY_KEY,
    KEY_EPOCH,
    KEY_ALGORITHM,
    KEY_INVERSE,
    KEY_OUT
};

static const struct argp_option option_table[] = {
    {"in", KEY_IN, "FILE", 0, "The array: an .npy, or raw records with --record (required)", 0},
    {"out", KEY_OUT, "FILE", 0,
     "Write the shuffled array to FILE, which may be the file of --in, or to standard output for - "
     "(required)",
     0},
    SHUF__SEED_OPTIONS(KEY_SEED, KEY_KEY),
    {"record", KEY_RECORD, "BYTES", 0,
     "The size of a raw record, at least 1. Not needed for an .npy: there a record is the elements "
     "of one index of the first dimension",
     1},
    {"epoch", KEY_EPOCH, "E", 0, "Select one of the permutations of the seed or key (default 0)",
     2},
    {"algorithm", KEY_ALGORITHM, SHUF__ALGORITHM_CHOICES, 0, "The algorithm (default primefold)",
     2},
    {"inverse", KEY_INVERSE, NULL, 0, "Undo a shuffle that had the same options: restore the order",
     2},
    {0},
};

struct parse {
    struct shuf__shuffle_options *options;
    bool seed;
};

static void read_record(struct argp_state *state, const char *text, uint64_t *record)
{
    shuf__option_number_in(state, "--record", text, 1, INT64_MAX, record);
}

static void finish_shuffle(struct argp_state *state, const struct parse *parse)
{
    const struct shuf__required required[] = {
        {parse->options->in, "--in rows.npy"},
        {parse->seed || parse->options->records.key, "--seed 7"},
        {parse->options->out, "--out shuffled.npy"},
    };
    shuf__option_require(state, required, sizeof required / sizeof *required);
    shuf__check_seed_options(state, parse->seed, parse->options->records.key);
}

static error_t parse_shuffle_option(int key, char *text, struct argp_state *state)
{
    struct parse *parse = state->input;
    struct shuf__shuffle_options *options = parse->options;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->daemon;
        return 0;
    case ARGP_KEY_END:
        finish_shuffle(state, parse);
        return 0;
    case KEY_IN:
        if (!*text)
            shuf__option_fail(state, EX_USAGE, "--in '': expected a file");
        options->in = text;
        return 0;
    case KEY_RECORD:
        read_record(state, text, &options->record);
        return 0;
    case KEY_SEED:
        parse->seed = true;
        shuf__option_number(state, "--seed", text, &options->records.seed);
        return 0;
    case KEY_KEY:
        options->records.key = shuf__key_option(state, text);
        return 0;
    case KEY_EPOCH:
        shuf__option_number(state, "--epoch", text, &options->records.epoch);
        return 0;
    case KEY_ALGORITHM:
        options->records.algorithm = shuf__algorithm_option(state, text);
        return 0;
    case KEY_INVERSE:
        options->records.inverse = true;
        return 0;
    case KEY_OUT:
        shuf__check_out_option(state, text);
        options->out = text;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void shuf__shuffle_options(int argc, char **argv, struct shuf__shuffle_options *options)
{
    static const struct argp_child children[] = {{&shuf__daemon_argp, 0, NULL, 4}, {0}};
    static const struct argp argp = {
        .children = children,
        .options = option_table,
        .parser = parse_shuffle_option,
        .args_doc = "--in FILE --seed S --out FILE",
        .doc =
            "Shuffles the records of an array by a permutation p: record i of the output is record "
            "p(i) of the input."
            "\vNumbers may be written 1000000, 1e6, 10M or 64Ki: see shufctl help units. p is the "
            "permutation that shufctl permute gives for N = the number of records. The daemon "
            "shuffles the array if it has memory for twice its size; otherwise shufctl moves the "
            "records. With --out -, standard output has only the array; --json then prints the "
            "summary on standard error.\n",
    };
    struct parse parse = {.options = options};
    *options = (struct shuf__shuffle_options){0};
    shuf__options_parse(&argp, argc, argv, &parse);
}

/* ---- A shuffle ---- */

/* Its output is not committed yet. */
struct shuffle {
    const struct shuf__shuffle_options *options;
    struct shuf__array array;
    struct shuf__output output;
    shuf_records records; /* of the options, with the size of the array */
    shuf_result result;
    uint64_t seen_ns;
    bool mapped; /* this process moves the records */
};

enum { PART = 4 << 20 }; /* bytes between two updates of the progress */

/* Reserves space for the whole output, then writes the header. */
static int begin_output(struct shuffle *run)
{
    const struct shuf__array *array = &run->array;
    int code = shuf__output_reserve(&run->output, array->header_size + array->bytes);
    if (code == EX_OK && array->header &&
        !shuf__output_write(&run->output, array->header, array->header_size))
        code = shuf__output_failed(&run->output);
    return code;
}

static int write_records(struct shuffle *run, const char *bytes)
{
    const uint64_t all = run->array.bytes;
    bool written = true;
    shuf__progress_phase("writing", all);
    for (uint64_t done = 0; done < all && written;) {
        const size_t size = all - done < PART ? (size_t)(all - done) : PART;
        written = shuf__output_write(&run->output, bytes + done, size);
        done += size;
        shuf__progress_add(size);
    }
    return written ? EX_OK : shuf__output_failed(&run->output);
}

/* ---- In the daemon ---- */

/* shufctl reads the records into a buffer of the daemon, leases the shuffled result, and writes
 * this to the output. */

enum { LOSSES_MAX = 16 }; /* daemons that one shuffle may lose */

struct daemon_shuffle {
    struct shuffle *run;
    shuf_lease *buffer;
    bool lost; /* a daemon was lost */
    int code;  /* the exit code of a failure in this process */
};

/* Reads directly into the buffer if the buffer is mapped. */
static shuf_status fill_part(shuf *daemon, struct daemon_shuffle *s, uint64_t offset, size_t size)
{
    static char part[PART];
    const shuf_lease *buffer = s->buffer;
    char *to = buffer->buffer ? (char *)buffer->buffer + offset : part;
    s->code = shuf__array_read(&s->run->array, offset, size, to);
    if (s->code != EX_OK || buffer->buffer)
        return SHUF_OK;
    return shuf_lease_write(daemon, buffer, offset, size, part);
}

static shuf_status fill_buffer(shuf *daemon, struct daemon_shuffle *s)
{
    const uint64_t all = s->run->array.bytes;
    shuf_status status = SHUF_OK;
    shuf__progress_phase("reading", all);
    for (uint64_t done = 0; done < all && status == SHUF_OK && s->code == EX_OK;) {
        const size_t size = all - done < PART ? (size_t)(all - done) : PART;
        status = fill_part(daemon, s, done, size);
        done += size;
        shuf__progress_add(size);
    }
    return status;
}

/* After a failure it keeps its leases, because a release would replace the message of the failure.
 * The next attempt releases the buffer, and shuf_close() ends all leases. */
static shuf_status shuffle_once(shuf *daemon, struct daemon_shuffle *s, shuf_lease **shuffled)
{
    const shuf_request buffer = {.kind = SHUF_BUFFER, .bytes = s->run->array.bytes};
    shuf_request shuffle = {.kind = SHUF_RECORDS, .records = s->run->records};
    shuf_status status = shuf_lease_take(daemon, &buffer, NULL, &s->buffer);
    if (status == SHUF_OK)
        status = fill_buffer(daemon, s);
    shuf__progress_phase("computing", 0);
    shuffle.records.input = s->buffer;
    if (status == SHUF_OK && s->code == EX_OK)
        status = shuf_lease_take(daemon, &shuffle, NULL, shuffled);
    return status == SHUF_OK ? shuf_lease_release(daemon, &s->buffer) : status;
}

/* shuf_daemon_status() waits for the next daemon as long as the library's reconnect time. */
static shuf_status shuffle_array(shuf *daemon, struct daemon_shuffle *s, shuf_lease **shuffled)
{
    shuf_daemon ignored;
    shuf_status status = shuffle_once(daemon, s, shuffled);
    for (int losses = 0; status == SHUF_NO_DAEMON && losses < LOSSES_MAX; losses++) {
        s->lost = true;
        if ((status = shuf_daemon_status(daemon, &ignored)) != SHUF_OK)
            break;
        status = shuffle_once(daemon, s, shuffled);
    }
    return status;
}

/* Fails if the array and its copy are larger than the daemon's limit for results. */
static shuf_status check_room(shuf *daemon, const struct shuffle *run)
{
    shuf_daemon now;
    shuf_status status = shuf_daemon_status(daemon, &now);
    return status == SHUF_OK && run->array.bytes > now.host_limit / 2 ? SHUF_NO_MEMORY : status;
}

static int fail_in_daemon(shuf *daemon, const struct daemon_shuffle *s, shuf_status status)
{
    if (status == SHUF_NO_DAEMON && s->lost)
        return shuf__fail_with(shuf__exit_code(status), "the daemon was lost; %s",
                               shuf_message(daemon));
    return shuf__fail_call(daemon, status, &s->run->options->daemon);
}

/* Sets run->mapped, writes nothing and prints no line if the daemon has no room for the array and
 * its shuffled copy. */
static int shuffle_in_daemon(shuf *daemon, struct shuffle *run)
{
    struct daemon_shuffle s = {.run = run};
    shuf_lease *shuffled = NULL;
    shuf_status status = check_room(daemon, run);
    if (status == SHUF_OK)
        status = shuffle_array(daemon, &s, &shuffled);
    run->mapped = status == SHUF_NO_MEMORY || status == SHUF_BUSY;
    if (run->mapped) {
        shuf_lease_release(daemon, &s.buffer);
        return EX_OK;
    }
    if (status != SHUF_OK)
        return fail_in_daemon(daemon, &s, status);
    if (s.code != EX_OK)
        return s.code;
    run->result = shuffled->result;
    const int code = begin_output(run);
    return code == EX_OK ? write_records(run, shuffled->data) : code;
}

/* ---- In this process ---- */

/* The daemon computes the permutation in parts, so the array may be larger than the daemon's
 * memory. A forward shuffle reads records at any place of the mapped input and writes them one
 * after the other. An inverse shuffle writes records at any place, so it maps the output. */

static void end_cut_off(int number)
{
    static const char text[] =
        "shufctl shuffle: a mapped file was cut off meanwhile, or its disk is full\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)number;
    (void)ignored;
    shuf__output_remove_temporary();
    _exit(EX_IOERR);
}

static void catch_cut_off(void)
{
    struct sigaction action = {.sa_handler = end_cut_off};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

static char *map_file(int fd, uint64_t bytes, int protection)
{
    void *memory = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int cannot_map(const char *option, const char *name)
{
    return shuf__fail_with(EX_IOERR, "%s %s: cannot map: %s", option, name, strerror(errno));
}

static bool write_chunk(void *context, const void *bytes, size_t size)
{
    struct shuf__output *output = context;
    shuf__progress_add(size);
    return shuf__output_write(output, bytes, size);
}

static int write_in_order(shuf *daemon, struct shuffle *run, const char *in)
{
    int code = begin_output(run);
    if (code != EX_OK)
        return code;
    shuf__progress_phase("writing", run->array.bytes);
    shuf_status status = shuf_shuffle_each(daemon, &run->records, in, run->array.bytes, write_chunk,
                                           &run->output, &run->result);
    if (run->output.cause != 0)
        return shuf__output_failed(&run->output);
    return status == SHUF_OK ? EX_OK : shuf__fail_call(daemon, status, &run->options->daemon);
}

/* Writes the records to the file from `offset` on. The file must already be long enough. */
static int fill_file(shuf *daemon, struct shuffle *run, const char *in, int fd, size_t offset,
                     bool copies)
{
    const uint64_t all = run->array.bytes;
    char *out = map_file(fd, offset + all, PROT_READ | PROT_WRITE);
    if (!out)
        return cannot_map("--out", run->options->out);
    shuf__progress_phase("computing", 0);
    shuf_status status = shuf_shuffle(daemon, &run->records, in, out + offset, all, &run->result);
    int code = status == SHUF_OK ? EX_OK : shuf__fail_call(daemon, status, &run->options->daemon);
    if (code == EX_OK && copies)
        code = write_records(run, out);
    munmap(out, offset + all);
    return code;
}

/* Reserves the space of the mapped file first. On a full disk, a write to the mapping would end the
 * process by a signal, without a message. */
static bool reserve(int fd, uint64_t bytes)
{
    int result;
    do
        result = fallocate(fd, 0, 0, (off_t)bytes);
    while (result != 0 && errno == EINTR);
    return result == 0 ||
           ((errno == EOPNOTSUPP || errno == ENOSYS) && ftruncate(fd, (off_t)bytes) == 0);
}

static int fill_temporary(shuf *daemon, struct shuffle *run, const char *in)
{
    int fd = shuf__temporary_file();
    if (fd < 0 || !reserve(fd, run->array.bytes)) {
        int cause = errno;
        if (fd >= 0)
            close(fd);
        return shuf__fail_with(EX_IOERR,
                               "--inverse to a pipe: its temporary copy in %s: %s; set TMPDIR",
                               shuf__temporary_directory(), strerror(cause));
    }
    int code = fill_file(daemon, run, in, fd, 0, true);
    close(fd);
    return code;
}

static int write_inverse(shuf *daemon, struct shuffle *run, const char *in)
{
    struct shuf__output *output = &run->output;
    const size_t header = run->array.header_size;
    int code = begin_output(run);
    if (code != EX_OK)
        return code;
    if (!output->path) /* a pipe, or a device */
        return fill_temporary(daemon, run, in);
    if (!reserve(output->fd, header + run->array.bytes)) {
        output->cause = errno;
        return shuf__output_failed(output);
    }
    return fill_file(daemon, run, in, output->fd, header, false);
}

static int shuffle_mapped(shuf *daemon, struct shuffle *run)
{
    const uint64_t bytes = run->array.header_size + run->array.bytes;
    char *in = map_file(run->array.fd, bytes, PROT_READ);
    if (!in)
        return cannot_map("--in", run->options->in);
    catch_cut_off();
    int code = (run->records.inverse ? write_inverse : write_in_order)(daemon, run,
                                                                       in + run->array.header_size);
    munmap(in, bytes);
    return code;
}

/* ---- The summary ---- */

static const char *format_name(const struct shuffle *run)
{
    return run->array.header ? "npy" : "raw";
}

/* The daemon computed the shuffled bytes or, with `mapped`, only the values of the permutation. */
static void print_compute(const struct shuffle *s)
{
    char text[SHUF__UNITS_TEXT], rate[SHUF__UNITS_TEXT];
    const struct shuf__array *array = &s->array;
    const uint64_t ns = s->result.device_ns;
    shuf__units_time(text, ns);
    if (s->mapped || ns == 0)
        shuf__print_line(stdout, "compute", "%s, %s", text,
                         shuf__units_rate(rate, array->records, ns));
    else
        shuf__print_line(
            stdout, "compute", "%s, %s/s", text,
            shuf__units_bytes(rate, (uint64_t)((double)array->bytes * 1e9 / (double)ns)));
}

static void print_shuffle(const struct shuffle *s)
{
    char text[SHUF__UNITS_TEXT];
    const shuf_result *r = &s->result;
    const shuf_records *records = &s->options->records;
    shuf__print_line(stdout, "written", "%s (%s)", s->options->out, format_name(s));
    shuf__print_line(stdout, "backend", "%s, %s", r->backend, r->device);
    shuf__print_line(stdout, "algorithm", "%s%s", r->algorithm,
                     records->inverse ? ", inverse" : "");
    shuf__print_seed(stdout, records->key, records->seed);
    shuf__print_line(stdout, "epoch", "%" PRIu64, records->epoch);
    shuf__print_line(stdout, "records", "%" PRIu64 " of %" PRIu64 " byte%s (%s)", s->array.records,
                     s->array.record, s->array.record == 1 ? "" : "s",
                     shuf__units_bytes(text, s->array.bytes));
    shuf__print_line(stdout, "shuffled by", "%s", s->mapped ? "shufctl" : "the daemon");
    print_compute(s);
    shuf__print_line(stdout, "total", "%s", shuf__units_time(text, s->seen_ns));
}

static void print_shuffle_json(const struct shuffle *s, FILE *to)
{
    json_t *object = json_object();
    const shuf_result *r = &s->result;
    const shuf_records *records = &s->options->records;
    shuf__json_text(object, "backend", r->backend);
    shuf__json_text(object, "device", r->device);
    shuf__json_text(object, "algorithm", r->algorithm);
    shuf__json_integer(object, "n", s->array.records);
    shuf__json_integer(object, "record", s->array.record);
    shuf__json_seed(object, records->key, records->seed);
    shuf__json_decimal(object, "epoch", records->epoch);
    json_object_set_new(object, "inverse", json_boolean(records->inverse));
    shuf__json_integer(object, "bytes", s->array.bytes);
    shuf__json_text(object, "shuffled_by", s->mapped ? "shufctl" : "daemon");
    shuf__json_seconds(object, "compute_seconds", r->device_ns);
    shuf__json_seconds(object, "total_seconds", s->seen_ns);
    shuf__json_text(object, "in", s->options->in);
    shuf__json_text(object, "out", s->options->out);
    shuf__json_text(object, "format", format_name(s));
    shuf__json_print(object, to);
}

static void print_shuffle_summary(const struct shuffle *s)
{
    const bool to_stdout = shuf__output_path_descriptor(s->options->out) == STDOUT_FILENO;
    if (s->options->daemon.json)
        print_shuffle_json(s, to_stdout ? stderr : stdout);
    else if (!to_stdout && !s->options->daemon.quiet)
        print_shuffle(s);
}

/* ---- The verb ---- */

/* Lets the daemon check the name of the algorithm, which only the daemon knows, before the array is
 * copied. */
static shuf_status check_algorithm(shuf *daemon, const char *name)
{
    uint32_t value;
    const shuf_request one = {.permutation = {.algorithm = name, .n = 1}};
    return name ? shuf_copy(daemon, &one, &value, sizeof value, NULL) : SHUF_OK;
}

/* Writes an array of no bytes as it is. The daemon only checks the other options, by a permutation
 * of one record. */
static int write_empty(shuf *daemon, struct shuffle *run)
{
    uint32_t value;
    const shuf_records *records = &run->records;
    const shuf_request one = {.permutation = {.algorithm = records->algorithm,
                                              .n = 1,
                                              .seed = records->seed,
                                              .key = records->key,
                                              .epoch = records->epoch}};
    const shuf_status status = shuf_copy(daemon, &one, &value, sizeof value, &run->result);
    run->result.device_ns = 0;
    return status == SHUF_OK ? begin_output(run)
                             : shuf__fail_call(daemon, status, &run->options->daemon);
}

static int write_shuffled(shuf *daemon, struct shuffle *s)
{
    const uint64_t begin = shuf__clock_ns();
    int code = s->array.bytes == 0 ? write_empty(daemon, s) : shuffle_in_daemon(daemon, s);
    if (code == EX_OK && s->mapped)
        code = shuffle_mapped(daemon, s);
    shuf__progress_phase("waiting for the disk", 0);
    if (code == EX_OK)
        code = shuf__output_commit(&s->output);
    s->seen_ns = shuf__clock_ns() - begin;
    shuf__progress_end();
    if (code == EX_OK)
        print_shuffle_summary(s);
    return code;
}

/* The output has the format of the input. */
static int check_suffix(const struct shuffle *run)
{
    const char *out = run->options->out, *suffix = shuf__suffix(out);
    const bool npy = run->array.header,
               as_in = strcasecmp(suffix, shuf__suffix(run->options->in)) == 0;
    if (shuf__output_path_is_direct(out) || !*suffix ||
        (npy ? strcasecmp(suffix, ".npy") == 0
             : as_in || strcasecmp(suffix, ".bin") == 0 || strcasecmp(suffix, ".raw") == 0))
        return EX_OK;
    return shuf__fail_with(
        EX_USAGE, "--out %s: suffix %s; the output is %s as the input, expected %s", out, suffix,
        npy ? "npy" : "raw", npy ? ".npy" : ".bin, .raw or the suffix of --in");
}

static int run_shuffle(shuf *daemon, struct shuffle *s)
{
    shuf_status status = check_algorithm(daemon, s->options->records.algorithm);
    if (status != SHUF_OK)
        return shuf__fail_call(daemon, status, &s->options->daemon);
    int code = shuf__output_open(&s->output, s->options->out, true);
    if (code != EX_OK)
        return code;
    code = write_shuffled(daemon, s);
    shuf__output_close(&s->output);
    return code;
}

int shuf__verb_shuffle(int argc, char **argv)
{
    struct shuf__shuffle_options options;
    struct shuffle s = {.options = &options};
    shuf *daemon;
    shuf__shuffle_options(argc, argv, &options);
    shuf__progress_set_quiet(options.daemon.quiet);
    int code = shuf__array_open(&s.array, options.in, options.record);
    if (code != EX_OK)
        return code;
    s.records = options.records;
    s.records.n = s.array.records;
    s.records.record = s.array.record;
    code = check_suffix(&s);
    if (code == EX_OK) {
        code = shuf__connect_or_fail(&daemon, &options.daemon);
        if (code == EX_OK)
            code = run_shuffle(daemon, &s);
        shuf_close(daemon);
    }
    shuf__array_close(&s.array);
    return code;
}
