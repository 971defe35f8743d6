/* SPDX-License-Identifier: MIT
 *
 * shufd with a device that can hang: while the file /run/device-hangs exists, no computation of the
 * CPU backend returns. It serves the socket that systemd passes.
 */
#include "backend.h"
#include "server.h"

#include <signal.h>
#include <unistd.h>

static struct shuf__backend_ops ops;

static shuf_status launch(struct shuf__backend *backend,
                          const struct shuf__computation *computation, struct shuf__block *block,
                          struct shuf__error *error)
{
    while (access("/run/device-hangs", F_OK) == 0)
        usleep(10000);
    return shuf__cpu_ops.launch(backend, computation, block, error);
}

/* Replaces kernels/backends.c. */
shuf_status shuf__backend_open(const char *spec, unsigned threads, struct shuf__backend **backend,
                               struct shuf__error *error)
{
    (void)spec;
    if (shuf__cpu_ops.open(NULL, threads, backend, error))
        return error->status;
    ops = shuf__cpu_ops;
    ops.launch = launch;
    ops.quick = 0; /* no computation hangs the loop */
    (*backend)->ops = &ops;
    return SHUF_OK;
}

shuf_status shuf__backend_check(const char *spec, struct shuf__error *error)
{
    (void)spec;
    (void)error;
    return SHUF_OK;
}

int main(void)
{
    struct shuf__config config;
    struct shuf__log log;
    shuf__config_init(&config);
    shuf__log_init(&log, SHUF__LOG_INFO);
    signal(SIGPIPE, SIG_IGN);
    return shuf__server_run(&config, &log);
}
