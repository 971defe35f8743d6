/* SPDX-License-Identifier: MIT
 *
 * The counts of one client of an endurance run. They are in a file that the client maps, so they
 * survive its death by SIGKILL. tests/soak/machine.py reads them by the same layout. A program
 * includes this file once.
 */
#ifndef SHUF__SOAK_SLOT_H
#define SHUF__SOAK_SLOT_H

#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

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

static struct slot *slot;
static volatile sig_atomic_t slot_stop; /* set by SIGTERM: the client ends after its current call */

static void on_term(int number)
{
    (void)number;
    slot_stop = 1;
}

/* Maps the file and catches SIGTERM. A failure ends the program. */
static void slot_open(const char *path)
{
    const struct sigaction action = {.sa_handler = on_term};
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    void *memory =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *slot, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED || sigaction(SIGTERM, &action, NULL))
        err(1, "%s", path);
    close(fd);
    slot = memory;
}

/* Keeps the first text. */
__attribute__((format(printf, 1, 2))) static inline void slot_note(const char *format, ...)
{
    va_list arguments;
    if (slot->text[0])
        return;
    va_start(arguments, format);
    vsnprintf(slot->text, sizeof slot->text, format, arguments);
    va_end(arguments);
}

#endif
