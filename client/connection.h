/* SPDX-License-Identifier: MIT
 *
 * One connection to a daemon. It connects and exchanges Hello under a deadline, sends requests, and
 * receives each reply and its payload. Each failure closes the connection, except SHUF_INVALID for
 * a request that is too long. SHUF_NO_DAEMON means that nobody answers, or that the peer has closed
 * the connection. call.c decides after which failures a call tries again.
 */
#ifndef SHUF__CONNECTION_H
#define SHUF__CONNECTION_H

#include "error.h"
#include "message.h"
#include "shuf.pb-c.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

enum {
    SHUF__CONNECTION_BUFFER = 256 * 1024, /* bytes; for long frames and for chunks of a payload */
    SHUF__HANDSHAKE_MS = 10000,           /* a daemon that starts may wait for its GPU */
};

/* Who or what closed a connection. */
enum shuf__closed_by {
    SHUF__CLOSED_BY_ERROR,
    SHUF__CLOSED_BY_DAEMON,
    SHUF__CLOSED_BY_TIMEOUT,
    SHUF__CLOSED_BY_SINK,
    SHUF__CLOSED_BY_SIGNAL,
};

/* Lets another thread end the call that waits on a socket. The mutex is needed because the number
 * of a closed socket may belong to another file. */
struct shuf__cancel {
    pthread_mutex_t mutex;
    _Atomic bool is_cancelled;
    int fd; /* -1: none */
};

/* The timeouts of a socket in nanoseconds, as last set. {0}: a new socket, which has none. */
struct shuf__wait_limits {
    uint64_t receive_ns, send_ns;
};

/* The receive buffer of a socket. It reads ahead, so a small reply and its payload cost one system
 * call. It owns the descriptors that arrive (SCM_RIGHTS), so none leaks. */
struct shuf__receiver {
    size_t start, end;    /* of the unread bytes */
    unsigned descriptors; /* received since the last check */
    bool truncated;       /* the kernel had to drop descriptors */
    int descriptor;       /* the first one, or -1; the others are closed */
    uint8_t bytes[8192];
};

struct shuf__connection {
    int fd; /* -1: none */
    struct shuf__cancel cancel;
    uint64_t generation; /* the number of this connection; leases and block ids are valid for one */
    uint64_t last_id;
    uint64_t timeout_ns;        /* the limit of one wait for the daemon; 0: no limit */
    uint64_t deadline_ns;       /* the end of the handshake's time; 0: no handshake runs */
    uint64_t closed_generation; /* the generation of the last closed connection */
    enum shuf__closed_by closed_by;
    bool is_refused;                 /* the last attempt to connect failed */
    struct shuf__wait_limits limits; /* of the socket */
    struct sockaddr_un address;
    bool has_received;    /* any byte, on this connection or on an earlier one */
    bool came_late;       /* the daemon waited too long for the Hello of this connection */
    unsigned silent_ends; /* connections in a row that the peer closed before the first byte */
    bool unmap; /* the daemon is short of memory: unmap idle mappings when the call ends */
    struct shuf__receiver receiver;
    struct shuf__arena arena;                                   /* the last reply */
    _Alignas(uint64_t) uint8_t buffer[SHUF__CONNECTION_BUFFER]; /* sinks read values there */
};

/* Connects to ->address and exchanges Hello. Repeats this for a while, if another attempt may
 * succeed. */
shuf_status shuf__connection_open(struct shuf__connection *connection, struct shuf__error *error);
void shuf__connection_close(struct shuf__connection *connection, enum shuf__closed_by closed_by);

/* Sends the request under a new id, and sets request->id. */
shuf_status shuf__connection_send(struct shuf__connection *connection, Shuf__Request *request,
                                  struct shuf__error *error);

/* Receives the reply to the last request; it is valid until the next reply. If the status in the
 * reply is an error, this function still succeeds. */
shuf_status shuf__connection_reply(struct shuf__connection *connection, const Shuf__Reply **reply,
                                   struct shuf__error *error);

/* Moves the descriptor of the last reply to the caller, who closes it. -1: none, or already moved.
 * A descriptor that nobody takes is closed. */
int shuf__connection_descriptor(struct shuf__connection *connection);

/* Copies a string of the peer to `out` of `size` bytes: truncated, and made printable. */
void shuf__copy_string(char *out, size_t size, const char *word);

/* Fails with the status and the printable message of a reply whose status is not SHUF_OK. */
shuf_status shuf__reply_fail(const Shuf__Reply *reply, struct shuf__error *error);

/* Fails with SHUF_PROTOCOL if the reply has another body. `name`: as in "a StatusReply". */
shuf_status shuf__reply_check(const Shuf__Reply *reply, Shuf__Reply__BodyCase body,
                              const char *name, struct shuf__error *error);

/* If the interrupt function ends the call, closes the connection and fails with SHUF_CANCELLED. */
shuf_status shuf__connection_end_if_interrupted(struct shuf__connection *connection,
                                                struct shuf__error *error);

/* Receives 1 to `size` bytes of payload. They are fewer than `size` if the peer closed the
 * connection, if a signal interrupted the system call, or if the rest does not come soon. */
shuf_status shuf__connection_receive(struct shuf__connection *connection, void *out, size_t size,
                                     size_t *received, struct shuf__error *error);

/* All later calls on the handle fail too. Any thread may call it. */
void shuf__cancel(struct shuf__cancel *cancel);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t shuf__now_ns(void);

#endif
