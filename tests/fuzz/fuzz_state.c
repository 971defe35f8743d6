/* SPDX-License-Identifier: MIT
 *
 * The daemon's state machine. The input is a script of steps of four clients of three users, such
 * as requests, closes, reloads and failing allocations. The daemon's modules serve the clients in
 * this process. After each step the counts of the daemon must agree, and the leased values must be
 * right. At the end no allocation may be left.
 */
#include "state/requests.h"

#include <inttypes.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 60, HANGS_S = 20 };

static uint64_t steps_done;

static void print_steps(void)
{
    dprintf(2, "stat::steps: %" PRIu64 "\n", steps_done);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    daemon_open();
    atexit(print_steps);
    return 0;
}

/* ---- The loop -------------------------------------------------------------------------------- */

static void turn(void)
{
    daemon_turn();
    for (int i = 0; i < CLIENTS; i++)
        client_read(&clients[i]);
}

static bool is_quiet(void)
{
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].fd >= 0 && clients[i].waits > 0)
            return false;
    return daemon_is_idle();
}

/* Every request is answered. */
static void settle(void)
{
    const time_t end = time(NULL) + HANGS_S;
    for (int quiet = 0; quiet < 3; quiet = is_quiet() ? quiet + 1 : 0) {
        turn();
        if (daemon_computes())
            daemon_wait();
        fuzz_require(time(NULL) < end);
    }
}

/* ---- Steps that are no requests -------------------------------------------------------------- */

static void end_client(struct fuzz_bytes *bytes)
{
    client_close(draw_client(bytes));
}

/* Sends some bytes of the script itself, and closes the client. Skips clients that wait for
 * replies, because those replies would be lost. */
static void send_garbage(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    const size_t size = fuzz_u8(bytes) % 32, there = size < bytes->left ? size : bytes->left;
    if (c->fd < 0 || c->waits > 0)
        return;
    if (there > 0)
        send(c->fd, bytes->at, there, MSG_NOSIGNAL | MSG_DONTWAIT);
    turn();
    client_close(c);
}

static void refuse_memory(struct fuzz_bytes *bytes)
{
    daemon_refuse_memory(fuzz_u8(bytes) % 4);
}

static void reload(struct fuzz_bytes *bytes)
{
    daemon_reload(fuzz_u8(bytes) % DAEMON_SETTINGS);
    clients_forget_keys();
}

static void unmap_released(struct fuzz_bytes *bytes)
{
    client_unmap_released(draw_client(bytes));
    daemon_sweep();
}

static void pause_loop(struct fuzz_bytes *bytes)
{
    for (int turns = fuzz_u8(bytes) % 4; turns > 0; turns--)
        turn();
}

/* ---- The script ------------------------------------------------------------------------------ */

static void (*const steps[])(struct fuzz_bytes *) = {
#define X(name) request_##name,
    REQUESTS(X)
#undef X
        request_permute,
    request_permute,
    request_permute,
    request_release,
    request_hello,
    request_hello,
    end_client,
    pause_loop,
    send_garbage,
    refuse_memory,
    reload,
    reload,
    unmap_released};

enum { STEP_KINDS = sizeof steps / sizeof *steps };

static void start(void)
{
    clients_init();
    requests_reset();
    daemon_reset();
    request_hello(&(struct fuzz_bytes){0});
}

/* Closes all clients. Then checks that nothing is left. */
static void finish(void)
{
    settle();
    for (int i = 0; i < CLIENTS; i++)
        client_close(&clients[i]);
    daemon_refuse_memory(0);
    settle();
    daemon_check_empty(settle);
}

/* If the highest bit of a step is set, the next steps run while the daemon still works on it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes bytes = {data, size};
    start();
    for (int i = 0; i < STEPS && bytes.left > 0; i++) {
        const uint8_t step = fuzz_u8(&bytes);
        steps[(step & 0x7f) % STEP_KINDS](&bytes);
        steps_done++;
        if (step & 0x80)
            continue;
        settle();
        daemon_check();
        clients_check();
    }
    finish();
    return 0;
}
