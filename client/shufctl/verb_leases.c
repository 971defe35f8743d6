/* SPDX-License-Identifier: MIT
 *
 * `shufctl leases`: lists the leases of results.
 */
#include "connect.h"
#include "daemon_options.h"
#include "describe_request.h"
#include "error.h"
#include "exit.h"
#include "json.h"
#include "order_options.h"
#include "output_options.h"
#include "units.h"
#include "user.h"
#include "verbs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>

/* ---- Totals ------------------------------------------------------------------- */

struct block {
    uint64_t id, bytes;
};

/* One block for each listed lease; leases can share a block. */
struct totals {
    uint64_t leases;
    struct block *blocks;
    size_t count, room;
};

static void count_block(struct totals *t, const shuf_lease_entry *e)
{
    t->leases++;
    if (e->block == 0)
        return;
    if (t->count == t->room) {
        t->room = t->room ? 2 * t->room : 64;
        t->blocks = reallocarray(t->blocks, t->room, sizeof *t->blocks);
        if (!t->blocks)
            exit(shuf__fail_with(EX_OSERR, "leases: out of memory"));
    }
    t->blocks[t->count++] = (struct block){e->block, e->block_bytes};
}

static int by_id(const void *left, const void *right)
{
    uint64_t l = ((const struct block *)left)->id, r = ((const struct block *)right)->id;
    return (l > r) - (l < r);
}

static void print_totals(struct totals *t)
{
    char text[SHUF__UNITS_TEXT];
    uint64_t blocks = 0, bytes = 0;
    if (t->count > 0)
        qsort(t->blocks, t->count, sizeof *t->blocks, by_id);
    for (size_t i = 0; i < t->count; i++) {
        if (i > 0 && t->blocks[i].id == t->blocks[i - 1].id)
            continue;
        blocks++;
        bytes += t->blocks[i].bytes;
    }
    printf("%" PRIu64 " lease%s of %" PRIu64 " block%s, %s\n", t->leases, t->leases == 1 ? "" : "s",
           blocks, blocks == 1 ? "" : "s", shuf__units_memory(text, bytes));
}

/* ---- The list ----------------------------------------------------------------- */

static const char *state_of(const shuf_lease_entry *e)
{
    return !e->ready ? "computing" : e->prefetch ? "prefetched" : "leased";
}

static void print_stream_entry(const shuf_lease_entry *e)
{
    char seed[SHUF__SEED_TEXT];
    printf("%s %s, %s, stream %" PRIu64 ", %" PRIu64 " value%s from %" PRIu64,
           shuf__distribution_text(e->distribution), shuf__dtype_text(e->dtype),
           shuf__seed_text(seed, e->key, e->seed), e->stream, e->count, e->count == 1 ? "" : "s",
           e->offset);
    if (e->method)
        printf(", method %s", shuf__method_text(e->method));
    if (e->distribution == SHUF_GAUSS)
        printf(", mean %g, std %g", e->mean, e->std);
    fputc('\n', stdout);
}

static void print_permutation_entry(const shuf_lease_entry *e)
{
    char seed[SHUF__SEED_TEXT];
    printf("%s, n %" PRIu64 ", %s", e->algorithm, e->n, shuf__seed_text(seed, e->key, e->seed));
    if (e->rows == 1)
        printf(", epoch %" PRIu64, e->epoch);
    else
        printf(", %" PRIu64 " epochs from %" PRIu64, e->rows, e->epoch);
    if (e->count != e->n)
        printf(", %" PRIu64 " value%s%s", e->count, shuf__plural(e->count),
               e->rows == 1 ? "" : " each");
    fputc('\n', stdout);
}

static void print_shuffle_entry(const shuf_lease_entry *e)
{
    char seed[SHUF__SEED_TEXT];
    printf("%s, %s%" PRIu64 " record%s of %" PRIu64 " byte%s, %s, epoch %" PRIu64 "\n",
           e->algorithm, e->inverse ? "back, " : "", e->n, shuf__plural(e->n), e->record,
           shuf__plural(e->record), shuf__seed_text(seed, e->key, e->seed), e->epoch);
}

static void print_exchange_entry(const shuf_lease_entry *e)
{
    char seed[SHUF__SEED_TEXT];
    printf("%s, %s%sexchange of %" PRIu64 " record%s, rank %" PRIu64 " of %" PRIu64
           ", %s, epoch %" PRIu64 "\n",
           e->algorithm, e->part ? "one-sided, " : "", e->inverse ? "back, " : "", e->n,
           shuf__plural(e->n), e->rank, e->world, shuf__seed_text(seed, e->key, e->seed), e->epoch);
}

