/* SPDX-License-Identifier: MIT
 *
 * `shufctl permute`: computes a permutation, or a part of one.
 */
#include "chunk_list.h"
#include "clock.h"
#include "exit.h"
#include "number.h"
#include "option.h"
#include "progress.h"
#include "request.h"
#include "run_request.h"
#include "shuf/fingerprint.h"
#include "summary.h"
#include "value_file.h"
#include "verb_options.h"
#include "verbs.h"

#include <argp.h>
#include <string.h>
#include <sysexits.h>

/* ---- The options ---- */

enum key {
    KEY_N = 0x100,
    KEY_SEED,
    KEY_KEY,
    KEY_EPOCH,
    KEY_EPOCHS,
    KEY_ALGORITHM,
    KEY_CHUNK,
    KEY_CHUNKS,
    KEY_WINDOW,
    KEY_OFFSET,
    KEY_COUNT,
    KEY_STRIDE,
    KEY_RANK,
    KEY_WORLD,
    KEY_STEP,
    KEY_DROP_LAST,
    KEY_DTYPE,
    KEYS_END,
    KEY_INDEX, /* options of `index` only */
};

#define BIT(key) (1U << ((key)-KEY_N))
#define SLICE_OPTIONS (BIT(KEY_OFFSET) | BIT(KEY_STRIDE)) /* --count fits both views */
#define SHARD_OPTIONS (BIT(KEY_RANK) | BIT(KEY_WORLD) | BIT(KEY_STEP) | BIT(KEY_DROP_LAST))

static const struct argp_option option_table[] = {
    {"n", KEY_N, "N", 0, "Permute the numbers 0 to N - 1 (required)", 0},
    SHUF__SEED_OPTIONS(KEY_SEED, KEY_KEY),
    {"epoch", KEY_EPOCH, "E", 0, "Select one of the permutations of the seed or key (default 0)",
     1},
    {"epochs", KEY_EPOCHS, "A:B", 0, "Compute the epochs A to B - 1, one row of values for each",
     1},
    {"algorithm", KEY_ALGORITHM, SHUF__ALGORITHM_CHOICES, 0, "The algorithm (default primefold)",
     1},
    {"chunk", KEY_CHUNK, "S", 0, "Read chunks of S neighbours, in random order", 1},
    {"chunks", KEY_CHUNKS, "FILE", 0,
     "Read chunks of the sizes in FILE, .npy or text, in random order, and compute without a "
     "daemon; "
     "instead of --n and --chunk",
     1},
    {"window", KEY_WINDOW, "W", 0,
     "Shuffle the records of W chunks at a time; needs --chunk or --chunks, which need --window",
     1},
    {"offset", KEY_OFFSET, "O", 0, "Start at position O (default 0)", 2},
    {"count", KEY_COUNT, "C", 0,
     "Give C values of the permutation or of the rank (default: all to the end)", 2},
    {"stride", KEY_STRIDE, "K", 0, "Give each K-th value only (default 1: every value)", 2},
    {"rank", KEY_RANK, "R", 0,
     "Give the part of rank R, 0 to W - 1, as torch's DistributedSampler divides a data set", 3},
    {"world", KEY_WORLD, "W", 0, "Divide the permutation among W ranks", 3},
    {"step", KEY_STEP, "K", 0, "Start at the rank's value number K, to resume (default 0)", 3},
    {"drop-last", KEY_DROP_LAST, NULL, 0,
     "If W does not divide N, leave values out instead of giving some twice", 3},
    {"dtype", KEY_DTYPE, "u32|u64|i64", 0,
     "The type of the values (default: u32 where N is at most 2^32, else u64)", 4},
    {"at", KEY_INDEX, "LIST", OPTION_HIDDEN, NULL, 5},
    {"inverse", KEY_INDEX, NULL, OPTION_HIDDEN, NULL, 5},
    {0},
};

static struct shuf__chunk_list chunks; /* of --chunks */

struct parse {
    shuf_request *request;
    struct shuf__output_options *output;
    unsigned given; /* BIT(key) of each option seen */
};

