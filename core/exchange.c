/* SPDX-License-Identifier: MIT
 *
 * EXCHANGE: the plan by which a rank exchanges its records with others.
 */
#include "algorithm.h"
#include "kind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sizes ---- */

struct shuf__range shuf__equal_part(uint64_t n, uint64_t parts, uint64_t index)
{
    const uint64_t less = n / parts, larger = n % parts;
    return (struct shuf__range){index * less + (index < larger ? index : larger),
                                less + (index < larger)};
}

struct shuf__range shuf__plan_part(const struct shuf__plan *plan, uint64_t rank, bool output)
{
    const uint64_t *sizes = output && plan->output ? plan->output : plan->input;
    uint64_t first = 0;
    if (!sizes)
        return shuf__equal_part(plan->permutation.n, plan->world, rank);
    for (uint64_t r = 0; r < rank; r++)
        first += sizes[r];
    return (struct shuf__range){first, sizes[rank]};
}

static uint64_t windows_with(const struct shuf__plan *plan, unsigned bits)
{
    uint64_t count = 0;
    for (uint64_t r = 0; r < plan->world; r++) {
        const uint64_t records = plan->input
                                     ? plan->input[r]
                                     : shuf__equal_part(plan->permutation.n, plan->world, r).count;
        count += shuf__windows_of(records, bits);
    }
    return count;
}

struct shuf__windows shuf__plan_windows(const struct shuf__plan *plan)
{
    struct shuf__windows w = {.bits = SHUF__WINDOW_BITS};
    while ((w.count = windows_with(plan, w.bits)) > SHUF__WINDOWS_MOST)
        w.bits++;
    return w;
}

uint64_t shuf__plan_parts(const struct shuf__plan *plan)
{
    const uint64_t places = shuf__plan_part(plan, plan->rank, true).count;
    return places ? (places - 1) / plan->part + 1 : 1;
}

/* Of both sides: the counts to and from each rank, then a number for each record of the input and
 * the output. One-sided: for each part the begins of its windows and its end, then two numbers for
 * each record of the output. */
static uint64_t numbers_of(const struct shuf__plan *plan)
{
    if (plan->part)
        return shuf__plan_parts(plan) * (shuf__plan_windows(plan).count + 1) +
               2 * shuf__plan_part(plan, plan->rank, true).count;
    return 2 * plan->world + shuf__plan_part(plan, plan->rank, false).count +
           shuf__plan_part(plan, plan->rank, true).count;
}

/* ---- Lists of sizes ---- */

static uint64_t mix(uint64_t digest, uint64_t value, uint64_t factor)
{
    digest = (digest ^ value) * factor;
    return digest ^ digest >> 32;
}

/* No size is UINT64_MAX, which stands for a missing list. */
static void digest_list(const uint64_t *list, uint64_t world, uint64_t digest[2])
{
    const uint64_t missing = UINT64_MAX;
    for (uint64_t r = 0; r < (list ? world : 1); r++) {
        const uint64_t value = list ? list[r] : missing;
        digest[0] = mix(digest[0], value, UINT64_C(0x9e3779b97f4a7c15));
        digest[1] = mix(digest[1], value, UINT64_C(0xd1342543de82ef95));
    }
}

/* A user could make two lists with one digest. It would get the plan of its own other list, because
 * users share no results. */
static void digest_lists(struct shuf__plan *plan)
{
    plan->digest[0] = 1;
    plan->digest[1] = 2;
    digest_list(plan->input, plan->world, plan->digest);
    digest_list(plan->output, plan->world, plan->digest);
}

static bool copy_list(const uint64_t **list, uint64_t world)
{
    uint64_t *copy;
    if (!*list)
        return true;
    if ((copy = malloc(world * sizeof *copy)))
        memcpy(copy, *list, world * sizeof *copy);
    *list = copy;
    return copy != NULL;
}

bool shuf__request_own(struct shuf__request *request)
{
    struct shuf__plan *plan = &request->plan;
    const uint64_t *output = plan->output;
    if (request->kind != SHUF__EXCHANGE)
        return true;
    plan->output = NULL;
    if (!copy_list(&plan->input, plan->world))
        return false;
    plan->output = output;
    if (copy_list(&plan->output, plan->world))
        return true;
    shuf__request_disown(request);
    return false;
}

void shuf__request_disown(struct shuf__request *request)
{
    struct shuf__plan *plan = &request->plan;
    if (request->kind != SHUF__EXCHANGE)
        return;
    free((void *)(uintptr_t)plan->input);
    free((void *)(uintptr_t)plan->output);
    plan->input = plan->output = NULL;
}

/* ---- Checks ---- */

static shuf_status check_permutation(struct shuf__permutation *p, struct shuf__error *error)
{
    if (p->n == 0 || p->n > SHUF__N_MAX)
        return shuf__fail(error, SHUF_INVALID, "n %" PRIu64 ": expected 1 to 2^62 (%" PRIu64 ")",
                          p->n, SHUF__N_MAX);
    if (!shuf_algorithm_has_random_access(p->algorithm))
        return shuf__fail(error, SHUF_INVALID,
                          "algorithm %s: expected primefold, which computes any position by itself",
                          shuf__algorithm_name(p->algorithm));
    p->rows = p->stride = 1;
    p->offset = 0;
    p->count = p->n;
    return SHUF_OK;
}

