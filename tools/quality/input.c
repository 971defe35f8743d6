/* SPDX-License-Identifier: MIT
 *
 * See input.h.
 */
#include "input.h"

#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_UP_MS = 200 };

shuf_status shuf__input_open(struct shuf__input *input, const char *path, struct shuf__error *error)
{
    const bool standard = strcmp(path, "-") == 0;
    input->begun = false;
    input->name = standard ? "standard input" : path;
    input->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0)
        return shuf__fail(error, SHUF_IO, "--in %.128s: %s", path, strerror(errno));
    return SHUF_OK;
}

/* Waits until the input can be read. The thread checks regularly for an interrupt, because another
 * thread may have received the signal. */
static shuf_status wait_for_bytes(const struct shuf__input *input, struct shuf__error *error)
{
    struct pollfd poller = {.fd = input->fd, .events = POLLIN};
    while (!shuf__run_interrupted())
        if (poll(&poller, 1, LOOK_UP_MS) > 0)
            return SHUF_OK;
    return shuf__fail(error, SHUF_CANCELLED, "%.128s: interrupted", input->name);
}

static shuf_status look_at_first(struct shuf__input *input, const void *bytes, size_t size,
                                 struct shuf__error *error)
{
    static const char npy[] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};
    if (input->begun || size < sizeof npy || memcmp(bytes, npy, sizeof npy) != 0) {
        input->begun = true;
        return SHUF_OK;
    }
    return shuf__fail(error, SHUF_INVALID,
                      "%.128s: npy; expected raw values, as --format raw of shufctl writes them",
                      input->name);
}

shuf_status shuf__input_read(struct shuf__input *input, void *bytes, size_t size, size_t *got,
                             struct shuf__error *error)
{
    for (*got = 0; *got < size;) {
        shuf_status status = wait_for_bytes(input, error);
        if (status != SHUF_OK)
            return status;
        const ssize_t now = read(input->fd, (char *)bytes + *got, size - *got);
        if (now < 0 && errno != EINTR)
            return shuf__fail(error, SHUF_IO, "%.128s: %s", input->name, strerror(errno));
        if (now == 0)
            break;
        *got += now > 0 ? (size_t)now : 0;
    }
    return look_at_first(input, bytes, *got, error);
}

void shuf__input_close(const struct shuf__input *input)
{
    if (input->fd > STDERR_FILENO)
        close(input->fd);
}