/* A:B, B excluded. */
static void read_epochs(struct argp_state *state, const char *text, shuf_permutation *permutation)
{
    char first[80];
    struct shuf__error error;
    const char *colon = strchrnul(text, ':');
    uint64_t end = 0;
    snprintf(first, sizeof first, "%.*s", (int)(colon - text), text);
    if (!*colon || shuf__number_parse("A", first, &permutation->epoch, &error) ||
        shuf__number_parse("B", colon + 1, &end, &error))
        shuf__option_fail(state, EX_USAGE,
                          "--epochs %.64s: expected A:B, two whole numbers below 2^64, as in 0:10",
                          *text ? text : "''");
    if (end <= permutation->epoch)
        shuf__option_fail(state, EX_USAGE,
                          "--epochs %.64s: no epoch is in it; expected A below B (B is excluded)",
                          text);
    permutation->epochs = end - permutation->epoch;
}

/* The first of the options that select positions. */
static const char *name_given(unsigned given)
{
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {{BIT(KEY_RANK), "--rank"},     {BIT(KEY_WORLD), "--world"},
                 {BIT(KEY_STEP), "--step"},     {BIT(KEY_DROP_LAST), "--drop-last"},
                 {BIT(KEY_OFFSET), "--offset"}, {BIT(KEY_STRIDE), "--stride"}};
    size_t i = 0;
    while (i + 1 < sizeof names / sizeof *names && !(given & names[i].bit))
        i++;
    return names[i].name;
}

static void check_chunks_given(struct argp_state *state, const struct parse *parse)
{
    const unsigned given = parse->given;
    shuf__chunk_list_check(
        state, &(struct shuf__beside_chunks){given & BIT(KEY_N), given & BIT(KEY_CHUNK),
                                             given & BIT(KEY_KEY), given & BIT(KEY_ALGORITHM),
                                             given & BIT(KEY_WINDOW)});
    if (parse->output->transport || parse->output->prefetch)
        shuf__option_refuse_both(state, "--chunks",
                                 parse->output->prefetch ? "--prefetch" : "--transport");
}

static void check_permute_given(struct argp_state *state, const shuf_permutation *permutation,
                                unsigned given)
{
    const struct shuf__required required[] = {
        {given & (BIT(KEY_N) | BIT(KEY_CHUNKS)), "--n 1e9"},
        {given & (BIT(KEY_SEED) | BIT(KEY_KEY)), "--seed 7"},
    };
    shuf__option_require(state, required, sizeof required / sizeof *required);
    shuf__check_seed_options(state, given & BIT(KEY_SEED), given & BIT(KEY_KEY));
    if ((given & BIT(KEY_EPOCH)) && (given & BIT(KEY_EPOCHS)))
        shuf__option_refuse_both(state, "--epochs", "--epoch");
    if ((given & SLICE_OPTIONS) && (given & SHARD_OPTIONS))
        shuf__option_refuse_both(state, name_given(given & SHARD_OPTIONS),
                                 name_given(given & SLICE_OPTIONS));
    if ((given & SHARD_OPTIONS) && !(given & (BIT(KEY_RANK) | BIT(KEY_WORLD))))
        shuf__option_fail(state, EX_USAGE, "%s: expected --rank and --world with it",
                          given & BIT(KEY_STEP) ? "--step" : "--drop-last");
    if ((given & SHARD_OPTIONS) && !(given & BIT(KEY_RANK)))
        shuf__option_fail(state, EX_USAGE, "--rank: missing; --world needs it");
    if ((given & SHARD_OPTIONS) && !(given & BIT(KEY_WORLD)))
        shuf__option_fail(state, EX_USAGE, "--world: missing; --rank needs it");
    if ((given & BIT(KEY_CHUNK)) && !(given & BIT(KEY_WINDOW)))
        shuf__option_fail(state, EX_USAGE, "--window: missing; --chunk needs it");
    if ((given & BIT(KEY_WINDOW)) && !(given & (BIT(KEY_CHUNK) | BIT(KEY_CHUNKS))))
        shuf__option_fail(state, EX_USAGE, "--chunk: missing; --window needs it");
    if ((given & BIT(KEY_CHUNK)) && permutation->chunk == 0)
        shuf__option_fail(state, EX_USAGE, "--chunk 0: expected at least 1");
    if ((given & BIT(KEY_WINDOW)) && permutation->window == 0)
        shuf__option_fail(state, EX_USAGE, "--window 0: expected at least 1");
    if ((given & BIT(KEY_COUNT)) && permutation->count == 0) /* for all, it is omitted */
        shuf__option_fail(state, EX_USAGE, "--count 0: expected at least 1");
    if ((given & BIT(KEY_STRIDE)) && permutation->stride == 0) /* libshuf would take 1 */
        shuf__option_fail(state, EX_USAGE, "--stride 0: expected at least 1");
}

