/* SPDX-License-Identifier: MIT
 *
 * See slot.h.
 */
#include "slot.h"

#include <err.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct slot *slot;
volatile sig_atomic_t slot_stop;

static void on_term(int number)
{
    (void)number;
    slot_stop = 1;
}

void slot_open(const char *path)
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

void slot_note(const char *format, ...)
{
    va_list arguments;
    if (slot->text[0])
        return;
    va_start(arguments, format);
    vsnprintf(slot->text, sizeof slot->text, format, arguments);
    va_end(arguments);
}
