/* SPDX-License-Identifier: MIT
 *
 * The keys socket, socket_mode and socket_group have no effect on a socket that the service manager
 * passes. Its unit has settings for the same.
 */
#ifndef SHUFD_SOCKET_KEYS_H
#define SHUFD_SOCKET_KEYS_H

#include "config/config.h"
#include "net/listener.h"

#include <stdbool.h>

enum { SHUF__UNUSED_TEXT = 384 };

/* True if the key has no effect on the listener. Writes the end of a sentence about the key: "has
 * no effect, because ...; set SETTING ...". */
bool shuf__socket_key_is_unused(const struct shuf__listener *listener, enum shuf__config_key key,
                                char text[SHUF__UNUSED_TEXT]);

#endif
