/* SPDX-License-Identifier: MIT
 *
 * See room.h.
 */
#include "room.h"

#include "client_process.h"
#include "units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Room ---- */

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* The memory that the user has, and the most that it may have. */
struct shares {
    uint64_t bytes, most_bytes;
    uint64_t blocks, most_blocks;
    uint64_t others_bytes;
};

/* `more`: bytes that are charged to the budget, but to no user. */
static struct shares shares_of(const struct shuf__allocations *allocations,
                               const struct shuf__need *need, const struct shuf__freed *freed,
                               uint64_t more)
{
    static const struct shuf__account nothing;
    const struct shuf__account *found = shuf__account_find(&allocations->accounts, need->uid),
                               *account = found ? found : &nothing;
    const enum shuf__side side = shuf__side_of(need->kind);
    const struct shuf__budget *budget = &allocations->budgets[side];
    struct shares shares = {
        .bytes = minus(account->bytes[side], freed->own_bytes),
        .blocks = minus(account->blocks, freed->own_blocks),
    };
    const uint64_t used = minus(budget->used, freed->bytes + more),
                   count = minus(allocations->count, freed->blocks);
    shares.others_bytes = minus(used, shares.bytes);
    shares.most_bytes =
        shuf__share_of_bytes(&allocations->accounts, budget->limit, shares.others_bytes);
    shares.most_blocks = shuf__share_of_blocks(allocations->max_count, minus(count, shares.blocks));
    return shares;
}

/* Idle blocks of the user count too. The caller evicts them before it refuses a request. */
static bool is_within_share(const struct shuf__allocations *allocations,
                            const struct shuf__need *need, const struct shuf__freed *freed,
                            uint64_t more)
{
    const struct shares shares = shares_of(allocations, need, freed, more);
    return need->size <= minus(shares.most_bytes, shares.bytes) &&
           shares.blocks < shares.most_blocks;
}

static const struct shuf__freed nothing_freed;

bool shuf__room_has(const struct shuf__allocations *allocations, const struct shuf__need *need,
                    const struct shuf__freed *freed)
{
    const struct shuf__budget *budget = &allocations->budgets[shuf__side_of(need->kind)];
    freed = freed ? freed : &nothing_freed;
    if (allocations->count - freed->blocks >= allocations->max_count ||
        need->size > budget->limit || budget->used - freed->bytes > budget->limit - need->size)
        return false;
    return !shuf__account_is_limited(&allocations->accounts, need->uid) ||
           is_within_share(allocations, need, freed, 0);
}

bool shuf__room_is_certain(const struct shuf__allocations *allocations,
                           const struct shuf__need *need, uint64_t charged)
{
    const enum shuf__side side = shuf__side_of(need->kind);
    const struct shuf__budget *budget = &allocations->budgets[side];
    const struct shuf__account *account = shuf__account_find(&allocations->accounts, need->uid);
    const uint64_t used = budget->used + budget->unconfirmed - charged,
                   own = account ? account->bytes[side] + account->unconfirmed[side] : 0;
    if (budget->unconfirmed == 0)
        return true;
    if (used + need->size > budget->limit)
        return false;
    return !shuf__account_is_limited(&allocations->accounts, need->uid) ||
           own + need->size <=
               shuf__share_of_bytes(&allocations->accounts, budget->limit, used - own);
}

bool shuf__room_may_have(const struct shuf__allocations *allocations, const struct shuf__need *need)
{
    return !shuf__account_is_limited(&allocations->accounts, need->uid) ||
           is_within_share(allocations, need, &nothing_freed, need->size);
}

/* ---- The words of a refusal ---- */

enum { ADVICE = 192 };

static const struct shuf__budget *budget_of(const struct shuf__allocations *allocations,
                                            enum shuf__memory kind)
{
    return &allocations->budgets[shuf__side_of(kind)];
}

