/* SPDX-License-Identifier: MIT
 *
 * See dtype.h.
 */
#include "dtype.h"

#include "nearest.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct traits {
    const char *name;
    unsigned bytes;
};

static const struct traits table[SHUF__DTYPES] = {[SHUF_AUTO] = {.name = "auto"},
#define X(name, number, text, bytes) [number] = {text, bytes},
                                                  SHUF_DTYPE_MAP(X)
#undef X
};

/* The types of a permutation, and of each distribution. */
static const unsigned sets[] = {[SHUF_DISTRIBUTION_NONE] =
                                    1U << SHUF_U32 | 1U << SHUF_U64 | 1U << SHUF_I64,
#define X(name, number, text, parameters, types) [number] = types,
                                SHUF_DISTRIBUTION_MAP(X)
#undef X
};

static const struct traits *traits_of(int dtype)
{
    return dtype >= 0 && dtype < SHUF__DTYPES ? &table[dtype] : NULL;
}

const char *shuf__dtype_name(int dtype)
{
    const struct traits *traits = traits_of(dtype);
    return traits ? traits->name : NULL;
}

const char *shuf__dtype_label(int dtype, char number[SHUF__DTYPE_TEXT])
{
    const char *name = shuf__dtype_name(dtype);
    snprintf(number, SHUF__DTYPE_TEXT, "%d", dtype);
    return name ? name : number;
}

unsigned shuf__dtype_bytes(int dtype)
{
    const struct traits *traits = traits_of(dtype);
    return traits ? traits->bytes : 0;
}

bool shuf__dtype_is_allowed(int dtype, enum shuf__distribution distribution)
{
    return dtype >= 0 && dtype < SHUF__DTYPES && (sets[distribution] >> dtype & 1);
}

/* ---- Names ---- */

static const struct {
    const char *name;
    shuf_dtype dtype;
} aliases[] = {
    {"uint32", SHUF_U32},  {"u4", SHUF_U32},          {"<u4", SHUF_U32},    {"uint64", SHUF_U64},
    {"<u8", SHUF_U64},     {"int64", SHUF_I64},       {"long", SHUF_I64},   {"<i8", SHUF_I64},
    {"float64", SHUF_F64}, {"double", SHUF_F64},      {"f8", SHUF_F64},     {"<f8", SHUF_F64},
    {"float32", SHUF_F32}, {"torch.float", SHUF_F32}, {"single", SHUF_F32}, {"f4", SHUF_F32},
    {"<f4", SHUF_F32},     {"float16", SHUF_F16},     {"half", SHUF_F16},   {"f2", SHUF_F16},
    {"<f2", SHUF_F16},     {"bfloat16", SHUF_BF16},   {"fp64", SHUF_F64},   {"fp32", SHUF_F32},
    {"fp16", SHUF_F16},
};

/* Modules whose names of types may have the name of the module before them: torch.int64. */
static const char *const modules[] = {"torch.", "numpy.", "np."};

/* Names that are refused, because they mean types of other sizes elsewhere. */
static const struct {
    const char *name;
    unsigned set; /* the types that may be meant, one bit for each */
    const char *hint;
} ambiguous[] = {
    {"u8", 1U << SHUF_U64, "NumPy's u8 (8 bytes) is u64 or <u8 here"},
    {"i8", 1U << SHUF_I64, "NumPy's i8 (8 bytes) is i64 or <i8 here"},
    {"float", 1U << SHUF_F64 | 1U << SHUF_F32,
     "float has 32 bits in C and PyTorch, 64 in Python and NumPy"},
};

enum {
    ALIASES = sizeof aliases / sizeof *aliases,
    SHORTEST = 3, /* a shorter name is near to every other name */
};

unsigned shuf__dtype_set(enum shuf__distribution distribution)
{
    return sets[distribution];
}

static const char *without_module(const char *text)
{
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (strncmp(text, modules[i], strlen(modules[i])) == 0)
            return text + strlen(modules[i]);
    return text;
}

static shuf_dtype find_name(const char *text)
{
    for (int dtype = SHUF_AUTO + 1; dtype < SHUF__DTYPES; dtype++)
        if (strcmp(table[dtype].name, text) == 0)
            return (shuf_dtype)dtype;
    for (int i = 0; i < ALIASES; i++)
        if (strcmp(aliases[i].name, text) == 0)
            return aliases[i].dtype;
    return SHUF_AUTO;
}

static shuf_dtype find_dtype(const char *text)
{
    const shuf_dtype found = find_name(text);
    return found == SHUF_AUTO ? find_name(without_module(text)) : found;
}

/* "f64, f32, f16 or bf16" */
static void list_set(unsigned set, char *text, size_t size)
{
    size_t used = 0;
    for (int dtype = SHUF_AUTO + 1; dtype < SHUF__DTYPES && used < size; dtype++) {
        if (!(set >> dtype & 1))
            continue;
        const char *between = used == 0 ? "" : set >> dtype == 1 ? " or " : ", ";
        used += (size_t)snprintf(text + used, size - used, "%s%s", between, table[dtype].name);
    }
}

static void offer_names(struct shuf__nearest *nearest, unsigned set)
{
    for (int dtype = SHUF_AUTO + 1; dtype < SHUF__DTYPES; dtype++)
        if (set >> dtype & 1)
            shuf__nearest_offer(nearest, table[dtype].name);
    for (int i = 0; i < ALIASES; i++)
        if (set >> aliases[i].dtype & 1)
            shuf__nearest_offer(nearest, aliases[i].name);
}

/* Writes advice for an unknown name. */
static void set_hint(const char *text, unsigned set, char hint[SHUF__HINT])
{
    struct shuf__nearest nearest = {.text = text};
    *hint = '\0';
    for (size_t i = 0; i < sizeof ambiguous / sizeof *ambiguous; i++)
        if (strcmp(ambiguous[i].name, text) == 0 && (set & ambiguous[i].set))
            snprintf(hint, SHUF__HINT, "; %s", ambiguous[i].hint);
    if (strlen(text) < SHORTEST || *hint)
        return;
    offer_names(&nearest, set);
    shuf__nearest_hint(&nearest, hint);
}

shuf_status shuf__dtype_parse(const char *field, const char *text, unsigned set, shuf_dtype *dtype,
                              struct shuf__error *error)
{
    char names[64] = "", hint[SHUF__HINT] = "";
    const shuf_dtype found = find_dtype(text);
    if (set >> found & 1) {
        *dtype = found;
        return SHUF_OK;
    }
    list_set(set, names, sizeof names);
    if (found == SHUF_AUTO) /* not a known type, so the name may be mistyped */
        set_hint(without_module(text), set, hint);
    return shuf__fail(error, SHUF_INVALID, "%s %.64s: expected %s%s", field, *text ? text : "''",
                      names, hint);
}
