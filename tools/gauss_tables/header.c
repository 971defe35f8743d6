/* SPDX-License-Identifier: MIT
 *
 * See header.h.
 */
#include "header.h"

#include "shuf/gauss_table.h"

#include <inttypes.h>

enum { M = SHUF__MAGNITUDES, HALF_LINE = SHUF__TABLES / 2 };

/* ---- Writing ----------------------------------------------------------------- */

static void write_head(const struct shuf__proof *proof, const char *made_by, const char *made_with,
                       FILE *to)
{
    fprintf(to,
            "/* SPDX-License-Identifier: MIT\n"
            " *\n"
            " * The tables of Gaussian streams. Do not edit; made by\n"
            " *\n"
            " *     %s\n"
            " *     (%s)\n"
            " *\n"
            " * How near a block of 32 values is to independent normal ones, computed from these\n"
            " * integers; tools/gauss_tables/README.md says how to read it:\n"
            " *\n",
            made_by, made_with);
    shuf__proof_write_summary(proof, " *     ", to);
    fputs(" */\n"
          "#ifndef SHUF_GAUSS_TABLE_H\n"
          "#define SHUF_GAUSS_TABLE_H\n"
          "\n"
          "#include \"inline.h\"\n"
          "\n"
          "/* clang-format off */\n",
          to);
}

static void write_table(const shuf__tables *tables, FILE *to)
{
    fputs("/* [index][table]; [index + 128] is the opposite of [index]. */\n"
          "SHUF_CONSTANT int32_t shuf_gauss_table[256][16] = {\n",
          to);
    for (int j = 0; j < 2 * M; j++)
        for (int t = 0; t < SHUF__TABLES; t++) {
            const int32_t number = j < M ? tables->of[t][j] : -tables->of[t][j - M];
            const char *before = t == 0 ? "    {" : t % HALF_LINE == 0 ? "     " : " ";
            const char *after = t == SHUF__TABLES - 1 ? "},\n" : t % HALF_LINE == 7 ? ",\n" : ",";
            fprintf(to, "%s%7" PRId32 "%s", before, number, after);
        }
    fputs("};\n"
          "/* clang-format on */\n"
          "\n"
          "#endif\n",
          to);
}

bool shuf__header_write(const shuf__tables *tables, const struct shuf__proof *proof,
                        const char *made_by, const char *made_with, FILE *to)
{
    write_head(proof, made_by, made_with, to);
    write_table(tables, to);
    return fflush(to) == 0 && !ferror(to);
}

/* ---- Reading ----------------------------------------------------------------- */

bool shuf__header_read(shuf__tables *tables)
{
    for (int j = 0; j < M; j++)
        for (int t = 0; t < SHUF__TABLES; t++) {
            const int32_t number = shuf_gauss_table[j][t], opposite = shuf_gauss_table[j + M][t];
            if (number < 0 || opposite != -number) {
                fprintf(stderr,
                        "gauss-tables: numbers %d and %d of table %d are %" PRId32 " and %" PRId32
                        ": expected opposites, the first not negative\n",
                        j, j + M, t, number, opposite);
                return false;
            }
            tables->of[t][j] = number;
        }
    return true;
}
