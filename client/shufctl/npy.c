/* SPDX-License-Identifier: MIT
 *
 * See npy.h, and numpy/lib/format.py: magic, version, a 16-bit length, then a Python dict with
 * blanks as padding, so that the data is aligned.
 */
#include "npy.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX = 10, ALIGNMENT = 64 };

static const char *description(const shuf_shape *shape)
{
    switch (shape->dtype) {
    case SHUF_F64:
        return "<f8";
    case SHUF_F32:
        return "<f4";
    case SHUF_F16:
        return "<f2";
    case SHUF_I64:
        return "<i8";
    default:
        assert(shape->dtype != SHUF_BF16);
        return shape->width == 4 ? "<u4" : "<u8";
    }
}

size_t shuf__npy_header(const shuf_shape *shape, bool batch, char out[SHUF__NPY_HEADER_MAX])
{
    char rows[24] = "";
    if (batch)
        snprintf(rows, sizeof rows, "%" PRIu64 ", ", shape->rows);
    int text = snprintf(out + PREFIX, SHUF__NPY_HEADER_MAX - PREFIX,
                        "{'descr': '%s', 'fortran_order': False, 'shape': (%s%" PRIu64 "%s), }",
                        description(shape), rows, shape->count, batch ? "" : ",");
    size_t used = PREFIX + (size_t)text;
    size_t size = (used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; /* 1: the newline */
    assert(size <= SHUF__NPY_HEADER_MAX);
    memset(out + used, ' ', size - used);
    out[size - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((size - PREFIX) & 0xff);
    out[9] = (char)((size - PREFIX) >> 8);
    return size;
}

/* ---- Reading ---- */

enum { NESTED_MAX = 32, WORD = 64 };

struct cursor {
    const char *at, *end;
    char *why; /* not empty: the parser has failed */
};

static bool fail_parse(struct cursor *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool fail_parse(struct cursor *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!*c->why)
        vsnprintf(c->why, SHUF__NPY_WHY, format, args);
    va_end(args);
    return false;
}

/* ---- Tokens ---- */

static char peek(struct cursor *c)
{
    while (c->at < c->end && isspace((unsigned char)*c->at))
        c->at++;
    return c->at < c->end ? *c->at : '\0';
}

static bool accept(struct cursor *c, char mark)
{
    if (peek(c) != mark)
        return false;
    c->at++;
    return true;
}

static bool expect(struct cursor *c, char mark)
{
    return accept(c, mark) || fail_parse(c, "header: expected '%c' at \"%.*s\"", mark,
                                         (int)(c->end - c->at < 16 ? c->end - c->at : 16), c->at);
}

/* Truncates a string that is too long for `word`. Only the name of a field can be so long. */
static bool read_string(struct cursor *c, char word[WORD])
{
    const char quote = peek(c);
    size_t length = 0;
    if (quote != '\'' && quote != '"')
        return expect(c, '\'');
    for (c->at++; c->at < c->end && *c->at != quote; c->at++) {
        if (*c->at == '\\' && c->at + 1 < c->end)
            c->at++;
        if (length < WORD - 1)
            word[length++] = *c->at;
    }
    word[length] = '\0';
    return expect(c, quote);
}

static bool read_whole_number(struct cursor *c, uint64_t *number)
{
    if (!isdigit((unsigned char)peek(c)))
        return fail_parse(c, "header: expected a number at \"%.*s\"",
                          (int)(c->end - c->at < 16 ? c->end - c->at : 16), c->at);
    *number = 0;
    for (; c->at < c->end && isdigit((unsigned char)*c->at); c->at++)
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(*c->at - '0'), number))
            return fail_parse(c, "header: a number above 2^64");
    accept(c, 'L'); /* a suffix of Python 2 */
    return true;
}

static bool read_truth(struct cursor *c, bool *truth)
{
    peek(c);
    *truth = c->end - c->at >= 4 && memcmp(c->at, "True", 4) == 0;
    if (!*truth && (c->end - c->at < 5 || memcmp(c->at, "False", 5) != 0))
        return fail_parse(c, "header: expected True or False");
    c->at += *truth ? 4 : 5;
    return true;
}

static bool multiply_size(struct cursor *c, uint64_t *product, uint64_t by)
{
    if (__builtin_mul_overflow(*product, by, product) || *product > INT64_MAX)
        return fail_parse(c, "header: an array of more than 2^63 bytes");
    return true;
}

/* Reads a tuple: its length, its first number, and the product of the others. */
static bool read_shape(struct cursor *c, unsigned *dimensions, uint64_t *first, uint64_t *rest)
{
    uint64_t number = 0;
    *dimensions = 0;
    *first = *rest = 1;
    if (!expect(c, '('))
        return false;
    while (!accept(c, ')')) {
        if (!read_whole_number(c, &number) ||
            ((*dimensions)++ > 0 && !multiply_size(c, rest, number)))
            return false;
        if (*dimensions == 1)
            *first = number;
        if (!accept(c, ',') && peek(c) != ')')
            return expect(c, ')');
    }
    return true;
}

/* ---- Types ---- */

static bool size_of_type(struct cursor *c, const char *type, uint64_t *size)
{
    char *end;
    const char *kind = type + (*type && strchr("<>|=!", *type) ? 1 : 0);
    if (*kind == 'O')
        return fail_parse(c,
                          "dtype '%s': objects are not in the file themselves, expected numbers, "
                          "strings or structures of them",
                          type);
    if (strcmp(kind, "?") == 0) {
        *size = 1;
        return true;
    }
    if (!*kind || !strchr("biufcmMSaUV", *kind) || !isdigit((unsigned char)kind[1]))
        return fail_parse(c, "dtype '%s': not known, expected one as '<f4'", type);
    *size = strtoull(kind + 1, &end, 10);
    if (*end && !(*end == '[' && strchr("mM", *kind)))
        return fail_parse(c, "dtype '%s': not known, expected one as '<f4'", type);
    return multiply_size(c, size, *kind == 'U' ? 4 : 1);
}