static shuf_status check_rank(const struct shuf__plan *plan, struct shuf__error *error)
{
    const uint64_t most = plan->input || plan->output ? SHUF__RANKS_SIZED : SHUF__RANKS_EQUAL;
    if (plan->world == 0 || plan->world > most)
        return shuf__fail(error, SHUF_INVALID, "world %" PRIu64 ": expected 1 to %" PRIu64 "%s",
                          plan->world, most, most == SHUF__RANKS_SIZED ? " with sizes" : "");
    if (plan->rank >= plan->world)
        return shuf__fail(error, SHUF_INVALID,
                          "rank %" PRIu64 ": expected less than world = %" PRIu64, plan->rank,
                          plan->world);
    return SHUF_OK;
}

static shuf_status check_sizes(const char *field, const uint64_t *sizes, uint64_t world, uint64_t n,
                               struct shuf__error *error)
{
    uint64_t sum = 0;
    for (uint64_t r = 0; sizes && r < world; r++) {
        if (sizes[r] > n - sum)
            return shuf__fail(error, SHUF_INVALID,
                              "%s[%" PRIu64 "] %" PRIu64 ": expected at most %" PRIu64
                              ", the rest of n = %" PRIu64,
                              field, r, sizes[r], n - sum, n);
        sum += sizes[r];
    }
    if (!sizes || sum == n)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "%s: %" PRIu64 " size%s with the sum %" PRIu64 ", expected n = %" PRIu64,
                      field, world, shuf__plural(world), sum, n);
}

static shuf_status check_one_sided(const struct shuf__plan *plan, struct shuf__error *error)
{
    if (!plan->part)
        return SHUF_OK;
    if (plan->part % SHUF__PART_UNIT || plan->part > SHUF__PART_MOST)
        return shuf__fail(error, SHUF_INVALID,
                          "part %" PRIu64 ": expected a multiple of %d up to 2^31, or 0 for a plan "
                          "of both sides",
                          plan->part, SHUF__PART_UNIT);
    if (plan->world > SHUF__RANKS_ONE_SIDED)
        return shuf__fail(error, SHUF_INVALID,
                          "world %" PRIu64 ": expected at most %d for a one-sided plan",
                          plan->world, SHUF__RANKS_ONE_SIDED);
    for (uint64_t r = 0; r < plan->world; r++)
        if (shuf__plan_part(plan, r, false).count > SHUF__ONE_SIDED_MOST)
            return shuf__fail(error, SHUF_INVALID,
                              "input of rank %" PRIu64 ", %" PRIu64 " records: expected at most "
                              "2^32 for a one-sided plan",
                              r, shuf__plan_part(plan, r, false).count);
    return SHUF_OK;
}

static shuf_status choose_dtype(struct shuf__request *request, struct shuf__error *error)
{
    const struct shuf__plan *plan = &request->plan;
    const uint64_t in = shuf__plan_part(plan, plan->rank, false).count;
    const uint64_t out = shuf__plan_part(plan, plan->rank, true).count;
    request->dtype = plan->part || (in <= UINT32_MAX && out <= UINT32_MAX) ? SHUF_U32 : SHUF_U64;
    if (2 * plan->world + in + out <= INT64_MAX / 8)
        return SHUF_OK;
    return shuf__fail(error, SHUF_NO_MEMORY,
                      "n %" PRIu64 ": the plan of rank %" PRIu64
                      " passes 2^63 bytes, expected more ranks",
                      plan->permutation.n, plan->rank);
}

shuf_status shuf__exchange_make(struct shuf__request *request, struct shuf__error *error)
{
    struct shuf__plan *plan = &request->plan;
    const uint64_t n = plan->permutation.n;
    request->kind = SHUF__EXCHANGE;
    if (check_permutation(&plan->permutation, error) ||
        shuf__refuse_windows(&plan->permutation, "an exchange", error) || check_rank(plan, error) ||
        check_sizes("input", plan->input, plan->world, n, error) ||
        check_sizes("output", plan->output, plan->world, n, error) ||
        check_one_sided(plan, error) || choose_dtype(request, error))
        return error->status;
    plan->numbers = numbers_of(plan);
    digest_lists(plan);
    return SHUF_OK;
}

/* ---- The kind ---- */

static struct shuf__shape shape(const struct shuf__request *request)
{
    return shuf__shape_of(1, request->plan.numbers, shuf__dtype_bytes((int)request->dtype));
}

static int compare_plans(const struct shuf__plan *a, const struct shuf__plan *b)
{
    SHUF__RETURN_UNLESS_EQUAL(a->rank, b->rank);
    SHUF__RETURN_UNLESS_EQUAL(a->world, b->world);
    SHUF__RETURN_UNLESS_EQUAL(a->inverse, b->inverse);
    SHUF__RETURN_UNLESS_EQUAL(a->part, b->part);
    SHUF__RETURN_UNLESS_EQUAL(a->digest[0], b->digest[0]);
    SHUF__RETURN_UNLESS_EQUAL(a->digest[1], b->digest[1]);
    return shuf__permutation_compare(&a->permutation, &b->permutation);
}

static int compare(const struct shuf__request *a, const struct shuf__request *b)
{
    return compare_plans(&a->plan, &b->plan);
}

static void describe(const struct shuf__request *request, bool all, char *text)
{
    const struct shuf__plan *plan = &request->plan;
    snprintf(text, SHUF__REQUEST_TEXT,
             "exchange n %" PRIu64 ", rank %" PRIu64 " of %" PRIu64 "%s%s", plan->permutation.n,
             plan->rank, plan->world, plan->inverse ? ", inverse" : "",
             plan->part ? ", one-sided" : "");
    if (!all)
        return;
    shuf__add_permutation(request, text);
    if (plan->part)
        SHUF__ADD(text, ", parts of %" PRIu64, plan->part);
}

const struct shuf__kind shuf__exchange_kind = {
    .name = "exchange",
    .has_permutation = true,
    .shape = shape,
    .compare = compare,
    .describe = describe,
};
