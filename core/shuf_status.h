/* SPDX-License-Identifier: MIT
 *
 * Every status with which a request can end, in one table. The enum, the names and the messages
 * come from this table. CONTRIBUTING.md lists the other places that a new status changes. The
 * numbers are part of the wire protocol and never change their meaning.
 */
#ifndef SHUF_STATUS_H
#define SHUF_STATUS_H

/* X(NAME, number, what it means to the caller) */
#define SHUF_STATUS_MAP(X)                                               \
    X(OK, 0, "success")                                                  \
    X(INVALID, 1, "a parameter is outside its range")                    \
    X(NO_DAEMON, 2, "no daemon answers on the socket")                   \
    X(BUSY, 3, "the daemon has no room now; try again")                  \
    X(DENIED, 4, "this user may not do that")                            \
    X(NO_MEMORY, 5, "the result does not fit in memory")                 \
    X(DEVICE, 6, "the device failed")                                    \
    X(VERSION, 7, "client and daemon speak different protocol versions") \
    X(PROTOCOL, 8, "the peer broke the protocol")                        \
    X(TIMEOUT, 9, "the peer took too long")                              \
    X(CANCELLED, 10, "stopped on the caller's own request")              \
    X(IO, 11, "a system call failed")                                    \
    X(INTERNAL, 12, "a bug in shufd; please report it")

typedef enum shuf_status {
#define SHUF__ROW(name, number, message) SHUF_##name = number,
    SHUF_STATUS_MAP(SHUF__ROW)
#undef SHUF__ROW
} shuf_status;

#if defined(__GNUC__)
#define SHUF_API __attribute__((visibility("default")))
#else
#define SHUF_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The row's name ("INVALID") and message. A newer peer may send a number that is not in the table;
 * its name is "UNKNOWN". Static storage. */
SHUF_API const char *shuf_status_name(shuf_status status);
SHUF_API const char *shuf_status_message(shuf_status status);

#ifdef __cplusplus
}
#endif

#endif