static bool read_type(struct cursor *c, unsigned depth, uint64_t *size);

/* ('name', type) or ('name', type, shape), where a name may be (title, name). */
static bool read_field(struct cursor *c, unsigned depth, uint64_t *size)
{
    char name[WORD];
    unsigned dimensions;
    uint64_t first = 1, rest = 1;
    if (!expect(c, '('))
        return false;
    if (accept(c, '(')) {
        if (!read_string(c, name) || !expect(c, ',') || !read_string(c, name) || !expect(c, ')'))
            return false;
    } else if (!read_string(c, name)) {
        return false;
    }
    if (!expect(c, ',') || !read_type(c, depth, size))
        return false;
    if (accept(c, ',') && peek(c) == '(' && !read_shape(c, &dimensions, &first, &rest))
        return false;
    accept(c, ',');
    return expect(c, ')') && multiply_size(c, size, first) && multiply_size(c, size, rest);
}

static bool read_structure(struct cursor *c, unsigned depth, uint64_t *size)
{
    uint64_t field;
    *size = 0;
    while (!accept(c, ']')) {
        if (!read_field(c, depth, &field))
            return false;
        *size += field; /* each is below 2^63; the sum must be too */
        if (*size > INT64_MAX)
            return fail_parse(c, "header: a record of more than 2^63 bytes");
        if (!accept(c, ',') && peek(c) != ']')
            return expect(c, ']');
    }
    return true;
}

static bool read_type(struct cursor *c, unsigned depth, uint64_t *size)
{
    char type[WORD];
    if (depth == NESTED_MAX)
        return fail_parse(c, "header: a dtype nested more than %d deep", NESTED_MAX);
    if (accept(c, '['))
        return read_structure(c, depth + 1, size);
    return read_string(c, type) && size_of_type(c, type, size);
}

/* ---- The header ---- */

bool shuf__npy_begins(const uint8_t *front, size_t size, struct shuf__npy *npy,
                      char why[SHUF__NPY_WHY])
{
    *npy = (struct shuf__npy){0};
    if (size < 6 || memcmp(front, "\x93NUMPY", 6) != 0)
        return false;
    const unsigned version = size > 7 ? front[6] : 0;
    const size_t prefix = version == 1 ? 10 : 12;
    if (size < prefix) {
        snprintf(why, SHUF__NPY_WHY, "header: cut off");
    } else if (version < 1 || version > 3) {
        snprintf(why, SHUF__NPY_WHY, "format version %u.%u: expected 1.0, 2.0 or 3.0", version,
                 front[7]);
    } else {
        size_t length = front[8] | (size_t)front[9] << 8;
        if (version > 1)
            length |= (size_t)front[10] << 16 | (size_t)front[11] << 24;
        npy->dict = prefix;
        npy->header = prefix + length;
    }
    return true;
}

struct found {
    bool descr, fortran_order, shape;
    bool fortran;
    unsigned dimensions;
    uint64_t item, first, rest;
    char type[SHUF__NPY_TYPE];
};

static bool read_descr(struct cursor *c, struct found *f)
{
    struct cursor name = *c;
    char type[WORD];
    if (peek(&name) != '[' && read_string(&name, type))
        snprintf(f->type, sizeof f->type, "%.*s", SHUF__NPY_TYPE - 1, type);
    return read_type(c, 0, &f->item);
}

static bool read_dict_entry(struct cursor *c, struct found *f)
{
    char key[WORD];
    if (!read_string(c, key) || !expect(c, ':'))
        return false;
    if (strcmp(key, "descr") == 0)
        return (f->descr = read_descr(c, f));
    if (strcmp(key, "fortran_order") == 0)
        return (f->fortran_order = read_truth(c, &f->fortran));
    if (strcmp(key, "shape") == 0)
        return (f->shape = read_shape(c, &f->dimensions, &f->first, &f->rest));
    return fail_parse(c, "header: a key '%s', expected descr, fortran_order and shape", key);
}

static bool read_dict(struct cursor *c, struct found *f)
{
    if (!expect(c, '{'))
        return false;
    while (!accept(c, '}')) {
        if (!read_dict_entry(c, f))
            return false;
        if (!accept(c, ',') && peek(c) != '}')
            return expect(c, '}');
    }
    if (f->descr && f->fortran_order && f->shape)
        return true;
    return fail_parse(c, "header: without %s, expected descr, fortran_order and shape",
                      !f->descr  ? "descr"
                      : f->shape ? "fortran_order"
                                 : "shape");
}

bool shuf__npy_read(const char *dict, size_t size, struct shuf__npy *npy, char why[SHUF__NPY_WHY])
{
    struct found f = {0};
    struct cursor c = {dict, dict + size, why};
    *why = '\0';
    if (!read_dict(&c, &f))
        return false;
    if (f.dimensions == 0)
        return fail_parse(&c, "shape (): a single value, expected at least one dimension");
    if (f.fortran && f.dimensions > 1)
        return fail_parse(&c,
                          "fortran_order True: the bytes of a record are not contiguous, expected "
                          "C order (numpy.ascontiguousarray)");
    npy->records = f.first;
    npy->record = f.item;
    memcpy(npy->type, f.type, sizeof npy->type);
    if (!multiply_size(&c, &npy->record, f.rest))
        return false;
    npy->bytes = npy->record;
    return multiply_size(&c, &npy->bytes, f.first);
}
