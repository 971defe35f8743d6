/* SPDX-License-Identifier: MIT
 *
 * `shufctl leases`: lists the leases of results.
 */
#include "connect.h"
#include "error.h"
#include "exit.h"
#include "json.h"
#include "summary.h"
#include "units.h"
#include "user.h"
#include "verb_options.h"
#include "verbs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>

/* ---- Totals ---- */

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

/* ---- The list ---- */

static const char *state_of(const shuf_lease_entry *e)
{
    return !e->ready ? "computing" : e->prefetch ? "prefetched" : "leased";
}

static const char *name_of(const char *algorithm)
{
    return algorithm ? algorithm : "";
}

static void print_numbers(const shuf_numbers *s)
{
    char seed[SHUF__SEED_TEXT];
    printf("%s %s, %s, stream %" PRIu64 ", %" PRIu64 " value%s from %" PRIu64,
           shuf__distribution_text(s->distribution), shuf__dtype_text(s->dtype),
           shuf__seed_text(seed, s->key, s->seed), s->stream, s->count, shuf__plural(s->count),
           s->offset);
    if (s->method)
        printf(", method %s", shuf__method_text(s->method));
    if (s->distribution == SHUF_GAUSS)
        printf(", mean %g, std %g", s->mean, s->std);
    if (s->bound != 0)
        printf(", bound %" PRIu64, s->bound);
    fputc('\n', stdout);
}

static void print_permutation(const shuf_permutation *p, uint64_t count)
{
    char seed[SHUF__SEED_TEXT];
    printf("%s, n %" PRIu64 ", %s", name_of(p->algorithm), p->n,
           shuf__seed_text(seed, p->key, p->seed));
    if (p->epochs == 1)
        printf(", epoch %" PRIu64, p->epoch);
    else
        printf(", %" PRIu64 " epochs from %" PRIu64, p->epochs, p->epoch);
    if (p->window)
        printf(", windows of %" PRIu64 " chunks of %" PRIu64, p->window, p->chunk);
    if (count != p->n)
        printf(", %" PRIu64 " value%s%s", count, shuf__plural(count),
               p->epochs == 1 ? "" : " each");
    fputc('\n', stdout);
}

static void print_records(const shuf_records *r)
{
    char seed[SHUF__SEED_TEXT];
    printf("%s, %s%" PRIu64 " record%s of %" PRIu64 " byte%s, %s, epoch %" PRIu64 "\n",
           name_of(r->algorithm), r->inverse ? "back, " : "", r->n, shuf__plural(r->n), r->record,
           shuf__plural(r->record), shuf__seed_text(seed, r->key, r->seed), r->epoch);
}

static void print_ranks(const shuf_ranks *r)
{
    char seed[SHUF__SEED_TEXT];
    printf("%s, %s%sexchange of %" PRIu64 " record%s, rank %" PRIu64 " of %" PRIu64
           ", %s, epoch %" PRIu64 "\n",
           name_of(r->algorithm), r->part ? "one-sided, " : "", r->inverse ? "back, " : "", r->n,
           shuf__plural(r->n), r->rank, r->world, shuf__seed_text(seed, r->key, r->seed), r->epoch);
}

static void print_request(const shuf_lease_entry *e)
{
    const shuf_request *r = &e->request;
    switch (r->kind) {
    case SHUF_PERMUTATION:
        print_permutation(&r->permutation, e->count);
        break;
    case SHUF_NUMBERS:
        print_numbers(&r->numbers);
        break;
    case SHUF_RANKS:
        print_ranks(&r->ranks);
        break;
    case SHUF_RECORDS:
        print_records(&r->records);
        break;
    case SHUF_BUFFER:
        printf("buffer of %" PRIu64 " byte%s\n", r->bytes, shuf__plural(r->bytes));
        break;
    case SHUF_OTHER_KIND:
        puts("a kind of result that this shufctl does not know");
    }
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

static void add_permutation(json_t *object, const char *algorithm, uint64_t n, const char *key,
                            uint64_t seed, uint64_t epoch)
{
    shuf__json_seed(object, key, seed);
    shuf__json_text(object, "algorithm", algorithm);
    shuf__json_integer(object, "n", n);
    shuf__json_decimal(object, "epoch", epoch);
}

static void add_numbers(json_t *object, const shuf_numbers *s)
{
    shuf__json_seed(object, s->key, s->seed);
    shuf__json_text(object, "distribution", shuf__distribution_text(s->distribution));
    if (s->distribution == SHUF_GAUSS)
        shuf__json_text(object, "method", shuf__method_text(s->method));
    shuf__json_text(object, "dtype", shuf__dtype_text(s->dtype));
    shuf__json_decimal(object, "stream", s->stream);
    shuf__json_integer(object, "offset", s->offset);
    json_object_set_new(object, "mean", json_real(s->mean));
    json_object_set_new(object, "std", json_real(s->std));
    shuf__json_decimal(object, "bound", s->bound);
}

static void add_ranks(json_t *object, const shuf_ranks *r)
{
    add_permutation(object, name_of(r->algorithm), r->n, r->key, r->seed, r->epoch);
    shuf__json_integer(object, "rank", r->rank);
    shuf__json_integer(object, "world", r->world);
    shuf__json_integer(object, "part", r->part);
    json_object_set_new(object, "inverse", json_boolean(r->inverse));
}

static void add_records(json_t *object, const shuf_records *r)
{
    add_permutation(object, name_of(r->algorithm), r->n, r->key, r->seed, r->epoch);
    shuf__json_integer(object, "record", r->record);
    json_object_set_new(object, "inverse", json_boolean(r->inverse));
}

static void add_order(json_t *object, const shuf_permutation *p)
{
    add_permutation(object, name_of(p->algorithm), p->n, p->key, p->seed, p->epoch);
    shuf__json_windows(object, p);
}

static void add_request_fields(json_t *object, const shuf_request *r)
{
    const shuf_permutation *p = &r->permutation;
    json_object_set_new(object, "buffer", json_boolean(r->kind == SHUF_BUFFER));
    if (r->kind == SHUF_PERMUTATION)
        add_order(object, p);
    else if (r->kind == SHUF_NUMBERS)
        add_numbers(object, &r->numbers);
    else if (r->kind == SHUF_RANKS)
        add_ranks(object, &r->ranks);
    else if (r->kind == SHUF_RECORDS)
        add_records(object, &r->records);
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
    add_request_fields(object, &e->request);
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
