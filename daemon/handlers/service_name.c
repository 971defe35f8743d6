/* SPDX-License-Identifier: MIT
 *
 * See service_name.h.
 */
#include "service_name.h"

#include "socket.h"

#include <stdio.h>
#include <string.h>

void shuf__service_name_of(const char *socket, char name[SHUF__SERVICE_NAME])
{
    static const char suffix[] = ".sock";
    const char *slash = strrchr(socket, '/');
    snprintf(name, SHUF__SERVICE_NAME, "%s", slash ? slash + 1 : socket);
    const size_t length = strlen(name), cut = sizeof suffix - 1;
    if (length > cut && strcmp(name + length - cut, suffix) == 0)
        name[length - cut] = '\0';
}

void shuf__service_unit_of(const char *socket, const char *type, char unit[SHUF__SERVICE_UNIT])
{
    static const char directory[] = SHUF__SOCKET_DIRECTORY "/";
    char name[SHUF__SERVICE_NAME];
    shuf__service_name_of(socket, name);
    if (strcmp(name, "shufd") != 0 && strncmp(socket, directory, strlen(directory)) == 0)
        snprintf(unit, SHUF__SERVICE_UNIT, "shufd@%.108s.%.10s", name, type);
    else
        snprintf(unit, SHUF__SERVICE_UNIT, "shufd.%.10s", type);
}

bool shuf__service_name_expand(const char *text, const char *name, char *out, size_t size)
{
    size_t used = 0;
    for (; *text; text++) {
        const bool is_name = text[0] == '%' && text[1] == 'i';
        const char *part = is_name ? name : text;
        const size_t length = is_name ? strlen(name) : 1;
        if (used + length >= size) {
            out[0] = '\0';
            return false;
        }
        memcpy(out + used, part, length);
        used += length;
        text += is_name;
    }
    out[used] = '\0';
    return true;
}
