/* SPDX-License-Identifier: MIT
 *
 * The public calls that make, configure and free a handle, and the search of a daemon.
 */
#include "api_lease.h"
#include "arguments.h"
#include "call.h"
#include "client_socket.h"
#include "handle.h"
#include "socket.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The GPU of this process ---- */

/* It is found without initialising or loading CUDA: a program that has not loaded libcuda has no
 * CUDA context. */

enum { GPU_ID = 48, GPU_WHY = 96 };

/* The answer of one source. */
struct gpu_hint {
    char id[GPU_ID];   /* "GPU-<uuid>", or the first characters of one; "": unknown */
    char why[GPU_WHY]; /* for a message: the source and its value */
    bool names_gpu;    /* also if its id is unknown */
};

static bool find(void *library, const char *symbol, void *function)
{
    void *address = dlsym(library, symbol);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static bool uuid_of_context(void *library, uint8_t uuid[16])
{
    int device;
    int (*get_device)(int *device);
    int (*get_uuid)(uint8_t uuid[16], int device);
    return find(library, "cuCtxGetDevice", (void *)&get_device) &&
           find(library, "cuDeviceGetUuid_v2", (void *)&get_uuid) && get_device(&device) == 0 &&
           get_uuid(uuid, device) == 0;
}

static void write_uuid(const uint8_t uuid[16], char id[GPU_ID])
{
    char *out = stpcpy(id, "GPU");
    for (int i = 0; i < 16; i++) {
        const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        out += sprintf(out, "%s%02x", dash ? "-" : "", uuid[i]);
    }
}

/* The GPU of the current CUDA context of this thread. */
static void gpu_of_context(struct gpu_hint *hint)
{
    uint8_t uuid[16];
    void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY | RTLD_LOCAL);
    *hint = (struct gpu_hint){.why = "none"};
    if (library && uuid_of_context(library, uuid)) {
        write_uuid(uuid, hint->id);
        hint->names_gpu = true;
        snprintf(hint->why, sizeof hint->why, "%s", hint->id);
    }
    if (library)
        dlclose(library);
}

/* Reads the word behind a key of the GPU's file. False if the key is not there. */
static bool read_gpu(const char *gpus, const char *name, const char *key, char word[GPU_ID])
{
    char path[1024], line[256];
    bool found = false;
    snprintf(path, sizeof path, "%s/%s/information", gpus, name);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file))
        found =
            strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%47s", word) == 1;
    if (file)
        fclose(file);
    return found;
}

/* Whether this process may use the device file of the GPU. The control group of a job or a
 * container may allow only some GPUs. CUDA counts these, and the directory lists all. */
static bool is_usable(const char *gpus, const char *name)
{
    char path[64], minor[GPU_ID];
    if (!read_gpu(gpus, name, "Device Minor:", minor))
        return true;
    snprintf(path, sizeof path, "/dev/nvidia%s", minor);
    return access(path, R_OK | W_OK) == 0;
}

static int is_gpu(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The name of each directory is the GPU's address on the bus. All names have the same length, so
 * their order is the order of CUDA's indices. A process that may use no GPU cannot mean CUDA's
 * indices, so it gets all GPUs. */
static int scan_gpus(const char *path, struct dirent ***names)
{
    const int found = scandir(path, names, is_gpu, alphasort);
    int usable = 0, count = 0;
    for (int i = 0; i < found; i++)
        usable += is_usable(path, (*names)[i]->d_name);
    for (int i = 0; i < found; i++)
        if (usable > 0 && !is_usable(path, (*names)[i]->d_name))
            free((*names)[i]);
        else
            (*names)[count++] = (*names)[i];
    return count;
}

static bool is_by_place(int gpus)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    return gpus == 1 || (order && strcmp(order, "PCI_BUS_ID") == 0);
}

