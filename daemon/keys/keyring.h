/* SPDX-License-Identifier: MIT
 *
 * The daemon's named keys. Their bits are in one mapping that is locked in memory and left out of
 * core dumps. Requests and cache entries have only a key's name and generation; a computation gets
 * the bits at its launch.
 */
#ifndef SHUFD_KEYRING_H
#define SHUFD_KEYRING_H

#include "key_set.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct shuf__keyring {
    pthread_mutex_t lock; /* for `set`, which the threads of lanes read; no other is taken inside */
    struct shuf__key_set set;
    uint64_t generations;
};

void shuf__keyring_init(struct shuf__keyring *keyring);

/* Replaces all keys by those of a directory (key_files.h), and zeroes those that are gone. A key
 * with the same name and bits as before keeps its generation. A failure changes nothing. */
shuf_status shuf__keyring_load(struct shuf__keyring *keyring, const char *directory,
                               struct shuf__error *error);

/* Zeroes all keys. */
void shuf__keyring_close(struct shuf__keyring *keyring);

/* On the loop's thread: sets the generation of a request's key, if it has one. `socket`: of the
 * client. Fails with SHUF_DENIED if there is no such key, or the client may not use it, in the same
 * words: nobody else learns which keys exist. */
shuf_status shuf__keyring_admit(const struct shuf__keyring *keyring, uid_t uid, int socket,
                                struct shuf__named_key *key, struct shuf__error *error);

/* On any thread: puts the bits of the request's key, if it has one, into the request. Fails with
 * SHUF_BUSY if a reload has removed that generation of the key meanwhile. */
shuf_status shuf__keyring_reveal(struct shuf__keyring *keyring, struct shuf__request *request,
                                 struct shuf__error *error);

/* On the thread that computed with the key: zeroes it in the request, and the copies of it and of
 * its derived keys that functions have left on the stack. */
void shuf__keyring_conceal(struct shuf__request *request);

#endif
