/* SPDX-License-Identifier: MIT
 *
 * See daemon.h.
 */
#include "daemon.h"

#include "process.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const double start_ns = 60e9;

static void show_log(void)
{
    char line[512];
    FILE *file = fopen(process_file("shufd.log"), "re");
    while (file && fgets(line, sizeof line, file))
        fprintf(stderr, "    shufd| %s", line);
    if (file)
        fclose(file);
}

shuf *daemon_connect(const struct daemon *daemon)
{
    shuf *handle;
    shuf_status status = shuf_connect(&handle, daemon->socket);
    if (status != SHUF_OK) {
        show_log();
        die("shufd: %s", handle ? shuf_message(handle) : shuf_status_message(status));
    }
    return handle;
}

void daemon_status(const struct daemon *daemon, shuf_daemon *status)
{
    shuf *handle = daemon_connect(daemon);
    if (shuf_daemon_status(handle, status) != SHUF_OK)
        die("shufd: %s", shuf_message(handle));
    shuf_close(handle);
}

static bool is_listening(const struct daemon *daemon)
{
    shuf *handle;
    shuf_status status = shuf_connect(&handle, daemon->socket);
    shuf_close(handle);
    return status == SHUF_OK;
}

static void wait_until_listening(const struct daemon *daemon)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    double start = now_ns();
    while (!is_listening(daemon)) {
        int status;
        if (process_ended(daemon->pid, &status) || now_ns() - start > start_ns) {
            show_log();
            die("shufd did not start");
        }
        nanosleep(&pause, NULL);
    }
}

static const char *write_config(const char *config)
{
    const char *path = process_file("shufd.conf");
    FILE *file = fopen(path, "we");
    if (!file || fputs(config, file) < 0)
        die("%s: cannot write the file", path);
    fclose(file);
    return path;
}

void daemon_start_with(struct daemon *daemon, const char *name, const char *backend,
                       const char *config, const char *log)
{
    char lock[32];
    shuf_daemon status;
    daemon->socket = process_file(name);
    snprintf(lock, sizeof lock, "%s.lock", name);
    process_file(lock); /* deletes the daemon's lock file at exit */
    const char *argv[] = {
        SHUFD_PATH, "--config", write_config(config), "--socket", daemon->socket, "--backend",
        backend,    NULL};
    daemon->pid = process_start(argv, log);
    wait_until_listening(daemon);
    daemon_status(daemon, &status);
    snprintf(daemon->backend, sizeof daemon->backend, "%s", status.backend);
    snprintf(daemon->device_id, sizeof daemon->device_id, "%s", status.device_id);
}

/* The benchmark has the machine for itself, so the daemon may use and keep nearly all memory. */
void daemon_start(struct daemon *daemon, const char *backend)
{
    daemon_start_with(daemon, "shufd", backend,
                      "host_memory = 90%\ndevice_memory = 90%\n"
                      "host_cache = 90%\ndevice_cache = 90%\n",
                      process_file("shufd.log"));
}

void daemon_stop(struct daemon *daemon)
{
    int status = process_end(daemon->pid, SIGTERM);
    if (status != 0) {
        show_log();
        die("shufd ended with wait status 0x%x, expected 0", (unsigned)status);
    }
    daemon->pid = 0;
}

void daemon_fact(const struct daemon *daemon, struct report *report, const char *name)
{
    shuf_daemon status;
    char fact[256];
    daemon_status(daemon, &status);
    snprintf(fact, sizeof fact, "%s, %s: %s (%s)", status.version, status.backend, status.device,
             status.device_id);
    report_fact(report, name, fact);
}

/* ---- A CUDA context ---- */

/* The prototypes are those of cuda.h, whose layout they share since CUDA 4.0. */
struct driver {
    int (*init)(unsigned flags);
    int (*count)(int *devices);
    int (*get)(int *device, int ordinal);
    int (*uuid)(unsigned char uuid[16], int device);
    int (*retain)(void **context, int device);
    int (*set_current)(void *context);
};

static const char *load(struct driver *driver)
{
    const struct {
        const char *name;
        void *place;
    } symbols[] = {
        {"cuInit", &driver->init},
        {"cuDeviceGetCount", &driver->count},
        {"cuDeviceGet", &driver->get},
        {"cuDeviceGetUuid", &driver->uuid},
        {"cuDevicePrimaryCtxRetain", &driver->retain},
        {"cuCtxSetCurrent", &driver->set_current},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return "libcuda.so.1 is not installed";
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol)
            return "libcuda.so.1 lacks a function";
        memcpy(symbols[i].place, &symbol, sizeof symbol);
    }
    return NULL;
}

/* "GPU-01234567-89ab-cdef-0123-456789abcdef", as the daemon names it. */
static void name_of(const unsigned char uuid[16], char name[64])
{
    int used = snprintf(name, 64, "GPU");
    for (int i = 0; i < 16; i++)
        used += snprintf(name + used, 64 - (size_t)used, "%s%02x",
                         i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

const char *context_hold(const char *device_id)
{
    struct driver driver;
    int devices, device;
    const char *why = load(&driver);
    if (why)
        return why;
    if (driver.init(0) != 0 || driver.count(&devices) != 0)
        return "cannot initialise libcuda";
    for (int i = 0; i < devices; i++) {
        unsigned char uuid[16];
        char name[64];
        void *context;
        if (driver.get(&device, i) != 0 || driver.uuid(uuid, device) != 0)
            return "cannot read the UUID of a GPU";
        name_of(uuid, name);
        if (strcmp(name, device_id) != 0)
            continue;
        if (driver.retain(&context, device) != 0 || driver.set_current(context) != 0)
            return "cannot create a context on the GPU";
        return NULL;
    }
    return "the daemon's GPU is not visible to this process";
}