/* SHUFD_GPUS replaces the directory for tests, as in the generator of the instances. */
static void take_index(unsigned long index, struct gpu_hint *hint)
{
    struct dirent **names = NULL;
    const char *given = getenv("SHUFD_GPUS"), *path = given ? given : "/proc/driver/nvidia/gpus";
    const int count = scan_gpus(path, &names);
    hint->names_gpu = count > 0;
    if (count > 0 && !is_by_place(count))
        snprintf(hint->why, sizeof hint->why,
                 "index %lu, which names a GPU only with CUDA_DEVICE_ORDER=PCI_BUS_ID", index);
    else if (index < (unsigned long)count) {
        read_gpu(path, names[index]->d_name, "GPU UUID:", hint->id);
        snprintf(hint->why, sizeof hint->why, "index %lu: %s", index, hint->id);
    } else if (count > 0)
        snprintf(hint->why, sizeof hint->why, "index %lu: no such GPU; this process may use %d",
                 index, count);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

/* The first GPU of CUDA_VISIBLE_DEVICES, which is the process's device 0. An index counts only with
 * CUDA_DEVICE_ORDER=PCI_BUS_ID, or if there is one GPU. CUDA's indices then have the order of
 * /proc. CUDA's default order is by speed, and only the driver knows it. */
static void gpu_of_environment(struct gpu_hint *hint)
{
    const char *value = getenv("CUDA_VISIBLE_DEVICES");
    const size_t length = value ? strcspn(value, ",") : 0;
    *hint = (struct gpu_hint){.why = "not set"};
    if (!value)
        return;
    snprintf(hint->why, sizeof hint->why, "%.*s", (int)(length < 48 ? length : 48), value);
    hint->names_gpu = strncmp(value, "GPU-", 4) == 0;
    if (hint->names_gpu && length < sizeof hint->id)
        memcpy(hint->id, value, length);
    else if (isdigit((unsigned char)value[0]) && strspn(value, "0123456789") == length)
        take_index(strtoul(value, NULL, 10), hint);
}

/* ---- The search ---- */

/* Finds the daemon of a client that names no socket. shuf_connect(3) has the order. The search
 * stops at the first socket that exists, even if no daemon answers on it. The next socket could
 * belong to the daemon of another GPU. */

enum { ENOUGH = 2 }; /* from this number of sockets on, the client cannot choose one */

static const char instances[] = "GPU-";

/* The only instance whose name begins with `prefix`; false if there are none or several. */
static bool find_instance(const char *prefix, struct sockaddr_un *address)
{
    struct sockaddr_un found[ENOUGH];
    if (!*prefix || shuf__socket_list(prefix, found, ENOUGH) != 1)
        return false;
    *address = found[0];
    return true;
}

static bool find_by_gpu(void (*ask)(struct gpu_hint *hint), struct sockaddr_un *address,
                        bool *names_gpu)
{
    struct gpu_hint hint;
    ask(&hint);
    *names_gpu |= hint.names_gpu;
    return find_instance(hint.id, address);
}

static bool names_socket(void)
{
    const char *variable = getenv("SHUFD_SOCKET");
    return variable && *variable;
}

static shuf_status find_daemon(struct sockaddr_un *address, struct shuf__error *error)
{
    bool names_gpu = false;
    if (!names_socket() && (find_by_gpu(gpu_of_context, address, &names_gpu) ||
                            find_by_gpu(gpu_of_environment, address, &names_gpu)))
        return SHUF_OK;
    if (shuf__socket_address(NULL, SHUF__SOCKET_CONNECT, address, error))
        return error->status;
    if (!names_socket() && !names_gpu && access(address->sun_path, F_OK) != 0)
        find_instance(instances, address);
    return SHUF_OK;
}

__attribute__((format(printf, 2, 3))) static void append(struct shuf__error *error,
                                                         const char *format, ...)
{
    va_list args;
    const size_t length = strlen(error->text);
    va_start(args, format);
    vsnprintf(error->text + length, sizeof error->text - length, format, args);
    va_end(args);
}

static void explain_own(struct shuf__error *error)
{
    const char *own = getenv("XDG_RUNTIME_DIR");
    if (geteuid() == 0)
        append(error, ", $XDG_RUNTIME_DIR (not for root)");
    else if (!own || !*own)
        append(error, ", $XDG_RUNTIME_DIR (not set)");
    else
        append(error, ", $XDG_RUNTIME_DIR (%.40s/shufd.sock)", own);
}

/* hint: the GPU that the process names */
static void explain_instances(const struct gpu_hint *hint, struct shuf__error *error)
{
    struct sockaddr_un found[ENOUGH];
    const size_t count = shuf__socket_list(instances, found, ENOUGH);
    const char *number = count == 0 ? "none" : count < ENOUGH ? "one" : "several";
    append(error, ", %.40s/GPU-*.sock (%s", shuf__socket_directory(), number);
    if (count > 0 && *hint->id && shuf__socket_list(hint->id, found, ENOUGH) == 0)
        append(error, ", but no daemon of this GPU: systemctl --failed may show why");
    else if (count >= ENOUGH)
        append(error, ": choose one by CUDA_VISIBLE_DEVICES=UUID or SHUFD_SOCKET");
    else if (count > 0 && hint->names_gpu)
        append(error, ", perhaps of another GPU: if not, set CUDA_VISIBLE_DEVICES=UUID");
    append(error, ")");
}

/* Adds to a connection error the places that were tried, in order, with the variable that sets
 * each. */
static void explain_search(struct shuf__error *error)
{
    struct gpu_hint context, environment;
    if (error->status == SHUF_BUSY) /* a daemon answered: the path is right */
        return;
    if (names_socket() || error->status != SHUF_NO_DAEMON) {
        shuf__socket_explain(error);
        return;
    }
    gpu_of_context(&context);
    gpu_of_environment(&environment);
    append(error,
           "; tried in this order: $SHUFD_SOCKET (not set), CUDA context (%s), "
           "CUDA_VISIBLE_DEVICES (%s)",
           context.why, environment.why);
    explain_own(error);
    append(error, ", %.40s/shufd.sock", shuf__socket_directory());
    explain_instances(context.names_gpu ? &context : &environment, error);
}

static bool must_choose(const char *path, const char *socket)
{
    struct sockaddr_un found;
    return !socket && !names_socket() && access(path, F_OK) != 0 &&
           shuf__socket_list(instances, &found, 1) > 0;
}

/* Ends the error of a client that found no daemon on `path` with the hint to start one. Does not if
 * the path has another kind of file, or if the client must choose one of the running daemons.
 * socket: as in shuf_connect(). */
static void hint_start(const char *path, const char *socket, struct shuf__error *error)
{
    const bool fits = strlen(error->text) + sizeof SHUF__START_HINT <= sizeof error->text;
    if (error->status == SHUF_NO_DAEMON && fits && !shuf__is_other_file(path) &&
        !must_choose(path, socket))
        append(error, SHUF__START_HINT);
}

/* ---- The calls ---- */

enum { RECONNECT_MS = 10000 };

static void set_timeout(shuf *h, unsigned milliseconds)
{
    h->connection.timeout_ns = milliseconds * UINT64_C(1000000);
}

/* A socket of NULL selects the default daemon of the caller. */
static shuf_status connect_to(shuf *h, const char *socket)
{
    struct sockaddr_un *address = &h->connection.address;
    if (socket ? shuf__socket_address(socket, SHUF__SOCKET_CONNECT, address, &h->error)
               : find_daemon(address, &h->error)) {
        address->sun_path[0] = '\0'; /* a truncated path must not be used */
    } else if (shuf__connection_open(&h->connection, &h->error) == SHUF_NO_DAEMON &&
               h->connection.generation > 0) { /* a daemon accepted the connection, and ended */
        h->lost_daemon = true;
        return shuf__call_await_daemon(h);
    }
    if (h->error.status != SHUF_OK && !socket)
        explain_search(&h->error);
    hint_start(address->sun_path, socket, &h->error);
    return h->error.status;
}

shuf_status shuf_connect(shuf **handle, const char *socket)
{
    return shuf_connect_within(handle, socket, 0);
}

shuf_status shuf_connect_within(shuf **handle, const char *socket, unsigned milliseconds)
{
    if (!handle)
        return shuf__fail(shuf__error_of(NULL), SHUF_INVALID,
                          "handle NULL: expected the address of a pointer");
    shuf *h = *handle = calloc(1, sizeof *h);
    if (!h)
        return shuf__fail(shuf__error_of(NULL), SHUF_NO_MEMORY, "handle: out of memory");
    h->process = getpid();
    SHUF__BEGIN_CALL(call, h);
    h->reconnect_ms = RECONNECT_MS;
    h->connection.fd = -1;
    h->connection.cancel = (struct shuf__cancel){.mutex = PTHREAD_MUTEX_INITIALIZER, .fd = -1};
    shuf__mappings_open(&h->mappings);
    set_timeout(h, milliseconds);
    return connect_to(call, socket && *socket ? socket : NULL);
}

void shuf_close(shuf *handle)
{
    const struct shuf__argument none[] = {{NULL, false}};
    if (!handle || !shuf__begin_call(handle, none))
        return;
    const bool ours = shuf__handle_is_ours(handle);
    const bool had_device_memory = handle->mappings.gpus;
    if (!ours)
        shuf__gpus_forget(handle->mappings.gpus);
    shuf__held_leases_free(handle);
    shuf__mappings_close(&handle->mappings);
    if (ours && had_device_memory)
        shuf__release_everything(handle);
    shuf__connection_close(&handle->connection, SHUF__CLOSED_BY_ERROR);
    free(handle);
}

void shuf_cancel(shuf *handle)
{
    if (handle)
        shuf__cancel(&handle->connection.cancel);
}

const char *shuf_message(const shuf *handle)
{
    return shuf__error_of((shuf *)(uintptr_t)handle)->text;
}

const char *shuf_socket(const shuf *handle)
{
    return handle ? handle->connection.address.sun_path : "";
}

shuf_status shuf_set_reconnect(shuf *handle, unsigned milliseconds)
{
    SHUF__BEGIN_CALL(call, handle);
    if (!call)
        return SHUF_INVALID;
    handle->reconnect_ms = milliseconds;
    handle->gave_up = false;
    return SHUF_OK;
}

shuf_status shuf_set_observer(shuf *handle, shuf_observer observer, void *context)
{
    SHUF__BEGIN_CALL(call, handle);
    if (!call)
        return SHUF_INVALID;
    handle->observer = observer;
    handle->observer_context = context;
    return SHUF_OK;
}

shuf_status shuf_set_timeout(shuf *handle, unsigned milliseconds)
{
    SHUF__BEGIN_CALL(call, handle);
    if (!call)
        return SHUF_INVALID;
    set_timeout(handle, milliseconds);
    return SHUF_OK;
}

shuf_status shuf_set_idle_mappings(shuf *handle, uint64_t bytes)
{
    SHUF__BEGIN_CALL(call, handle);
    if (!call)
        return SHUF_INVALID;
    if (shuf__handle_is_ours(handle))
        return shuf__release_above_limit(handle, bytes);
    handle->mappings.device_limit = bytes;
    return SHUF_OK;
}

const char *shuf_version(void)
{
    return SHUF_VERSION_TEXT;
}
