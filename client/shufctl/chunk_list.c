/* SPDX-License-Identifier: MIT
 *
 * See chunk_list.h.
 */
#include "chunk_list.h"

#include "exit.h"
#include "json.h"
#include "npy.h"
#include "number.h"
#include "option.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

enum { CHUNKS_MOST = 1 << 24, PART = 1 << 16, NPY_BYTE = 0x93 };

static shuf_status cannot_read(FILE *file, struct shuf__error *error)
{
    return shuf__fail(error, ferror(file) ? SHUF_IO : SHUF_INVALID, "%s",
                      ferror(file) ? strerror(errno) : "cut off; expected the whole file");
}

/* ---- .npy ---- */

/* The bytes of an integer type, "<i8"; 0 for another type. */
static unsigned integer_bytes(const char *type)
{
    const char *kind = type + (*type && strchr("<>|=", *type) ? 1 : 0);
    const unsigned bytes = *kind ? (unsigned)(kind[1] - '0') : 0;
    const bool is_integer = *kind == 'i' || *kind == 'u';
    return is_integer && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && !kind[2] ? bytes
                                                                                            : 0;
}

static uint64_t read_integer(const uint8_t *bytes, unsigned width, bool is_big)
{
    uint64_t value = 0;
    for (unsigned b = 0; b < width; b++)
        value |= (uint64_t)bytes[is_big ? width - 1 - b : b] << 8 * b;
    return value;
}

static shuf_status read_npy_values(FILE *file, const struct shuf__npy *npy, unsigned width,
                                   struct shuf__numbers *sizes, struct shuf__error *error)
{
    static uint8_t part[PART * sizeof(uint64_t)];
    const bool is_big = npy->type[0] == '>', is_signed = strchr(npy->type, 'i') != NULL;
    for (uint64_t done = 0, count; done < npy->records && !error->status; done += count) {
        count = npy->records - done < PART ? npy->records - done : PART;
        if (fread(part, width, count, file) != count)
            return cannot_read(file, error);
        for (uint64_t i = 0; i < count && !error->status; i++) {
            const uint64_t size = read_integer(part + i * width, width, is_big);
            if (is_signed && size >> (8 * width - 1))
                shuf__fail(error, SHUF_INVALID, "sizes[%" PRIu64 "]: negative, expected at least 1",
                           done + i);
            else
                shuf__numbers_add(sizes, "sizes", size, error);
        }
    }
    if (!error->status && fread(part, 1, 1, file) == 1)
        shuf__fail(error, SHUF_INVALID, "more bytes than its shape has");
    return error->status;
}

static shuf_status check_npy(const struct shuf__npy *npy, unsigned *width,
                             struct shuf__error *error)
{
    *width = integer_bytes(npy->type);
    if (!*width)
        return shuf__fail(error, SHUF_INVALID, "dtype '%s': expected integers, as <i8", npy->type);
    if (npy->record != *width)
        return shuf__fail(error, SHUF_INVALID, "shape: expected one dimension");
    if (npy->records > CHUNKS_MOST)
        return shuf__fail(error, SHUF_INVALID, "sizes: %" PRIu64 " of them, expected 1 to 2^24",
                          npy->records);
    return SHUF_OK;
}

static shuf_status read_npy_dict(FILE *file, struct shuf__npy *npy, struct shuf__error *error)
{
    char why[SHUF__NPY_WHY];
    const size_t size = npy->header - npy->dict;
    char *dict = npy->header > SHUF__NPY_DICT_MAX ? NULL : malloc(size + 1);
    if (!dict)
        return shuf__fail(error, SHUF_INVALID, "header: longer than 1 MiB; expected a shorter one");
    if (fread(dict, 1, size, file) != size)
        cannot_read(file, error);
    else if (!shuf__npy_read(dict, size, npy, why))
        shuf__fail(error, SHUF_INVALID, "%s", why);
    free(dict);
    return error->status;
}

static shuf_status read_npy(FILE *file, struct shuf__numbers *sizes, struct shuf__error *error)
{
    struct shuf__npy npy;
    char why[SHUF__NPY_WHY];
    uint8_t front[SHUF__NPY_FRONT];
    unsigned width;
    size_t got = fread(front, 1, 10, file);
    if (got == 10 && front[6] > 1) /* the length of the header has two bytes more */
        got += fread(front + got, 1, 2, file);
    if (!shuf__npy_begins(front, got, &npy, why))
        return shuf__fail(error, SHUF_INVALID, "expected text, or a file that numpy.save writes");
    if (npy.header == 0)
        return shuf__fail(error, SHUF_INVALID, "%s", why);
    if (read_npy_dict(file, &npy, error) || check_npy(&npy, &width, error))
        return error->status;
    return read_npy_values(file, &npy, width, sizes, error);
}

