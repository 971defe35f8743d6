/* SPDX-License-Identifier: MIT
 *
 * The counts of one client of an endurance run. They are in a file that the client maps, so they
 * survive its death by SIGKILL. tests/soak/machine.py reads them by the same layout.
 */
#ifndef SHUF__SOAK_SLOT_H
#define SHUF__SOAK_SLOT_H

#include <signal.h>
#include <stdint.h>

enum { SLOT_TEXT = 256 };

struct slot {
    uint64_t calls;       /* that succeeded, with right values */
    uint64_t values;      /* compared with the inline C */
    uint64_t busy;        /* refused with SHUF_BUSY */
    uint64_t cancelled;   /* ended early, as the client wanted */
    uint64_t failed;      /* any other status */
    uint64_t wrong;       /* wrong values */
    uint64_t worst_ns;    /* the longest call since machine.py wrote 0 */
    char text[SLOT_TEXT]; /* the first failure or wrong value */
};

extern struct slot *slot;

/* Set by SIGTERM: the client ends after its current call. */
extern volatile sig_atomic_t slot_stop;

/* Maps the file and catches SIGTERM. A failure ends the program. */
void slot_open(const char *path);

/* Keeps the first text. */
void slot_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
