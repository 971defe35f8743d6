/* SPDX-License-Identifier: MIT
 *
 * The protocol without libshuf, for tests that send messages which libshuf would not send, and
 * shufd as a program that ends. Every failure fails the running cmocka test.
 */
#ifndef TESTS_WIRE_H
#define TESTS_WIRE_H

#include "message.h"
#include "result_message.h"
#include "shuf_status.h"
#include "support/harness.h"
#include "support/sanitized.h"

#include <stddef.h>
#include <stdint.h>

struct wire {
    int fd;
    uint64_t id;    /* the id of the last request */
    int descriptor; /* the descriptor of the last reply, which the next reply closes; -1: none */
    struct shuf__arena arena;
    uint8_t frame[SHUF__FRAME_HEADER + SHUF__FRAME_MAX];
};

/* Starts a daemon with this configuration. The path of its file is static, so a test has only one
 * such daemon at a time. */
void wire_start(struct harness *h, const char *backend, const char *config);

/* Fixtures of cmocka. Each starts a daemon on harness_backend for a test, and makes it the state of
 * the test. The daemon of the second one caches no results. */
int wire_start_each(void **state);
int wire_start_uncached(void **state);
int wire_stop_each(void **state);

/* Opens a connection. wire_greet() also sends the Hello. wire_close() frees it. */
struct wire *wire_open(const struct harness *h);
struct wire *wire_greet(const struct harness *h);

/* The same as this user. Only root may call them. */
struct wire *wire_open_as(const struct harness *h, uid_t user);
struct wire *wire_greet_as(const struct harness *h, uid_t user);
void wire_close(struct wire *w);

void wire_send_bytes(struct wire *w, const void *bytes, size_t size);

/* Sends the bytes with 1 to WIRE_DESCRIPTORS descriptors (the limit of the kernel), as one message.
 * `flags` and the result are those of sendmsg(). */
enum { WIRE_DESCRIPTORS = 253 };
ssize_t wire_try_descriptors(int socket, const void *bytes, size_t size, const int *fds,
                             size_t count, int flags);

/* Gives the request the next id and packs it at `at`. Returns its size. */
size_t wire_pack(struct wire *w, Shuf__Request *request, uint8_t *at, size_t room);
void wire_send(struct wire *w, Shuf__Request *request);
void wire_send_hello(struct wire *w, uint32_t version);
/* Links the message, which may be a copy, and sends it. */
void wire_send_result(struct wire *w, struct shuf__result_message *message);
void wire_send_release(struct wire *w, uint64_t *leases, size_t count, uint64_t *unmapped,
                       size_t unmapped_count);
/* Releases all leases, and reports all blocks as unmapped. */
void wire_send_release_all(struct wire *w);

/* Receives the next reply, which is valid until the next call. If the reply says that it has a
 * descriptor, exactly one must arrive. */
const Shuf__Reply *wire_receive(struct wire *w);
/* Calls wire_receive(), and expects this status and a message that contains `text`. */
const Shuf__Reply *wire_expect(struct wire *w, shuf_status status, const char *text);
void wire_read_payload(struct wire *w, void *out, size_t size);
/* Reads values of a permutation of n: all must be in range and different. */
void wire_read_permutation(struct wire *w, uint64_t bytes, uint64_t n);
/* Expects that the daemon closes the connection, without a reset. */
void wire_expect_end(struct wire *w);
/* Returns w->descriptor, which the caller closes. */
int wire_take_descriptor(struct wire *w);