/* ---- Text ---- */

static shuf_status add_line(char *line, size_t length, size_t number, struct shuf__numbers *sizes,
                            struct shuf__error *error)
{
    char field[32], *rest;
    snprintf(field, sizeof field, "line %zu", number);
    if (strlen(line) != length)
        return shuf__fail(error, SHUF_INVALID, "%s: a byte of 0, expected text", field);
    for (char *word = strtok_r(line, ", \t\r\n\v\f", &rest); word && !error->status;
         word = strtok_r(NULL, ", \t\r\n\v\f", &rest)) {
        uint64_t size = 0;
        if (sizes->count == CHUNKS_MOST)
            return shuf__fail(error, SHUF_INVALID, "sizes: more than 2^24, expected 1 to 2^24");
        if (!shuf__number_parse(field, word, &size, error))
            shuf__numbers_add(sizes, "sizes", size, error);
    }
    return error->status;
}

static shuf_status read_text(FILE *file, struct shuf__numbers *sizes, struct shuf__error *error)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    for (size_t number = 1; !error->status && (length = getline(&line, &room, file)) >= 0; number++)
        add_line(line, (size_t)length, number, sizes, error);
    free(line);
    return error->status || feof(file) ? error->status : cannot_read(file, error);
}

/* ---- The list ---- */

void shuf__chunk_list_check(struct argp_state *state, const struct shuf__beside_chunks *given)
{
    if (given->n || given->chunk)
        shuf__option_refuse_both(state, "--chunks", given->n ? "--n" : "--chunk");
    if (given->key || given->algorithm)
        shuf__option_refuse_both(state, "--chunks", given->key ? "--key" : "--algorithm");
    if (!given->window)
        shuf__option_fail(state, EX_USAGE, "--window: missing; --chunks needs it");
}

/* No device, which may have no end. */
static bool is_file_or_pipe(FILE *file)
{
    struct stat status;
    return fstat(fileno(file), &status) == 0 &&
           (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

static shuf_status read_file(FILE *file, struct shuf__numbers *sizes, struct shuf__error *error)
{
    uint8_t first = 0;
    if (!is_file_or_pipe(file))
        return shuf__fail(error, SHUF_INVALID, "expected a regular file or a pipe");
    if (fread(&first, 1, 1, file) == 1)
        ungetc(first, file);
    return ferror(file)        ? cannot_read(file, error)
           : first == NPY_BYTE ? read_npy(file, sizes, error)
                               : read_text(file, sizes, error);
}

static void fail(struct argp_state *state, const struct shuf__chunk_list *list, shuf_status status,
                 const char *message)
{
    const int code = status == SHUF_INVALID ? EX_DATAERR : shuf__exit_code(status);
    shuf__option_fail(state, code, "--chunks %.256s: %s", list->path, message);
}

void shuf__chunk_list_read(struct argp_state *state, shuf_permutation *permutation,
                           struct shuf__chunk_list *list)
{
    struct shuf__error error = {0};
    if (permutation->window == 0)
        shuf__option_fail(state, EX_USAGE, "--window 0: expected at least 1");
    FILE *file = fopen(strcmp(list->path, "-") == 0 ? "/dev/stdin" : list->path, "re");
    if (!file)
        shuf__option_fail(state, errno == EACCES ? EX_NOPERM : EX_NOINPUT,
                          "--chunks %.256s: cannot open: %s", *list->path ? list->path : "''",
                          strerror(errno));
    read_file(file, &list->sizes, &error);
    fclose(file);
    if (error.status)
        fail(state, list, error.status, error.text);
    list->window = permutation->window;
    permutation->window = 0;
    const shuf_status status = shuf__chunk_list_make(list, permutation->seed, permutation->epoch);
    if (status)
        fail(state, list, status, shuf_message(NULL));
    permutation->n = shuf_chunks_length(list->order);
}

shuf_status shuf__chunk_list_make(struct shuf__chunk_list *list, uint64_t seed, uint64_t epoch)
{
    static const uint64_t none; /* an empty list has no address */
    const shuf_chunks_request request = {seed, epoch, list->sizes.at ? list->sizes.at : &none,
                                         list->sizes.count, list->window};
    shuf_chunks_free(list->order);
    return shuf_chunks_make(&request, &list->order);
}

void shuf__chunk_list_free(struct shuf__chunk_list *list)
{
    shuf_chunks_free(list->order);
    free(list->sizes.at);
    *list = (struct shuf__chunk_list){0};
}

void shuf__json_chunks(json_t *object, const struct shuf__chunk_list *list)
{
    shuf__json_integer(object, "chunks", list->sizes.count);
    shuf__json_integer(object, "window", list->window);
}
