/* SPDX-License-Identifier: MIT
 *
 * See refusal.h.
 */
#include "refusal.h"

#include "client_process.h"
#include "units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ADVICE = 192 };

static const struct shuf__budget *budget_of(const struct shuf__allocations *allocations,
                                            enum shuf__memory kind)
{
    return &allocations->budgets[shuf__side_of(kind)];
}

/* The words of the messages for the two sides. */
static const struct side_words {
    const char *memory, *key, *option;
} words[SHUF__SIDES] = {
    [SHUF__SIDE_HOST] = {"host memory", "host_memory", "--host-memory"},
    [SHUF__SIDE_DEVICE] = {"device memory", "device_memory", "--device-memory"},
};

/* Two quantities as text. If they differ but round to the same text, both are written in bytes. */
struct two_texts {
    char a[SHUF__UNITS_TEXT], b[SHUF__UNITS_TEXT];
};

static struct two_texts texts_of(uint64_t a, uint64_t b)
{
    struct two_texts texts;
    shuf__units_memory(texts.a, a);
    shuf__units_memory(texts.b, b);
    if (a != b && strcmp(texts.a, texts.b) == 0) {
        snprintf(texts.a, sizeof texts.a, "%" PRIu64 " bytes", a);
        snprintf(texts.b, sizeof texts.b, "%" PRIu64 " bytes", b);
    }
    return texts;
}

/* Writes how to get a larger limit. Names the option if the command line has one, because it
 * overrides the file. */
static void advise(const struct shuf__allocations *allocations, enum shuf__side side,
                   char text[ADVICE])
{
    const struct side_words *w = &words[side];
    const char *file = allocations->config_file;
    const bool has_file = file && *file;
    char reload[48] = "";
    if (has_file)
        snprintf(reload, sizeof reload, " (then kill -HUP %d)", (int)getpid());
    if (allocations->starter && *allocations->starter)
        snprintf(text, ADVICE, "pass a larger %s to %.64s, which started this daemon", w->key,
                 allocations->starter);
    else if (allocations->has_option[side])
        snprintf(text, ADVICE, "start shufd with a larger %s", w->option);
    else
        snprintf(text, ADVICE, "raise %s in %.64s%s or start shufd with %s", w->key,
                 has_file ? file : "shufd.conf", reload, w->option);
}

static shuf_status too_large(const struct shuf__allocations *allocations, uint64_t size,
                             const char *with, uint64_t limit, enum shuf__memory kind,
                             struct shuf__error *error)
{
    const enum shuf__side side = shuf__side_of(kind);
    const struct two_texts texts = texts_of(size, limit);
    char advice[ADVICE];
    advise(allocations, side, advice);
    return shuf__fail(error, SHUF_NO_MEMORY, "the request needs %s of %s%s, the limit is %s: %s",
                      texts.a, words[side].memory, with, texts.b, advice);
}

shuf_status shuf__refusal_check_fit(const struct shuf__allocations *allocations,
                                    enum shuf__memory kind, uint64_t bytes, uint64_t beside,
                                    struct shuf__error *error)
{
    const uint64_t size = shuf__allocations_least_size(kind, bytes);
    const uint64_t limit = budget_of(allocations, kind)->max_limit;
    const uint64_t taken = shuf__allocations_least_size(kind, beside);
    if (size > limit)
        return too_large(allocations, size, "", limit, kind, error);
    if (taken <= limit - size)
        return SHUF_OK;
    return too_large(allocations, size + taken, " with its input and workspace", limit, kind,
                     error);
}

/* The user's bytes that leases and requests use. Not counted are idle allocations, and pending ones
 * that processes only have mapped. */
static uint64_t held_by(const struct shuf__allocations *allocations, uint32_t uid,
                        enum shuf__memory kind)
{
    uint64_t bytes = 0;
    const struct shuf__allocation *allocation;
    LIST_FOREACH (allocation, &allocations->list, link)
        if (allocation->uid == uid && shuf__side_of(allocation->kind) == shuf__side_of(kind) &&
            !allocation->size_class && !allocation->pending_free)
            bytes += allocation->bytes;
    return bytes;
}

static shuf_status refuse_holder(const struct shuf__budget *budget, const struct side_words *w,
                                 const char *needed, uint64_t held, struct shuf__error *error)
{
    const struct two_texts texts = texts_of(held, budget->max_limit);
    return shuf__fail(error, SHUF_BUSY,
                      "the request needs %s of %s, %s of %s are held by this user's own leases and "
                      "requests (%s): release a lease, or wait for a request to end",
                      needed, w->memory, texts.a, texts.b, w->key);
}

enum { MAPPED_TEXT = 160 };

/* Writes how much memory without a lease processes still have mapped, and when it is freed. Writes
 * "" if there is none. */
static void write_mapped(const struct shuf__allocations *allocations, uint32_t uid,
                         enum shuf__memory kind, char text[MAPPED_TEXT])
{
    const struct shuf__mapped_bytes mapped =
        shuf__mapped_bytes_count(allocations, shuf__side_of(kind), uid);
    char bytes[SHUF__UNITS_TEXT];
    text[0] = '\0';
    if (mapped.pid > 0)
        snprintf(
            text, MAPPED_TEXT,
            "; %s of these have no lease but are still mapped, most of them by process %d: its "
            "next call or its end frees them",
            shuf__units_memory(bytes, mapped.own), (int)mapped.pid);
    else if (mapped.all > 0)
        snprintf(text, MAPPED_TEXT,
                 "; %s of these have no lease but are still mapped by processes: their next calls "
                 "or their ends free them",
                 shuf__units_memory(bytes, mapped.all));
}

/* SHUF_BUSY means that the allocation may fit later, when other results are gone or other programs
 * use less memory. If the user's own leases are in the way, the message says so, because waiting
 * alone does not free them. */
shuf_status shuf__refuse_allocation(const struct shuf__allocations *allocations, uint32_t uid,
                                    enum shuf__memory kind, uint64_t size,
                                    struct shuf__error *error)
{
    const struct shuf__budget *budget = budget_of(allocations, kind);
    const struct side_words *w = &words[shuf__side_of(kind)];
    if (size > budget->max_limit)
        return too_large(allocations, size, "", budget->max_limit, kind, error);
    if (allocations->count >= allocations->max_count)
        return shuf__fail(error, SHUF_BUSY,
                          "blocks %" PRIu64 ": the most that the limit of open files allows; try "
                          "again",
                          allocations->count);
    char needed[SHUF__UNITS_TEXT], mapped[MAPPED_TEXT];
    const struct two_texts texts = texts_of(budget->used, budget->limit);
    shuf__units_memory(needed, size);
    const uint64_t held = held_by(allocations, uid, kind);
    if (held > budget->max_limit - size)
        return refuse_holder(budget, w, needed, held, error);
    write_mapped(allocations, uid, kind, mapped);
    if (budget->limit < budget->max_limit)
        return shuf__fail(error, SHUF_BUSY,
                          "the request needs %s of %s, other programs leave %s to results, and %s "
                          "are in use by other results%s; try again",
                          needed, w->memory, texts.b, texts.a, mapped);
    return shuf__fail(error, SHUF_BUSY,
                      "the request needs %s of %s, %s of %s are in use by other results (%s)%s; "
                      "try again",
                      needed, w->memory, texts.a, texts.b, w->key, mapped);
}
