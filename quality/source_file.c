/* SPDX-License-Identifier: MIT
 *
 * Rows from a file or standard input: raw little-endian words, row after row, as
 * `shufctl permute --epochs 0:S --format raw --out -` writes them.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 8192, LOOK_UP_MS = 200 };

struct input {
    int fd;
    const char *name;
    uint32_t n;
    bool wide;
};

static shuf_status open_file(void *state, const struct shuf__origin *origin, uint32_t n,
                             struct shuf__error *error)
{
    struct input *in = state;
    const bool standard = strcmp(origin->input, "-") == 0;
    in->name = standard ? "standard input" : origin->input;
    in->fd = standard ? STDIN_FILENO : open(origin->input, O_RDONLY | O_CLOEXEC);
    in->n = n;
    in->wide = origin->wide;
    if (in->fd < 0)
        return shuf__fail(error, SHUF_IO, "--in %.128s: %s", origin->input, strerror(errno));
    return SHUF_OK;
}

/* The signal that interrupts may have gone to another thread, so this one looks up now and then. */
static shuf_status wait_for_bytes(const struct input *in, struct shuf__error *error)
{
    struct pollfd poller = {.fd = in->fd, .events = POLLIN};
    while (!shuf__run_interrupted())
        if (poll(&poller, 1, LOOK_UP_MS) > 0)
            return SHUF_OK;
    return shuf__fail(error, SHUF_CANCELLED, "%.128s: interrupted", in->name);
}

/* As many bytes as are wanted, fewer only at the end. */
static shuf_status read_bytes(const struct input *in, void *bytes, size_t wanted, size_t *got,
                              struct shuf__error *error)
{
    for (*got = 0; *got < wanted;) {
        shuf_status status = wait_for_bytes(in, error);
        if (status != SHUF_OK)
            return status;
        const ssize_t now = read(in->fd, (char *)bytes + *got, wanted - *got);
        if (now < 0 && errno != EINTR)
            return shuf__fail(error, SHUF_IO, "%.128s: %s", in->name, strerror(errno));
        if (now == 0)
            break;
        *got += now > 0 ? (size_t)now : 0;
    }
    return SHUF_OK;
}

/* u64; none of 2^32 or more is below n. `got` counts values that were narrowed. */
static shuf_status narrow(const struct input *in, const uint64_t *wide, size_t count,
                          uint64_t first, size_t got, uint32_t *values, struct shuf__error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (wide[i] >= in->n)
            return shuf__fail(error, SHUF_INVALID,
                              "row %" PRIu64 ": value %" PRIu64 " at position %zu"
                              ": expected a permutation of 0 to %" PRIu32,
                              first + (got + i) / in->n, wide[i], (got + i) % in->n, in->n - 1);
        values[got + i] = (uint32_t)wide[i];
    }
    return SHUF_OK;
}

static shuf_status read_wide(const struct input *in, uint64_t first, uint32_t *values,
                             size_t wanted, size_t *bytes, struct shuf__error *error)
{
    uint64_t buffer[BUFFER];
    size_t now = 1;
    *bytes = 0;
    for (size_t got = 0; got < wanted && now != 0; got += now / sizeof *buffer) {
        const size_t ask = wanted - got < BUFFER ? wanted - got : BUFFER;
        shuf_status status = read_bytes(in, buffer, ask * sizeof *buffer, &now, error);
        if (status == SHUF_OK)
            status = narrow(in, buffer, now / sizeof *buffer, first, got, values, error);
        if (status != SHUF_OK)
            return status;
        *bytes += now;
        if (now < ask * sizeof *buffer)
            break;
    }
    return SHUF_OK;
}

static shuf_status read_file(void *state, const struct shuf__ask *ask, uint32_t *rows,
                             size_t *count, struct shuf__error *error)
{
    const struct input *in = state;
    const unsigned width = in->wide ? 8 : 4;
    const size_t wanted = ask->count * in->n, row = (size_t)in->n * width;
    size_t bytes;
    shuf_status status = in->wide ? read_wide(in, ask->first, rows, wanted, &bytes, error)
                                  : read_bytes(in, rows, wanted * sizeof *rows, &bytes, error);
    if (status != SHUF_OK)
        return status;
    *count = bytes / row;
    if (bytes % row != 0)
        return shuf__fail(error, SHUF_INVALID,
                          "row %" PRIu64 ": ends after %zu bytes, in value number %zu"
                          ": expected %" PRIu32 " values of %u bytes",
                          ask->first + *count, bytes % row, bytes % row / width, in->n, width);
    return SHUF_OK;
}

static void close_file(void *state)
{
    const struct input *in = state;
    if (in->fd > STDERR_FILENO)
        close(in->fd);
}

const struct shuf__source_type shuf__source_file = {
    .name = "file",
    .data = true,
    .state = sizeof(struct input),
    .open = open_file,
    .read = read_file,
    .close = close_file,
};
