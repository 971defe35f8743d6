/* SPDX-License-Identifier: MIT
 *
 * The sockets that systemd should have made, if shufd.target is enabled. A file can be missing: if
 * a daemon fails to start several times, systemd stops its socket and removes the file.
 */
#ifndef SHUF__WANTED_SOCKETS_H
#define SHUF__WANTED_SOCKETS_H

#include <stddef.h>
#include <sys/un.h>

/* Appends the wanted sockets without a file to the `count` addresses, at most up to `most`. Returns
 * the new count. */
size_t shuf__wanted_sockets_add(struct sockaddr_un *addresses, size_t count, size_t most);

#endif