static void print_request(const shuf_lease_entry *e)
{
    if (e->buffer)
        printf("buffer of %" PRIu64 " byte%s\n", e->count, shuf__plural(e->count));
    else if (e->world)
        print_exchange_entry(e);
    else if (e->record)
        print_shuffle_entry(e);
    else
        (e->distribution ? print_stream_entry : print_permutation_entry)(e);
}

static bool print_entry(void *context, const shuf_lease_entry *e)
{
    char user[SHUF__USER_TEXT], bytes[SHUF__UNITS_TEXT], age[SHUF__UNITS_TEXT];
    count_block(context, e);
    printf("%-16" PRIu64 " %-8" PRIu64 " %-10s %-9s %-16" PRIu64 " %-8s %-9s %-10s ", e->id, e->pid,
           shuf__user_text(user, e->uid), shuf_transport_name(e->transport), e->block,
           shuf__units_memory(bytes, e->block_bytes), shuf__units_time(age, e->age_ms * 1000000),
           state_of(e));
    print_request(e);
    return true;
}

static void add_permutation_fields(json_t *object, const shuf_lease_entry *e)
{
    shuf__json_text(object, "algorithm", e->algorithm);
    shuf__json_integer(object, "n", e->n);
    shuf__json_decimal(object, "epoch", e->epoch);
}

static void add_stream_fields(json_t *object, const shuf_lease_entry *e)
{
    shuf__json_text(object, "distribution", shuf__distribution_text(e->distribution));
    if (e->distribution == SHUF_GAUSS)
        shuf__json_text(object, "method", shuf__method_text(e->method));
    shuf__json_text(object, "dtype", shuf__dtype_text(e->dtype));
    shuf__json_decimal(object, "stream", e->stream);
    shuf__json_integer(object, "offset", e->offset);
    json_object_set_new(object, "mean", json_real(e->mean));
    json_object_set_new(object, "std", json_real(e->std));
}

static void add_request_fields(json_t *object, const shuf_lease_entry *e)
{
    json_object_set_new(object, "buffer", json_boolean(e->buffer));
    if (e->buffer)
        return;
    shuf__json_seed(object, e->key, e->seed);
    (e->distribution ? add_stream_fields : add_permutation_fields)(object, e);
    if (e->world) {
        shuf__json_integer(object, "rank", e->rank);
        shuf__json_integer(object, "world", e->world);
        shuf__json_integer(object, "part", e->part);
    } else if (e->record) {
        shuf__json_integer(object, "record", e->record);
    }
    if (e->world || e->record)
        json_object_set_new(object, "inverse", json_boolean(e->inverse));
}

static bool add_entry(void *context, const shuf_lease_entry *e)
{
    json_t *object = json_object();
    shuf__json_integer(object, "id", e->id);
    shuf__json_integer(object, "pid", e->pid);
    shuf__json_user(object, e->uid);
    shuf__json_text(object, "transport", shuf_transport_name(e->transport));
    json_object_set_new(object, "prefetch", json_boolean(e->prefetch));
    json_object_set_new(object, "ready", json_boolean(e->ready));
    shuf__json_seconds(object, "age_seconds", e->age_ms * 1000000);
    shuf__json_integer(object, "block", e->block);
    shuf__json_integer(object, "block_bytes", e->block_bytes);
    add_request_fields(object, e);
    shuf__json_integer(object, "rows", e->rows);
    shuf__json_integer(object, "count", e->count);
    json_array_append_new(context, object);
    return true;
}

static shuf_status list_json(shuf *handle)
{
    json_t *object = json_object(), *list = json_array();
    shuf_status status = shuf_leases(handle, add_entry, list);
    json_object_set_new(object, "leases", list);
    if (status == SHUF_OK)
        shuf__json_print_exact(object, stdout);
    else
        json_decref(object);
    return status;
}

static shuf_status list_lines(shuf *handle)
{
    struct totals totals = {0};
    printf("%-16s %-8s %-10s %-9s %-16s %-8s %-9s %-10s %s\n", "ID", "PID", "USER", "TRANSPORT",
           "BLOCK", "BYTES", "AGE", "STATE", "WHAT");
    shuf_status status = shuf_leases(handle, print_entry, &totals);
    if (status == SHUF_OK)
        print_totals(&totals);
    free(totals.blocks);
    return status;
}

int shuf__verb_leases(int argc, char **argv)
{
    struct shuf__daemon_options options;
    shuf *handle;
    shuf__daemon_options(argc, argv,
                         "Lists the leases of this user. Root and the daemon's user see "
                         "the leases of all users.",
                         &options);
    int code = shuf__connect_or_fail(&handle, &options);
    if (code == EX_OK) {
        shuf_status status = options.json ? list_json(handle) : list_lines(handle);
        if (status != SHUF_OK)
            code = shuf__fail_call(handle, status, &options);
    }
    shuf_close(handle);
    return code;
}