/* A slice has at least one value, but the end of a shard may have none. So the values from position
 * n on are requested as the end of the only shard. */
static void make_empty_rest(shuf_permutation *permutation)
{
    permutation->view = SHUF_VIEW_SHARD;
    permutation->world = 1;
    permutation->step = permutation->n;
    permutation->offset = permutation->stride = 0;
}

/* Sets the defaults of the view. The library reports values that are out of range. Returns whether
 * the request is an empty rest. */
static bool complete_view(shuf_permutation *permutation, unsigned given)
{
    if (given & SHARD_OPTIONS)
        permutation->view = SHUF_VIEW_SHARD;
    else if (given & (SLICE_OPTIONS | BIT(KEY_COUNT)))
        permutation->view = SHUF_VIEW_SLICE;
    if (permutation->view != SHUF_VIEW_SLICE)
        return false;
    if (!(given & BIT(KEY_STRIDE)))
        permutation->stride = 1;
    if (given & BIT(KEY_COUNT))
        return false;
    const bool inside = permutation->offset < permutation->n,
               is_empty = permutation->offset == permutation->n;
    permutation->count =
        inside ? (permutation->n - 1 - permutation->offset) / permutation->stride + 1 : !is_empty;
    if (is_empty)
        make_empty_rest(permutation);
    return is_empty;
}

static void finish_permute(struct argp_state *state, struct parse *parse)
{
    struct shuf__output_options *options = parse->output;
    char message[256];
    check_permute_given(state, &parse->request->permutation, parse->given);
    if (parse->given & BIT(KEY_CHUNKS)) {
        check_chunks_given(state, parse);
        shuf__chunk_list_read(state, &parse->request->permutation, &chunks);
        options->chunks = &chunks;
    }
    options->is_empty_rest = complete_view(&parse->request->permutation, parse->given);
    shuf_status status = shuf_shape_of(parse->request, &options->shape, message, sizeof message);
    if (status != SHUF_OK)
        shuf__option_fail(state, shuf__exit_code(status), "%s", message);
    options->request = parse->request;
    options->batch = parse->given & BIT(KEY_EPOCHS);
    shuf__output_options_complete(state, options);
    parse->request->permutation.fingerprint =
        !options->prefetch &&
        (options->daemon.json || !shuf__writes_to_stdout(options)); /* only if it is printed */
}

/* The field of an option whose value is one number, else NULL. */
static uint64_t *permutation_number(shuf_permutation *permutation, int key)
{
    switch (key) {
    case KEY_N:
        return &permutation->n;
    case KEY_SEED:
        return &permutation->seed;
    case KEY_EPOCH:
        return &permutation->epoch;
    case KEY_CHUNK:
        return &permutation->chunk;
    case KEY_WINDOW:
        return &permutation->window;
    case KEY_OFFSET:
        return &permutation->offset;
    case KEY_COUNT:
        return &permutation->count;
    case KEY_STRIDE:
        return &permutation->stride;
    case KEY_RANK:
        return &permutation->rank;
    case KEY_WORLD:
        return &permutation->world;
    case KEY_STEP:
        return &permutation->step;
    default:
        return NULL;
    }
}

