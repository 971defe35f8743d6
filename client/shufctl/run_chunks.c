/* SPDX-License-Identifier: MIT
 *
 * See run_chunks.h.
 */
#include "run_chunks.h"

#include "chunk_list.h"
#include "clock.h"
#include "exit.h"
#include "progress.h"
#include "run_request.h"
#include "shuf/fingerprint.h"
#include "summary.h"
#include "value_file.h"

#include <string.h>
#include <sysexits.h>

enum { PART = 1 << 16 }; /* values that are computed at once */

/* The values of a request, which arrive in order. */
struct run {
    const struct shuf__output_options *o;
    struct shuf__value_file *file; /* NULL: only a summary */
    shuf_result result;
    uint64_t done; /* values */
    uint64_t part[PART];
};

/* ---- The summary ---- */

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

/* ---- The values ---- */

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

/* ---- The output ---- */

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

int shuf__run_chunks(const struct shuf__output_options *o)
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
