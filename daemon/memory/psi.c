/* SPDX-License-Identifier: MIT
 *
 * See psi.h. The file has a line "some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS". The
 * total is the time in which at least one process waited for memory.
 */
#include "psi.h"

#include "host/kept_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Memory is short if processes wait for a twentieth of the time. A process without privileges may
 * only set windows of 2 s. */
enum { STALL_PART = 20, WINDOW_US = 2000000 };

static bool read_stalled(const struct shuf__psi *psi, uint64_t *stalled_us)
{
    char text[256];
    const char *total =
        shuf__kept_file_read(psi->path, text, sizeof text) ? strstr(text, "total=") : NULL;
    return total && sscanf(total, "total=%" SCNu64, stalled_us) == 1;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct shuf__psi *psi = poll->data;
    if (status < 0) /* the control group is gone */
        uv_poll_stop(poll);
    else if (events & UV_PRIORITIZED)
        psi->on_stall(psi->context);
}

static bool set_trigger(struct shuf__psi *psi, uv_loop_t *loop)
{
    char trigger[64];
    const int length =
        snprintf(trigger, sizeof trigger, "some %d %d", WINDOW_US / STALL_PART, (int)WINDOW_US);
    psi->fd = open(psi->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (psi->fd < 0)
        return false;
    if (write(psi->fd, trigger, (size_t)length + 1) == length + 1 &&
        uv_poll_init(loop, &psi->poll, psi->fd) == 0) {
        psi->poll.data = psi;
        return uv_poll_start(&psi->poll, UV_PRIORITIZED, on_poll) == 0;
    }
    close(psi->fd);
    psi->fd = -1;
    return false;
}

void shuf__psi_open(struct shuf__psi *psi, uv_loop_t *loop, const char *path,
                    void (*on_stall)(void *context), void *context)
{
    *psi = (struct shuf__psi){.on_stall = on_stall, .context = context};
    snprintf(psi->path, sizeof psi->path, "%s", path);
    if (!set_trigger(psi, loop))
        shuf__psi_is_stalled(psi);
}

/* Memory is short only if processes have waited for a large part of the time since the last call.
 * One short wait is normal. */
bool shuf__psi_is_stalled(struct shuf__psi *psi)
{
    uint64_t stalled_us;
    const uint64_t now_us = uv_hrtime() / 1000, elapsed_us = now_us - psi->read_us;
    if (psi->fd >= 0 || elapsed_us < WINDOW_US / STALL_PART || !read_stalled(psi, &stalled_us))
        return false;
    const bool stalled = psi->read_us > 0 && stalled_us > psi->stalled_us &&
                         stalled_us - psi->stalled_us > elapsed_us / STALL_PART;
    psi->stalled_us = stalled_us;
    psi->read_us = now_us;
    return stalled;
}

static void close_trigger(uv_handle_t *poll)
{
    close(((struct shuf__psi *)poll->data)->fd);
}

void shuf__psi_close(struct shuf__psi *psi)
{
    if (psi->fd >= 0 && !uv_is_closing((uv_handle_t *)&psi->poll))
        uv_close((uv_handle_t *)&psi->poll, close_trigger);
}
