/* SPDX-License-Identifier: MIT
 *
 * The daemon's named keys. Their bits are in one mapping, which is locked in memory and not part of
 * core dumps. Requests and cache entries have only the name and the check of a key. A
 * computation gets the bits only at its launch, and a look-up while it runs.
 */
#ifndef SHUFD_KEYRING_H
#define SHUFD_KEYRING_H

#include "key_files.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct shuf__keyring {
    pthread_mutex_t lock; /* guards `set`, which lanes read; its holder takes no other mutex */
    struct shuf__key_set set;
};

void shuf__keyring_init(struct shuf__keyring *keyring);

/* Replaces all keys by those of a directory (key_files.h), and zeroes the old keys. A failure
 * changes nothing. */
shuf_status shuf__keyring_load(struct shuf__keyring *keyring, const char *directory,
                               struct shuf__error *error);

/* Zeroes all keys. */
void shuf__keyring_close(struct shuf__keyring *keyring);

/* On the loop's thread: if the request has a key, sets its check. `socket` is the client's.
 * Fails with SHUF_DENIED if there is no such key, or if the client may not use it. Both have the
 * same message, so other users do not learn which keys exist. Fails with SHUF_IO if there is no
 * memory to read the groups of the client. */
shuf_status shuf__keyring_admit(const struct shuf__keyring *keyring, uid_t uid, int socket,
                                struct shuf__named_key *key, struct shuf__error *error);

/* On any thread: if the request has a key, puts its bits into the request. Fails with SHUF_BUSY if
 * a reload has replaced that key since shuf__keyring_admit(). */
shuf_status shuf__keyring_reveal(struct shuf__keyring *keyring, struct shuf__request *request,
                                 struct shuf__error *error);

/* Call on the thread that computed with the key. Zeroes the key in the request. Also zeroes the
 * used part of the stack, which may have copies of the key and keys derived from it. */
void shuf__keyring_conceal(struct shuf__request *request);

enum { SHUF__KEY_CHANGES = 400 };

/* Writes "2 changed (a, b), 1 new (c), 1 removed (d)", and returns it. Writes "" if no key has
 * changed. A key has changed if its bits or its group have changed. Leaves out names that do not
 * fit. */
const char *shuf__key_changes(const struct shuf__key_set *before, const struct shuf__key_set *after,
                              char text[SHUF__KEY_CHANGES]);

#endif
