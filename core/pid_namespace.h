/* SPDX-License-Identifier: MIT
 *
 * The PID namespace of this process. A PID names a process only in its own namespace: in another
 * one, such as that of a container, another process may have the number.
 */
#ifndef SHUF__PID_NAMESPACE_H
#define SHUF__PID_NAMESPACE_H

#include <stdint.h>

/* The inode number of the namespace; 0: unknown, for example without /proc. */
uint64_t shuf__pid_namespace(void);

#endif