/* The words of the messages for the two sides. */
static const struct side_words {
    const char *memory, *key, *option, *owner;
} words[SHUF__SIDES] = {
    [SHUF__SIDE_HOST] = {"host memory", "host_memory", "--host-memory",
                         "the machine or the control group"},
    [SHUF__SIDE_DEVICE] = {"device memory", "device_memory", "--device-memory", "the GPU"},
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

/* A setting that the message advises to raise. */
struct setting {
    const char *key, *option;
    bool has_option; /* which overrides the file */
};

static struct setting memory_setting(const struct shuf__allocations *allocations,
                                     enum shuf__side side)
{
    return (struct setting){words[side].key, words[side].option, allocations->has_option[side]};
}

/* The advice for a user, who may not be the one who can follow it. It names no PID, because the
 * user may be in another PID namespace. */
static void advise(const struct shuf__allocations *allocations, struct setting setting,
                   uint32_t uid, char text[ADVICE])
{
    const char *file = allocations->config_file;
    const bool has_file = file && *file;
    if (allocations->starter && *allocations->starter)
        snprintf(text, ADVICE, "pass a larger %s to %.64s, which started this daemon", setting.key,
                 allocations->starter);
    else if (setting.has_option || !has_file)
        snprintf(text, ADVICE, "start shufd with a larger %s", setting.option);
    else if (allocations->unit)
        snprintf(text, ADVICE, "raise %s in %.64s, then systemctl reload %.64s, as root",
                 setting.key, file, allocations->unit);
    else if (shuf__uid_is_privileged(uid))
        snprintf(text, ADVICE,
                 "raise %s in %.64s (then reload shufd by SIGHUP) or start shufd with %s",
                 setting.key, file, setting.option);
    else
        snprintf(text, ADVICE,
                 "let uid %u, who runs shufd, raise %s in %.64s (then reload shufd by SIGHUP)",
                 (unsigned)geteuid(), setting.key, file);
}

static shuf_status too_large(const struct shuf__allocations *allocations, uint64_t size,
                             const char *with, uint64_t limit, const struct shuf__need *need,
                             struct shuf__error *error)
{
    const enum shuf__side side = shuf__side_of(need->kind);
    const struct two_texts texts = texts_of(size, limit);
    char advice[ADVICE];
    advise(allocations, memory_setting(allocations, side), need->uid, advice);
    return shuf__fail(error, SHUF_NO_MEMORY, "the request needs %s of %s%s, the limit is %s: %s",
                      texts.a, words[side].memory, with, texts.b, advice);
}

/* The most that results can have if nothing else uses the memory. 0 as the total: not measured. */
static uint64_t most_of_all(const struct shuf__budget *budget)
{
    const uint64_t most = shuf__budget_usable(budget);
    return budget->total > 0 && most < budget->max_limit ? most : budget->max_limit;
}

static shuf_status too_large_for_machine(const struct shuf__budget *budget, uint64_t size,
                                         const char *with, enum shuf__memory kind,
                                         struct shuf__error *error)
{
    const enum shuf__side side = shuf__side_of(kind);
    const struct two_texts texts = texts_of(size, shuf__budget_usable(budget));
    char total[SHUF__UNITS_TEXT];
    return shuf__fail(error, SHUF_NO_MEMORY,
                      "the request needs %s of %s%s, %s has %s and lends %s at most: ask for a "
                      "part of the result",
                      texts.a, words[side].memory, with, words[side].owner,
                      shuf__units_memory(total, budget->total), texts.b);
}

/* ---- The limits of a user ---- */

static void advise_user_memory(const struct shuf__allocations *allocations, uint32_t uid,
                               char text[ADVICE])
{
    const struct setting setting = {"user_memory", "--user-memory", allocations->has_user_option};
    advise(allocations, setting, uid, text);
}

static shuf_status too_large_for_user(const struct shuf__allocations *allocations, uint64_t size,
                                      const char *with, uint64_t most,
                                      const struct shuf__need *need, struct shuf__error *error)
{
    const struct two_texts texts = texts_of(size, most);
    char part[SHUF__NUMBER_TEXT], advice[ADVICE];
    advise_user_memory(allocations, need->uid, advice);
    return shuf__fail(error, SHUF_NO_MEMORY,
                      "user_memory %s: the request needs %s of %s%s, one user may hold %s: %s",
                      shuf__amount_text(part, allocations->accounts.memory_share), texts.a,
                      words[shuf__side_of(need->kind)].memory, with, texts.b, advice);
}

/* The most that the user of the need can ever have. */
static uint64_t most_of_user(const struct shuf__allocations *allocations,
                             const struct shuf__need *need)
{
    const uint64_t limit = most_of_all(budget_of(allocations, need->kind));
    return shuf__account_is_limited(&allocations->accounts, need->uid)
               ? shuf__share_of_bytes(&allocations->accounts, limit, 0)
               : limit;
}

static shuf_status check_size(const struct shuf__allocations *allocations,
                              const struct shuf__need *need, uint64_t size, const char *with,
                              struct shuf__error *error)
{
    const struct shuf__budget *budget = budget_of(allocations, need->kind);
    const uint64_t limit = budget->max_limit, most = most_of_user(allocations, need);
    if (size > limit)
        return too_large(allocations, size, with, limit, need, error);
    if (size > most_of_all(budget))
        return too_large_for_machine(budget, size, with, need->kind, error);
    if (size > most)
        return too_large_for_user(allocations, size, with, most, need, error);
    return SHUF_OK;
}

shuf_status shuf__refusal_check_fit(const struct shuf__allocations *allocations,
                                    const struct shuf__need *need, uint64_t beside,
                                    struct shuf__error *error)
{
    const uint64_t size = shuf__allocations_least_size(need->kind, need->size);
    const uint64_t taken = shuf__allocations_least_size(need->kind, beside);
    const char *with = beside > 0 ? " with its input and workspace" : "";
    return check_size(allocations, need, size + taken, with, error);
}

/* ---- The reasons for SHUF_BUSY ---- */

/* The user's bytes in use: without idle ones, and without those that are unused but still mapped.
 */
static uint64_t held_by(const struct shuf__allocations *allocations, const struct shuf__need *need)
{
    const enum shuf__side side = shuf__side_of(need->kind);
    const struct shuf__account *account = shuf__account_find(&allocations->accounts, need->uid);
    return account ? account->bytes[side] - account->idle[side] - account->pending_free[side] : 0;
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

/* Writes how much memory processes have mapped without a lease, and how it becomes free. Writes ""
 * if there is no such memory. */
static void write_mapped(struct shuf__allocations *allocations, const struct shuf__need *need,
                         char text[MAPPED_TEXT])
{
    const enum shuf__side side = shuf__side_of(need->kind);
    const struct shuf__account *account = shuf__account_find(&allocations->accounts, need->uid);
    char bytes[SHUF__UNITS_TEXT];
    text[0] = '\0';
    shuf__mapped_bytes_read(allocations);
    if (account && account->mapped_pid[side] > 0)
        snprintf(
            text, MAPPED_TEXT,
            "; %s of these have no lease but are still mapped, most of them by process %d: its "
            "next call or its end frees them",
            shuf__units_memory(bytes, account->mapped[side]), (int)account->mapped_pid[side]);
    else if (allocations->mapped[side] > 0)
        snprintf(text, MAPPED_TEXT,
                 "; %s of these have no lease but are still mapped by processes: their next calls "
                 "or their ends free them",
                 shuf__units_memory(bytes, allocations->mapped[side]));
}

/* Whether the request would fit the user's share if other programs used no memory. */
static bool would_fit(const struct shuf__allocations *allocations, const struct shuf__need *need,
                      const struct shares *shares)
{
    const uint64_t limit = most_of_all(budget_of(allocations, need->kind)),
                   most = shuf__share_of_bytes(&allocations->accounts, limit, shares->others_bytes);
    return shares->bytes <= most && need->size <= most - shares->bytes;
}

static shuf_status refuse_user(struct shuf__allocations *allocations, const struct shuf__need *need,
                               const struct shares *shares, struct shuf__error *error)
{
    char needed[SHUF__UNITS_TEXT], part[SHUF__NUMBER_TEXT], mapped[MAPPED_TEXT];
    const struct two_texts texts = texts_of(shares->most_bytes, shares->bytes);
    write_mapped(allocations, need, mapped);
    return shuf__fail(
        error, SHUF_BUSY,
        "user_memory %s: the request needs %s of %s; beside the other users, user "
        "%" PRIu32 " may hold %s, and holds %s%s; %s",
        shuf__amount_text(part, allocations->accounts.memory_share),
        shuf__units_memory(needed, need->size), words[shuf__side_of(need->kind)].memory, need->uid,
        texts.a, texts.b, shares->bytes > 0 ? mapped : "",
        shares->bytes > 0 ? "release a lease, or try again" : "try again, or ask for a part");
}

/* Fails if all users, or this user, would have too many blocks even if `freed` were freed. */
static shuf_status check_blocks(const struct shuf__allocations *allocations,
                                const struct shuf__need *need, const struct shuf__freed *freed,
                                struct shuf__error *error)
{
    const struct shares shares = shares_of(allocations, need, freed, 0);
    if (allocations->count - freed->blocks >= allocations->max_count)
        return shuf__fail(error, SHUF_BUSY,
                          "blocks %" PRIu64 ": the most that the limit of open files allows; try "
                          "again",
                          allocations->count);
    if (!shuf__account_is_limited(&allocations->accounts, need->uid) ||
        shares.blocks < shares.most_blocks)
        return SHUF_OK;
    return shuf__fail(error, SHUF_BUSY,
                      "blocks: beside the other users, user %" PRIu32 " may have %" PRIu64
                      " by the daemon's limit of open files, and has %" PRIu64 "; release leases",
                      need->uid, shares.most_blocks, shares.blocks);
}

/* After SHUF_BUSY a later try may succeed: when other results are gone, or other programs use less
 * memory. If the user's own leases use the memory, waiting does not help, so the message says that.
 */
shuf_status shuf__refuse_allocation(struct shuf__allocations *allocations,
                                    const struct shuf__need *need, const struct shuf__freed *freed,
                                    struct shuf__error *error)
{
    const struct shuf__budget *budget = budget_of(allocations, need->kind);
    const struct side_words *w = &words[shuf__side_of(need->kind)];
    const struct shares shares = shares_of(allocations, need, freed, 0);
    if (check_size(allocations, need, need->size, "", error) ||
        check_blocks(allocations, need, freed, error))
        return error->status;
    if (shuf__account_is_limited(&allocations->accounts, need->uid) &&
        !would_fit(allocations, need, &shares))
        return refuse_user(allocations, need, &shares, error);
    char needed[SHUF__UNITS_TEXT], mapped[MAPPED_TEXT];
    const struct two_texts texts = texts_of(budget->used, budget->limit);
    shuf__units_memory(needed, need->size);
    const uint64_t held = held_by(allocations, need);
    if (held > budget->max_limit - need->size)
        return refuse_holder(budget, w, needed, held, error);
    write_mapped(allocations, need, mapped);
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
