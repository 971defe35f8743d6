/* SPDX-License-Identifier: MIT
 *
 * The daemon's modules in this process, with a CPU backend that can run out of memory, users whom
 * the target names, and named keys that a reload replaces.
 */
#ifndef SHUF__FUZZ_DAEMON_H
#define SHUF__FUZZ_DAEMON_H

#include "shuf/key.h"

#include <stdbool.h>
#include <stdint.h>

enum { DAEMON_LEASES = 16 }; /* most leases of a connection; prefetches and copies do not count */

void daemon_open(void);

/* The settings at the beginning of each input. */
void daemon_reset(void);

/* Opens a connection of that user. Returns the client's end. */
int daemon_connect(uint32_t uid);

/* Runs the loop once. */
void daemon_turn(void);

/* Whether no request is handled and no job waits. */
bool daemon_is_idle(void);

/* Whether jobs run on other threads. */
bool daemon_computes(void);

/* Waits for an event of the loop, but at most a millisecond. */
void daemon_wait(void);

/* ---- Events outside of requests ---- */

/* The next `count` allocations of the backend fail. */
void daemon_refuse_memory(unsigned count);

/* Changes a key of the configuration, as a reload does. There are DAEMON_SETTINGS of them. */
enum { DAEMON_SETTINGS = 24 };
void daemon_reload(unsigned setting);

/* Checks which blocks their processes have unmapped. */
void daemon_sweep(void);

/* ---- Named keys ---- */

/* The name of a key, and its bits now. False: the daemon has no such key now. A user who is not
 * privileged may use only `DAEMON_OPEN_KEY`. */
enum { DAEMON_NO_KEY, DAEMON_OPEN_KEY, DAEMON_SECRET_KEY, DAEMON_UNKNOWN_KEY, DAEMON_KEYS };
const char *daemon_key_name(unsigned key);
bool daemon_key_bits(unsigned key, shuf_key *bits);

/* ---- Books ---- */

/* Ends the process if counts of the daemon do not agree with its lists. */
void daemon_check(void);

/* Frees all idle memory. Then ends the process if anything is left. */
void daemon_check_empty(void (*settle)(void));

#endif
