/* SPDX-License-Identifier: MIT
 *
 * See keyring.h.
 */
#include "keyring.h"

#include "error.h"
#include "identity.h"
#include "key_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static const size_t bits_size = SHUF__KEYS_MAX * sizeof(shuf_key);

/* ---- Locked memory ---- */

/* Locks the memory, and makes the process not dumpable. Such a process writes no core dump, and
 * only root may trace it. This also protects derived keys on the stacks of computing threads. */
static int protect(void *memory)
{
    return mlock(memory, bits_size) || madvise(memory, bits_size, MADV_DONTDUMP) ||
           madvise(memory, bits_size, MADV_WIPEONFORK) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static void free_bits(shuf_key *bits)
{
    if (!bits)
        return;
    explicit_bzero(bits, bits_size);
    munmap(bits, bits_size);
}

static shuf_key *allocate_bits(struct shuf__error *error)
{
    void *memory =
        mmap(NULL, bits_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED && protect(memory) == 0)
        return memory;
    shuf__fail(error, SHUF_IO,
               "keys: cannot lock %zu bytes in memory: %s; expected a limit of locked memory "
               "(RLIMIT_MEMLOCK) of at least twice as much",
               bits_size, strerror(errno));
    if (memory != MAP_FAILED)
        munmap(memory, bits_size);
    return NULL;
}

/* ---- All keys ---- */

/* Zeroes 64 KiB of the stack below the caller, where computations had their variables. */
static void __attribute__((noinline)) zero_stack(void)
{
    char stack[64 * 1024];
    explicit_bzero(stack, sizeof stack);
}

/* Equal bits have the same check in every daemon. Not 0, which stands for a seed. */
static uint64_t __attribute__((noinline)) check_of(const shuf_key *key)
{
    uint32_t words[8];
    shuf_key_words(*key, 0, SHUF_PURPOSE_CHECK, 0, words);
    const uint64_t check = (uint64_t)words[1] << 32 | words[0];
    return check ? check : 1;
}

static void assign_checks(struct shuf__key_set *fresh)
{
    for (unsigned i = 0; i < fresh->count; i++)
        fresh->facts[i].check = check_of(&fresh->bits[i]);
    zero_stack();
}

static void replace(struct shuf__keyring *keyring, const struct shuf__key_set *fresh)
{
    pthread_mutex_lock(&keyring->lock);
    shuf_key *old = keyring->set.bits;
    keyring->set = *fresh;
    free_bits(old);
    pthread_mutex_unlock(&keyring->lock);
}

shuf_status shuf__keyring_load(struct shuf__keyring *keyring, const char *directory,
                               struct shuf__error *error)
{
    struct shuf__key_set *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return shuf__fail(error, SHUF_NO_MEMORY, "keys: out of memory");
    error->status = SHUF_OK;
    if ((fresh->bits = allocate_bits(error)) &&
        shuf__key_files_read(directory, fresh, error) == 0) {
        assign_checks(fresh);
        replace(keyring, fresh);
    } else {
        free_bits(fresh->bits);
    }
    free(fresh);
    return error->status;
}

void shuf__keyring_init(struct shuf__keyring *keyring)
{
    *keyring = (struct shuf__keyring){.lock = PTHREAD_MUTEX_INITIALIZER};
}

void shuf__keyring_close(struct shuf__keyring *keyring)
{
    static const struct shuf__key_set none;
    replace(keyring, &none);
}

/* ---- One key ---- */

/* Finds out whether the client may use the key. False, with errno, if its groups cannot be read.
 * Reads them also if the key has no group, or if there is no such key (NULL). Else the time of a
 * refusal would tell this. */
static bool find_right(const struct shuf__key_facts *key, uid_t uid, int socket, bool *may_use)
{
    const bool has_group = key && key->has_group, is_privileged = shuf__uid_is_privileged(uid);
    bool is_member = false;
    *may_use = key && is_privileged;
    if (*may_use)
        return true;
    const bool is_known =
        shuf__peer_find_group(socket, has_group ? key->group : (gid_t)-1, &is_member);
    *may_use = has_group && is_member;
    return is_known;
}

shuf_status shuf__keyring_admit(const struct shuf__keyring *keyring, uid_t uid, int socket,
                                struct shuf__named_key *key, struct shuf__error *error)
{
    if (!key->name[0])
        return SHUF_OK;
    bool may_use = false;
    if (shuf__uid_is_overflow(uid))
        return shuf__fail(error, SHUF_DENIED,
                          "key %s: expected a user with a number of its own; %ld stands for all "
                          "users that the user namespace of the daemon does not map",
                          key->name, (long)uid);
    const struct shuf__key_facts *found = shuf__key_set_find(&keyring->set, key->name);
    if (!find_right(found, uid, socket, &may_use) &&
        (shuf__is_system_failure(errno) || errno == ENOBUFS))
        return shuf__fail(error, SHUF_IO, "key %s: cannot read the groups of user %ld: %s",
                          key->name, (long)uid, strerror(errno));
    if (!may_use)
        return shuf__fail(error, SHUF_DENIED,
                          "key %s: expected a key of the daemon that user %ld may use", key->name,
                          (long)uid);
    key->check = found->check;
    return SHUF_OK;
}

shuf_status shuf__keyring_reveal(struct shuf__keyring *keyring, struct shuf__request *request,
                                 struct shuf__error *error)
{
    const struct shuf__named_key *key = &request->key;
    if (!key->name[0])
        return SHUF_OK;
    pthread_mutex_lock(&keyring->lock);
    const struct shuf__key_set *set = &keyring->set;
    const struct shuf__key_facts *found = shuf__key_set_find(set, key->name);
    const bool is_same = found && found->check == key->check;
    if (is_same)
        shuf__request_set_key(request, &set->bits[found - set->facts]);
    pthread_mutex_unlock(&keyring->lock);
    return is_same ? SHUF_OK
                   : shuf__fail(error, SHUF_BUSY,
                                "key %s: the daemon has read its keys again; try again", key->name);
}

void shuf__keyring_conceal(struct shuf__request *request)
{
    if (!request->key.name[0])
        return;
    shuf__request_clear_key(request);
    zero_stack();
}

/* ---- Changes ---- */

enum { NAMES = 110 };

/* The keys of one kind of change. */
struct list {
    const char *kind;
    unsigned count;
    char names[NAMES];
};

static void add_name(struct list *list, const char *name)
{
    const size_t used = strlen(list->names);
    const char *const comma = list->count > 0 ? ", " : "";
    list->count++;
    if (used + strlen(comma) + strlen(name) + sizeof ", ..." <= NAMES)
        snprintf(list->names + used, NAMES - used, "%s%s", comma, name);
    else if (strcmp(list->names + used - 3, "...") != 0)
        strcpy(list->names + used, ", ...");
}

static bool is_unchanged(const struct shuf__key_facts *a, const struct shuf__key_facts *b)
{
    return a->check == b->check && a->has_group == b->has_group &&
           (!a->has_group || a->group == b->group);
}

const char *shuf__key_changes(const struct shuf__key_set *before, const struct shuf__key_set *after,
                              char text[SHUF__KEY_CHANGES])
{
    struct list lists[] = {{.kind = "changed"}, {.kind = "new"}, {.kind = "removed"}};
    size_t used = 0;
    for (unsigned i = 0; i < after->count; i++) {
        const struct shuf__key_facts *key = &after->facts[i],
                                     *old = shuf__key_set_find(before, key->name);
        if (!old || !is_unchanged(old, key))
            add_name(&lists[old ? 0 : 1], key->name);
    }
    for (unsigned i = 0; i < before->count; i++)
        if (!shuf__key_set_find(after, before->facts[i].name))
            add_name(&lists[2], before->facts[i].name);
    text[0] = '\0';
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (lists[i].count > 0)
            used += (size_t)snprintf(text + used, SHUF__KEY_CHANGES - used, "%s%u %s (%s)",
                                     used > 0 ? ", " : "", lists[i].count, lists[i].kind,
                                     lists[i].names);
    return text;
}
