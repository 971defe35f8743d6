/* SPDX-License-Identifier: MIT
 *
 * See header.h.
 */
#include "header.h"

#include "shuf/gauss_table.h"

#include <inttypes.h>

enum { M = SHUF__MAGNITUDES, HALF_LINE = SHUF__TABLES / 2 };

_Static_assert(SHUF_GAUSS_UNIT == SHUF__UNIT, "the proof counts in the generator's unit");

/* ---- Writing ----------------------------------------------------------------- */

static void write_head(const struct shuf__proof *proof, const char *made_by, const char *made_with,
                       FILE *to)
{
    fprintf(
        to,
        "/* SPDX-License-Identifier: MIT\n"
        " *\n"
        " * The tables and the coefficients of Gaussian streams. Do not edit; made by\n"
        " *\n"
        " *     %s\n"
        " *     (%s)\n"
        " *\n"
        " * An output is A S + B S' + C c: S and S' are sums of two draws from each table, c is "
        "one\n"
        " * of the odd numbers from -%d to %d. One in f32 is A_F32 S + B_F32 S'. How far the\n"
        " * outputs' laws are from the normal one, computed exactly; tools/gauss_tables/README.md\n"
        " * says how to read it:\n"
        " *\n",
        made_by, made_with, SHUF__STEPS, SHUF__STEPS);
    shuf__proof_write(proof, " *     ", to);
    fputs(" */\n"
          "#ifndef SHUF_GAUSS_TABLE_H\n"
          "#define SHUF_GAUSS_TABLE_H\n"
          "\n"
          "#include <stdint.h>\n"
          "\n"
          "/* clang-format off */\n",
          to);
}

static void write_coefficients(const struct shuf__rounded *r, FILE *to)
{
    fprintf(to, "#define SHUF_GAUSS_UNIT %d /* integers to a standard deviation of one table */\n",
            SHUF__UNIT);
    fprintf(to, "#define SHUF_GAUSS_A %a /* of s */\n", r->a);
    fprintf(to, "#define SHUF_GAUSS_B %a /* of s' */\n", r->b);
    fprintf(to, "#define SHUF_GAUSS_C_HIGH %a /* of c, at most 24 bits of it */\n", r->c_high);
    fprintf(to, "#define SHUF_GAUSS_C_LOW %a /* and the rest */\n", r->c_low);
    fprintf(to, "#define SHUF_GAUSS_A_F32 %af /* of s, without c */\n", (double)r->a32);
    fprintf(to, "#define SHUF_GAUSS_B_F32 %af /* of s' */\n\n", (double)r->b32);
}

static void write_table(const shuf__tables *tables, FILE *to)
{
    fputs("/* [index][table]; [index + 128] is the opposite of [index]. */\n"
          "static const int32_t shuf_gauss_table[256][16] = {\n",
          to);
    for (int j = 0; j < 2 * M; j++)
        for (int t = 0; t < SHUF__TABLES; t++) {
            const int32_t entry = j < M ? tables->of[t][j] : -tables->of[t][j - M];
            const char *before = t == 0 ? "    {" : t % HALF_LINE == 0 ? "     " : " ";
            const char *after = t == SHUF__TABLES - 1 ? "},\n" : t % HALF_LINE == 7 ? ",\n" : ",";
            fprintf(to, "%s%7" PRId32 "%s", before, entry, after);
        }
    fputs("};\n"
          "/* clang-format on */\n"
          "\n"
          "#endif\n",
          to);
}

bool shuf__header_write(const shuf__tables *tables, const struct shuf__rounded *rounded,
                        const char *made_by, const char *made_with, FILE *to)
{
    const struct shuf__proof proof = shuf__prove(tables, rounded);
    write_head(&proof, made_by, made_with, to);
    write_coefficients(rounded, to);
    write_table(tables, to);
    return fflush(to) == 0 && !ferror(to);
}

/* ---- Reading ----------------------------------------------------------------- */

bool shuf__header_read(shuf__tables *tables, struct shuf__rounded *rounded)
{
    *rounded = (struct shuf__rounded){
        SHUF_GAUSS_A,     SHUF_GAUSS_B,     SHUF_GAUSS_C_HIGH,
        SHUF_GAUSS_C_LOW, SHUF_GAUSS_A_F32, SHUF_GAUSS_B_F32,
    };
    if ((float)rounded->c_high != rounded->c_high) {
        fprintf(stderr, "gauss-tables: C_HIGH %a: expected at most 24 bits\n", rounded->c_high);
        return false;
    }
    for (int j = 0; j < M; j++)
        for (int t = 0; t < SHUF__TABLES; t++) {
            const int32_t entry = shuf_gauss_table[j][t], opposite = shuf_gauss_table[j + M][t];
            if (entry < 0 || opposite != -entry) {
                fprintf(stderr,
                        "gauss-tables: entries %d and %d of table %d are %" PRId32 " and %" PRId32
                        ": expected opposites, the first not negative\n",
                        j, j + M, t, entry, opposite);
                return false;
            }
            tables->of[t][j] = entry;
        }
    return true;
}
