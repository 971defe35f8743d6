/* SPDX-License-Identifier: MIT
 *
 * See proof.h.
 */
#include "proof.h"

#include <inttypes.h>

enum { PAIRED = 4 }; /* orders to twice this one are right in every pair */

/* ---- Figures ----------------------------------------------------------------- */

static void look_at_pair(const shuf__tables *tables, int pair, struct shuf__proof *proof)
{
    const shuf__series one = shuf__cumulants(tables->of[pair], SHUF__MAGNITUDES);
    const shuf__series other = shuf__cumulants(tables->of[pair + SHUF__PAIRS], SHUF__MAGNITUDES);
    for (int i = 1; i <= PAIRED; i++) {
        const shuf__real cumulant = (one.of[i] + other.of[i]) / shuf__real_power(2, i);
        if (i == 1)
            proof->variance = fmax(proof->variance, fabs((double)(cumulant - 1)));
        else
            proof->residue =
                fmax(proof->residue, fabs((double)(cumulant / shuf__hermite_length(2 * i))));
    }
}

struct shuf__proof shuf__prove(const shuf__tables *tables, const struct shuf__coefficients *by)
{
    struct shuf__proof proof = {.sum = shuf__cumulants_of_tables(tables)};
    const struct shuf__coefficients by32 = shuf__law_float(by);
    proof.defects = shuf__law_defects(&proof.sum, by);
    proof.defects32 = shuf__law_defects(&proof.sum, &by32);
    proof.delta = shuf__law_delta(&proof.defects);
    proof.delta32 = shuf__law_delta(&proof.defects32);
    proof.room = shuf__law_room(tables);
    for (int pair = 0; pair < SHUF__PAIRS; pair++)
        look_at_pair(tables, pair, &proof);
    for (int t = 0; t < SHUF__TABLES; t++)
        for (int j = 0; j < SHUF__MAGNITUDES; j++)
            if (proof.largest < tables->of[t][j])
                proof.largest = tables->of[t][j];
    return proof;
}

/* ---- For people -------------------------------------------------------------- */

void shuf__proof_write(const struct shuf__proof *p, const char *margin, FILE *to)
{
    fprintf(to, "%s%-20s %11s %11s\n", margin, "E He_k / sqrt(k!)", "f64", "f32");
    for (int i = 1; i < SHUF__ORDERS; i++)
        fprintf(to, "%s  k = %-14d %11.2e %11.2e\n", margin, 2 * i, (double)p->defects.of[i],
                (double)p->defects32.of[i]);
    fprintf(to, "%s%-20s %11.3e %11.3e\n", margin, "delta, k to 16", p->delta, p->delta32);
    fprintf(to, "%s%-20s %11.2e %11.2e\n", margin, "N = (4 / delta)^2", 16 / p->delta / p->delta,
            16 / p->delta32 / p->delta32);
    fprintf(to, "%ssum of squares: 2^43 - %" PRId64 "\n", margin, p->room);
    fprintf(to, "%spairs: |variance / 2^33 - 1| at most %.1e,\n", margin, p->variance);
    fprintf(to, "%s  |kappa_k| / sqrt(k!) of orders 4, 6, 8 at most %.1e\n", margin, p->residue);
    fprintf(to, "%slargest entry: %" PRId32 "\n", margin, p->largest);
}

static int fault(const char *what, double is, double limit)
{
    if (is < limit)
        return 0;
    fprintf(stderr, "gauss-tables: %s %.3e: expected below %.1e\n", what, is, limit);
    return 1;
}

static int fault_of_room(int64_t room)
{
    if (room >= SHUF__ROOM_LEAST && room <= SHUF__ROOM_MOST)
        return 0;
    fprintf(stderr,
            "gauss-tables: the sum of squares, 2^43 - %" PRId64 ": expected 2^43 less %d to %d\n",
            room, SHUF__ROOM_LEAST, SHUF__ROOM_MOST);
    return 1;
}

int shuf__proof_faults(const struct shuf__proof *p)
{
    return fault("delta", p->delta, SHUF__DELTA_LIMIT) +
           fault("delta of f32", p->delta32, SHUF__DELTA32_LIMIT) + fault_of_room(p->room) +
           fault("a pair's |variance / 2^33 - 1|", p->variance, SHUF__PAIR_LIMIT) +
           fault("a pair's |kappa_k| / sqrt(k!)", p->residue, SHUF__PAIR_LIMIT) +
           fault("the largest magnitude", p->largest, SHUF__LARGEST + 1.0);
}