/* Requests the status. The reply is valid until the next one. */
const Shuf__StatusReply *wire_ask_status(struct wire *w);
/* Does the same on a new connection. The strings and rows of the copy are not valid. */
Shuf__StatusReply wire_status(const struct harness *h);
/* The bytes of idle memory, on the host and on the device. */
uint64_t wire_idle_bytes(const struct harness *h);
/* Waits until `condition` is true. In the condition, `s` is the daemon's status. */
#define WIRE_AWAIT(h, s, condition)                                              \
    do {                                                                         \
        for (unsigned wire_waited_ = 0;; wire_wait(&wire_waited_, #condition)) { \
            Shuf__StatusReply s = wire_status(h);                                \
            if (condition)                                                       \
                break;                                                           \
        }                                                                        \
    } while (0)
/* Sleeps for a millisecond. Fails the test after HARNESS_WAIT_MS calls. */
void wire_wait(unsigned *waited, const char *condition);
/* Waits until this number of jobs wait or run. */
void wire_await_queued(const struct harness *h, uint64_t queued);

/* Waits until connecting is refused. */
void wire_await_end_of_listening(const struct harness *h);
/* Waits until the daemon has no result in use. */
void wire_await_memory_free(const struct harness *h);

/* The bytes of the process's private dirty memory. */
uint64_t wire_private_bytes(pid_t pid);
/* Counts the open descriptors of the process. One segment of shared memory with CUDA's events does
 * not count, because the driver may close it at any time. */
unsigned wire_descriptors(pid_t pid);
void wire_show_descriptors(pid_t pid); /* prints them to stderr */

/* ---- Leases ---- */

/* The transport of the memory in which the backend computes. */
Shuf__Transport wire_backend_transport(const char *backend);

/* Leases the permutation of n values with this seed. The reply is valid until the next one. */
const Shuf__ResultReply *wire_lease(struct wire *w, uint64_t n, uint64_t seed,
                                    Shuf__Transport transport);
/* Releases one lease and reports its block as unmapped; `block` 0: reports nothing. */
void wire_release(struct wire *w, uint64_t lease, uint64_t block);

/* Maps the block whose descriptor came with the last reply, and closes the descriptor. */
const void *wire_map(struct wire *w, uint64_t bytes);
void wire_unmap(const void *view, uint64_t bytes);

/* ---- Requests ---- */

/* A list with this transport, which may be unknown. Static. */
Shuf__Transport *wire_accept(Shuf__Transport transport);
/* An empty request of this kind, whose reply comes by this transport. */
struct shuf__result_message wire_result(Shuf__Result__WhatCase what, Shuf__Transport transport);
/* Makes a request for the permutation of n, with seed 7 and epoch 0. The reply has its values by
 * this transport, or only a summary. */
struct shuf__result_message wire_permutation(uint64_t n, Shuf__Transport transport);
/* Makes a request that never ends until it is cancelled: the last value of a permutation of nearly
 * 2^62 values. */
struct shuf__result_message wire_endless_permutation(void);

/* Several clients do not read their results. The daemon may buffer at most 1 MiB for each. Results
 * in host memory do not count. */
void wire_check_unread_results(const struct harness *h, bool host_memory);

/* Requests and checks a small permutation. */
void wire_check_alive(struct wire *w);

/* ---- Buffers and shuffles ---- */

/* Requests a buffer of this size; the second function also checks the reply. */
void wire_send_allocate(struct wire *w, uint64_t bytes, Shuf__Transport transport);
Shuf__ResultReply wire_allocate(struct wire *w, uint64_t bytes, Shuf__Transport transport);

void wire_send_write(struct wire *w, uint64_t lease, uint64_t offset, const void *data,
                     size_t size);

/* Makes a request for a shuffle of n records of that buffer, with seed 7 and epoch 0. */
struct shuf__result_message wire_shuffle_of(uint64_t lease, uint64_t n, uint64_t record,
                                            Shuf__Transport transport);
/* Sends the request and returns the reply, with its descriptor. Both are valid until the next
 * reply. */
const Shuf__Reply *wire_shuffle(struct wire *w, struct shuf__result_message *shuffle);

/* Maps the buffer whose descriptor came with the last reply, and closes the descriptor.
 * wire_unmap() removes the mapping. */
void *wire_map_writable(struct wire *w, uint64_t bytes);

bool wire_is_zero(const uint8_t *bytes, uint64_t count);

/* ---- shufd to its end, and its files ---- */

void shufd_write(const char *path, const char *text);

/* Reads the front of a file into `size` bytes, with a final NUL. Returns the number of bytes
 * read. */
size_t shufd_read(const char *path, char *text, size_t size);

/* Waits until the file contains `expected`, and then reads it like shufd_read(). The daemon's log
 * is written by another thread, a little later. */
void shufd_await(const char *path, char *text, size_t size, const char *expected);

/* Expects that a wait status is an exit with this code. */
void shufd_expect_code(int status, int code);

/* Runs shufd to its end. Expects this exit code and text. */
void shufd_expect_exit(const char *const *arguments, int code, const char *text);

#endif
