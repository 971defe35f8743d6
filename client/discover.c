/* SPDX-License-Identifier: MIT
 *
 * See discover.h. The search stops at the first socket that exists, even if no daemon answers on
 * it. The next socket could belong to the daemon of another GPU.
 */
#include "discover.h"

#include "client_socket.h"
#include "current_gpu.h"
#include "socket.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static bool find_by_gpu(void (*ask)(struct shuf__gpu_hint *hint), struct sockaddr_un *address,
                        bool *names_gpu)
{
    struct shuf__gpu_hint hint;
    ask(&hint);
    *names_gpu |= hint.names_gpu;
    return find_instance(hint.id, address);
}

static bool names_socket(void)
{
    const char *variable = getenv("SHUFD_SOCKET");
    return variable && *variable;
}

shuf_status shuf__discover(struct sockaddr_un *address, struct shuf__error *error)
{
    bool names_gpu = false;
    if (!names_socket() && (find_by_gpu(shuf__gpu_of_context, address, &names_gpu) ||
                            find_by_gpu(shuf__gpu_of_environment, address, &names_gpu)))
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
static void explain_instances(const struct shuf__gpu_hint *hint, struct shuf__error *error)
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

void shuf__discover_explain(struct shuf__error *error)
{
    struct shuf__gpu_hint context, environment;
    if (error->status == SHUF_BUSY) /* a daemon answered: the path is right */
        return;
    if (names_socket() || error->status != SHUF_NO_DAEMON) {
        shuf__socket_explain(error);
        return;
    }
    shuf__gpu_of_context(&context);
    shuf__gpu_of_environment(&environment);
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

void shuf__discover_hint_start(const char *path, const char *socket, struct shuf__error *error)
{
    const bool fits = strlen(error->text) + sizeof SHUF__START_HINT <= sizeof error->text;
    if (error->status == SHUF_NO_DAEMON && fits && !shuf__is_other_file(path) &&
        !must_choose(path, socket))
        append(error, SHUF__START_HINT);
}
