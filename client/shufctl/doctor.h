/* SPDX-License-Identifier: MIT
 *
 * The checks of `shufctl doctor`. Each one looks at one thing, and says what to do about it.
 */
#ifndef SHUF__DOCTOR_H
#define SHUF__DOCTOR_H

#include "shuf.h"

#include <stdbool.h>
#include <stdio.h>

enum shuf__finding_level {
    SHUF__FINDING_OK,
    SHUF__FINDING_NOTE, /* works, but could be better */
    SHUF__FINDING_FAULT,
};

enum { SHUF__FINDING_TEXT = 640 };

struct shuf__finding {
    enum shuf__finding_level level;
    char text[SHUF__FINDING_TEXT];
    char advice[SHUF__FINDING_TEXT]; /* "" if there is nothing to do */
};

/* The machine and the daemon that are checked. */
struct shuf__patient {
    const char *root;         /* a prefix of all paths; "" except in tests */
    const char *given_socket; /* the value of --socket, or NULL */
    shuf *handle;
    shuf_status status; /* of the connection */
    shuf_daemon daemon; /* if that is SHUF_OK */
};

struct shuf__check {
    const char *name;
    void (*run)(const struct shuf__patient *patient, struct shuf__finding *finding);
};

/* Ends with a check without a name. */
extern const struct shuf__check shuf__machine_checks[], shuf__daemon_checks[];

/* Sets the finding; `advice` NULL: none. */
void shuf__find(struct shuf__finding *finding, enum shuf__finding_level level, const char *advice,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The finding about a unit of systemd from the output of `systemctl show UNIT`. Returns whether the
 * unit neither starts nor stops. */
bool shuf__find_unit_state(struct shuf__finding *finding, const char *unit, FILE *properties);

/* Opens a file that another user may have named or made. NULL: it is no file; to open a FIFO or a
 * device could wait or do harm. */
FILE *shuf__patient_open(const char *path);

/* Reads the beginning of ROOT/PATH as a string; false if it cannot be read. Ends the program
 * without memory or descriptors, or after an error of a device. */
bool shuf__patient_read(const struct shuf__patient *patient, const char *path, char *text,
                        size_t size);

#endif