static error_t parse_permute_word(int key, char *text, struct argp_state *state,
                                  shuf_permutation *permutation)
{
    switch (key) {
    case KEY_KEY:
        permutation->key = shuf__key_option(state, text);
        return 0;
    case KEY_EPOCHS:
        read_epochs(state, text, permutation);
        return 0;
    case KEY_ALGORITHM:
        permutation->algorithm = shuf__algorithm_option(state, text);
        return 0;
    case KEY_CHUNKS:
        chunks.path = text;
        return 0;
    case KEY_DROP_LAST:
        permutation->drop_last = true;
        return 0;
    case KEY_DTYPE:
        permutation->dtype =
            shuf__option_dtype(state, "--dtype", text, shuf__dtype_set(SHUF_DISTRIBUTION_NONE));
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_permute_option(int key, char *text, struct argp_state *state)
{
    struct parse *parse = state->input;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = parse->output;
    if (key == ARGP_KEY_END)
        finish_permute(state, parse);
    if (key == KEY_INDEX)
        shuf__option_fail(
            state, EX_USAGE,
            "--at, --inverse: permute computes whole permutations and slices; for single "
            "positions, and for positions of values, expected shufctl index");
    if (key == KEY_EPOCH && strchr(text, ':'))
        shuf__option_fail(state, EX_USAGE,
                          "--epoch %.64s: expected a single epoch; did you mean --epochs %.64s?",
                          text, text);
    if (key < KEY_N || key >= KEYS_END)
        return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
    parse->given |= BIT(key);
    uint64_t *number = permutation_number(&parse->request->permutation, key);
    if (!number)
        return parse_permute_word(key, text, state, &parse->request->permutation);
    if (key == KEY_N)
        shuf__option_number_in(state, "--n", text, 1, SHUF__N_MAX, number);
    else
        shuf__option_number(state, shuf__option_name(option_table, key), text, number);
    return 0;
}

void shuf__permute_options(int argc, char **argv, shuf_request *request,
                           struct shuf__output_options *options)
{
    static const struct argp_child children[] = {{&shuf__output_argp, 0, NULL, 6}, {0}};
    static const struct argp argp = {
        .children = children,
        .options = option_table,
        .parser = parse_permute_option,
        .args_doc = "--n N --seed S",
        .doc = "Computes a permutation of 0 to N - 1. Prints a summary, or writes the values with "
               "--out."
               "\vNumbers may be written 1000000, 1e6, 10M or 64Ki: see shufctl help units. With "
               "--out -, standard output has only the values; --json then prints the summary on "
               "standard error.\n",
    };
    struct parse parse = {.request = request, .output = options};
    *request = (shuf_request){.kind = SHUF_PERMUTATION};
    *options = (struct shuf__output_options){0};
    shuf__chunk_list_free(&chunks); /* of a command line before */
    shuf__options_parse(&argp, argc, argv, &parse);
}

/* ---- Chunks ---- */

/* This process computes the order over --chunks in parts. */

enum { PART = 1 << 16 }; /* values that are computed at once */

/* The values of a request, which arrive in order. */
struct run {
    const struct shuf__output_options *o;
    struct shuf__value_file *file; /* NULL: only a summary */
    shuf_result result;
    uint64_t done; /* values */
    uint64_t part[PART];
};

static uint64_t value_at(const struct run *run, size_t i)
{
    return run->result.shape.width == 4 ? ((const uint32_t *)run->part)[i] : run->part[i];
}

static void add_last(shuf_result *r, uint64_t value)
{
    if (r->n_last == SHUF_SAMPLES)
        memmove(r->last, r->last + 1, --r->n_last * sizeof *r->last);
    r->last[r->n_last++] = value;
}

static void add_values(struct run *run, size_t count)
{
    shuf_result *r = &run->result;
    for (size_t i = 0; i < count; i++)
        r->fingerprint += shuf_fingerprint_term(run->done + i, value_at(run, i));
    for (size_t i = 0; i < count && r->n_first < SHUF_SAMPLES; i++)
        r->first[r->n_first++] = value_at(run, i);
    for (size_t i = count > SHUF_SAMPLES ? count - SHUF_SAMPLES : 0; i < count; i++)
        add_last(r, value_at(run, i));
    run->done += count;
}

static bool take_part(struct run *run, size_t count)
{
    add_values(run, count);
    return !run->file ||
           shuf__value_file_write(run->file, run->part, count * run->result.shape.width);
}

/* The values of a row are at the positions first, first + stride, ... The last one of a shard may
 * pass the end, and is then at the beginning. */
struct row {
    uint64_t first, stride, count;
};

static struct row row_of(const struct shuf__output_options *o)
{
    const shuf_permutation *p = &o->request->permutation;
    struct row row = {0, 1, o->shape.count};
    if (p->view == SHUF_VIEW_SLICE) {
        row.first = p->offset;
        row.stride = p->stride;
    } else if (p->view == SHUF_VIEW_SHARD && row.count > 0) {
        row.first = p->rank + p->step * p->world;
        row.stride = p->world;
    }
    return row;
}

/* The values of the row from number `done` on that are computed at once. Sets their position. */
static size_t next_part(const struct row *row, uint64_t done, uint64_t n, uint64_t *position)
{
    const uint64_t left = row->count - done;
    *position = row->first + done * row->stride;
    if (*position >= n) {
        *position %= n;
        return 1;
    }
    const uint64_t before_end = (n - 1 - *position) / row->stride + 1;
    const uint64_t most = left < before_end ? left : before_end;
    return most < PART ? (size_t)most : PART;
}

/* Stops without a failure if the file cannot be written. */
static shuf_status run_row(struct run *run)
{
    const struct row row = row_of(run->o);
    const shuf_chunks *order = run->o->chunks->order;
    for (uint64_t done = 0, count; done < row.count; done += count) {
        uint64_t position;
        count = next_part(&row, done, shuf_chunks_length(order), &position);
        const uint64_t begin = shuf__clock_ns();
        const shuf_status status = shuf_chunks_fill(order, position, count, row.stride, 1,
                                                    run->result.shape.dtype, run->part);
        run->result.device_ns += shuf__clock_ns() - begin;
        if (status)
            return status;
        if (!take_part(run, count))
            return SHUF_OK;
    }
    return SHUF_OK;
}

/* The order of the first row exists. */
static shuf_status run_rows(struct run *run)
{
    const shuf_permutation *p = &run->o->request->permutation;
    for (uint64_t row = 0; row < run->o->shape.rows; row++) {
        shuf_status status =
            row ? shuf__chunk_list_make(run->o->chunks, p->seed, p->epoch + row) : SHUF_OK;
        if (status == SHUF_OK)
            status = run_row(run);
        if (status != SHUF_OK || (run->file && run->file->output.cause))
            return status;
    }
    return SHUF_OK;
}

static int fill(struct run *run)
{
    const shuf_status status = run_rows(run);
    if (status != SHUF_OK)
        return shuf__fail_with(shuf__exit_code(status), "%s", shuf_message(NULL));
    if (!run->file)
        return EX_OK;
    return run->file->output.cause ? shuf__output_failed(&run->file->output)
                                   : shuf__value_file_commit(run->file);
}

static int write_values(struct run *run)
{
    static struct shuf__value_file file;
    const struct shuf__output_options *o = run->o;
    int code = shuf__value_file_open(&file, o->out, o->format, &o->shape, o->batch);
    if (code != EX_OK)
        return code;
    run->file = &file;
    code = fill(run);
    shuf__value_file_close(&file);
    return code;
}

static int run_chunks(const struct shuf__output_options *o)
{
    static struct run run;
    const uint64_t begin = shuf__clock_ns();
    run = (struct run){.o = o,
                       .result = {.shape = o->shape,
                                  .algorithm = "primefold",
                                  .backend = "cpu",
                                  .device = "this process"}};
    shuf__progress_set_quiet(o->daemon.quiet);
    shuf__progress_phase("computing", 0);
    const int code = o->out ? write_values(&run) : fill(&run);
    const uint64_t seen_ns = shuf__clock_ns() - begin;
    shuf__progress_end();
    if (code != EX_OK)
        return code;
    return shuf__print_summary(NULL, &(struct shuf__summary){o, &run.result, NULL, seen_ns});
}

/* ---- The verb ---- */

int shuf__verb_permute(int argc, char **argv)
{
    shuf_request request;
    struct shuf__output_options options;
    shuf__permute_options(argc, argv, &request, &options);
    const int code = (options.chunks ? run_chunks : shuf__run_request)(&options);
    shuf__chunk_list_free(&chunks);
    return code;
}
