/* SPDX-License-Identifier: MIT
 *
 * See shortage.h. Polls the available memory every 10 to 250 ms, and more often if less is
 * available. So a program that allocates 4 GiB a second cannot take the rest between two polls.
 * Memory is short if less than min(total / 8, 4 GiB) is available. This limit doubles while
 * processes wait for memory.
 */
#include "shortage.h"

#include "host/kept_file.h"
#include "host/memory_limits.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Pressure stall information ---- */

/* Memory is short if processes wait for a twentieth of the time. A process without privileges may
 * only set windows of 2 s. */
enum { STALL_PART = 20, WINDOW_US = 2000000 };

/* The file has a line "some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS". The total is the
 * time in which at least one process waited for memory. */
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

/* ---- Shortage ---- */

enum {
    SHORT_PART = 8,
    POLL_MIN_MS = 10, /* from one poll to the next */
    POLL_MAX_MS = 250,
};
static const uint64_t short_most = UINT64_C(4) << 30;
static const uint64_t taken_per_ms = UINT64_C(4) << 20; /* bytes that a fast program allocates */

/* The bytes below which memory is short. */
static uint64_t needed_bytes(uint64_t total, bool stalled)
{
    const uint64_t part = total / SHORT_PART, bytes = part < short_most ? part : short_most;
    return stalled ? 2 * bytes : bytes;
}

static uint64_t next_poll_ms(enum shuf__side side, uint64_t margin)
{
    const uint64_t ms = margin / taken_per_ms;
    if (side == SHUF__SIDE_DEVICE || ms > POLL_MAX_MS)
        return POLL_MAX_MS;
    return ms < POLL_MIN_MS ? POLL_MIN_MS : ms;
}

static enum shuf__memory kind_of(enum shuf__side side)
{
    return side == SHUF__SIDE_HOST ? SHUF__MEMORY_MEMFD : SHUF__MEMORY_CUDA_PRIVATE;
}

/* Gives idle memory back if that side is short of memory. Returns the milliseconds until the next
 * poll. Polls the device also while lanes run jobs, but not while the loop's backend computes. */
static uint64_t poll_memory(struct shuf__shortage *shortage, enum shuf__side side, bool stalled)
{
    struct shuf__pool *pool = shortage->pool;
    struct shuf__engine *engine = pool->allocations->engine;
    struct shuf__backend *backend = shuf__engine_backend(engine);
    struct shuf__dropped dropped = {0};
    struct shuf__error ignored;
    uint64_t available, total;
    if ((side == SHUF__SIDE_DEVICE && !shuf__engine_borrow(engine)) ||
        backend->ops->memory(backend, kind_of(side), &available, &total, &ignored))
        return POLL_MAX_MS;
    available += pool->allocations->budgets[side].releasing;
    const uint64_t needed = needed_bytes(total, stalled);
    if (available >= needed)
        return next_poll_ms(side, available - needed);
    shuf__pool_shrink(pool, side, needed - available, &dropped);
    if (dropped.bytes[side] == 0) /* processes have all the idle memory mapped */
        return POLL_MAX_MS;
    shortage->gave_back(shortage, &dropped);
    return POLL_MIN_MS;
}

bool shuf__shortage_allows(const struct shuf__shortage *shortage, enum shuf__side side,
                           uint64_t bytes)
{
    struct shuf__engine *engine = shortage->pool->allocations->engine;
    struct shuf__backend *backend = shuf__engine_backend(engine);
    struct shuf__error ignored;
    uint64_t available, total;
    if ((side == SHUF__SIDE_DEVICE && !shuf__engine_borrow(engine)) ||
        backend->ops->memory(backend, kind_of(side), &available, &total, &ignored))
        return false;
    return available >= bytes && available - bytes >= needed_bytes(total, true);
}

/* ---- When to poll ---- */

static bool is_stalled(struct shuf__shortage *shortage)
{
    bool stalled = false;
    for (int i = 0; i < SHUF__PSI_FILES; i++)
        stalled |= shuf__psi_is_stalled(&shortage->psi[i]);
    return stalled;
}

static void on_timer(uv_timer_t *timer)
{
    struct shuf__shortage *shortage = timer->data;
    const enum shuf__side side = (enum shuf__side)(timer - shortage->timers);
    if (shortage->pool->idle_bytes[side] == 0)
        return;
    const bool stalled = side == SHUF__SIDE_HOST && is_stalled(shortage);
    uv_timer_start(timer, on_timer, poll_memory(shortage, side, stalled), 0);
}

static void on_stall(void *context)
{
    struct shuf__shortage *shortage = context;
    if (shortage->pool->idle_bytes[SHUF__SIDE_HOST] > 0)
        poll_memory(shortage, SHUF__SIDE_HOST, true);
}

static void on_idle(void *context, enum shuf__side side)
{
    struct shuf__shortage *shortage = context;
    uv_timer_t *timer = &shortage->timers[side];
    if (!uv_is_active((uv_handle_t *)timer))
        uv_timer_start(timer, on_timer, POLL_MIN_MS, 0);
}

/* ---- All of it ---- */

/* Opens the files of the machine and of the control group. Only groups of version 2 have such a
 * file. */
static void open_psi(struct shuf__shortage *shortage, uv_loop_t *loop, const char *root)
{
    char path[PATH_MAX];
    struct shuf__cgroup groups[SHUF__CGROUP_VERSIONS];
    shuf__cgroups_find(root, groups);
    snprintf(path, sizeof path, "%s/proc/pressure/memory", root);
    shuf__psi_open(&shortage->psi[0], loop, path, on_stall, shortage);
    path[0] = '\0';
    if (groups[0].path[0] && strlen(groups[0].path) + sizeof "/memory.pressure" <= sizeof path)
        strcat(strcpy(path, groups[0].path), "/memory.pressure");
    shuf__psi_open(&shortage->psi[1], loop, path, on_stall, shortage);
}

void shuf__shortage_init(struct shuf__shortage *shortage, uv_loop_t *loop, struct shuf__pool *pool,
                         const char *root)
{
    shortage->pool = pool;
    pool->on_idle = on_idle;
    pool->idle_context = shortage;
    for (int side = 0; side < SHUF__SIDES; side++) {
        uv_timer_init(loop, &shortage->timers[side]);
        shortage->timers[side].data = shortage;
    }
    open_psi(shortage, loop, root);
}

void shuf__shortage_close(struct shuf__shortage *shortage)
{
    for (int side = 0; side < SHUF__SIDES; side++)
        if (!uv_is_closing((uv_handle_t *)&shortage->timers[side]))
            uv_close((uv_handle_t *)&shortage->timers[side], NULL);
    for (int i = 0; i < SHUF__PSI_FILES; i++)
        shuf__psi_close(&shortage->psi[i]);
}

/* ---- This process ---- */

/* uv_resident_set_memory() would close its file each time (kept_file.h). */
bool shuf__resident_bytes(uint64_t *bytes)
{
    char text[256];
    uint64_t pages;
    if (!shuf__kept_file_read("/proc/self/statm", text, sizeof text) ||
        sscanf(text, "%*u %" SCNu64, &pages) != 1)
        return false;
    *bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return true;
}
