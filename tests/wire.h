/* SPDX-License-Identifier: MIT
 *
 * The protocol by hand, for tests that must say what no proper client says.
 * Everything that goes wrong fails the running cmocka test.
 */
#ifndef TESTS_WIRE_H
#define TESTS_WIRE_H

#include "harness.h"
#include "message.h"
#include "shuf_status.h"

#include <stddef.h>
#include <stdint.h>

/* A sanitizer's own memory hides what a test of memory measures. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WIRE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WIRE_SANITIZED 1
#endif
#endif
#ifndef WIRE_SANITIZED
#define WIRE_SANITIZED 0
#endif

struct wire {
    int fd;
    uint64_t id;    /* of the last request sent */
    int descriptor; /* that came with the last reply, closed by the next one; -1: none */
    struct shuf__arena arena;
    uint8_t frame[SHUF__FRAME_HEADER + SHUF__FRAME_MAX];
};

/* Starts a daemon with a configuration of its own; one at a time. */
void wire_start(struct harness *h, const char *backend, const char *config);

/* cmocka's fixtures: a daemon for each test, which is its state, on the backend that
 * harness_backend is; one that forgets results at once. */
int wire_start_each(void **state);
int wire_start_uncached(void **state);
int wire_stop_each(void **state);

/* A connection that has said nothing; a greeted one. Freed by wire_close. */
struct wire *wire_open(const struct harness *h);
struct wire *wire_greet(const struct harness *h);
void wire_close(struct wire *w);

void wire_send_bytes(struct wire *w, const void *bytes, size_t size);
/* Gives the request the next id and packs it behind `at`; the bytes now in it. */
size_t wire_pack(struct wire *w, Shuf__Request *request, uint8_t *at, size_t room);
void wire_send(struct wire *w, Shuf__Request *request);
void wire_send_hello(struct wire *w, uint32_t version);
void wire_send_permute(struct wire *w, Shuf__Permute *permute);
void wire_send_release(struct wire *w, uint64_t *leases, size_t count, uint64_t *unmapped,
                       size_t unmapped_count);
/* All leases, and nothing is mapped. */
void wire_send_goodbye(struct wire *w);

/* The next reply; valid until the next call. A descriptor comes with it if it says so, and one at
 * most. */
const Shuf__Reply *wire_receive(struct wire *w);
/* The next reply, which has this status and a line that contains `text`. */
const Shuf__Reply *wire_expect(struct wire *w, shuf_status status, const char *text);
void wire_read_bulk(struct wire *w, void *out, size_t size);
/* The same, of values of a permutation of n: all are in range, and none comes twice. */
void wire_read_permutation(struct wire *w, uint64_t bytes, uint64_t n);
/* The daemon has closed, without a reset. */
void wire_expect_end(struct wire *w);
/* w->descriptor becomes the caller's. */
int wire_take_descriptor(struct wire *w);

/* Requests the status on a new connection. The strings in the reply are not valid. */
Shuf__StatusReply wire_status(const struct harness *h);
/* Idle bytes, on both sides. */
uint64_t wire_idle(const struct harness *h);
/* Waits until `condition` is true, in which `s` is the daemon's status. */
#define WIRE_AWAIT(h, s, condition)                                              \
    do {                                                                         \
        for (unsigned wire_waited_ = 0;; wire_wait(&wire_waited_, #condition)) { \
            Shuf__StatusReply s = wire_status(h);                                \
            if (condition)                                                       \
                break;                                                           \
        }                                                                        \
    } while (0)
/* A millisecond; fails when it was too many. */
void wire_wait(unsigned *waited, const char *condition);
/* Waits until that many jobs wait or run. */
void wire_await_queued(const struct harness *h, uint64_t queued);

/* Waits until connecting is refused. */
void wire_await_end_of_listening(const struct harness *h);
/* Waits until nobody refers to a result. */
void wire_await_memory_free(const struct harness *h);

/* Memory that the daemon alone has written to. */
uint64_t wire_private_bytes(pid_t pid);
/* How many are open. CUDA's driver keeps the state of events that processes share in a segment of
 * shared memory, which it closes when it likes: the first one is not counted. */
unsigned wire_descriptors(pid_t pid);
void wire_show_descriptors(pid_t pid); /* on stderr */

/* ---- leases ---- */

/* By which the backend leases the memory that it computes in. */
Shuf__Transport wire_own_transport(const char *backend);

/* Leases the permutation of n values for that seed. Valid until the next reply. */
const Shuf__ResultReply *wire_lease(struct wire *w, uint64_t n, uint64_t seed,
                                    Shuf__Transport transport);
/* Gives one lease back; `block` 0: and says nothing of it being unmapped. */
void wire_release(struct wire *w, uint64_t lease, uint64_t block);

/* Maps the block whose descriptor came with the last reply, and closes that. */
const void *wire_map(struct wire *w, uint64_t bytes);
void wire_unmap(const void *view, uint64_t bytes);

/* ---- requests ---- */

/* "n values from seed 7, epoch 0", by the bytes or only a summary. */
Shuf__Permute wire_permutation(uint64_t n, Shuf__Transport transport);
/* A job that ends only by being cancelled: one value of 2^62. */
Shuf__Permute wire_endless(Shuf__Slice *slice);

/* Several clients that read no result: beyond the results' own memory (where it is
 * the host's) the daemon holds at most 1 MiB for each. */
void wire_check_unread(const struct harness *h, bool host_memory);

/* Sends and checks a small permutation: the daemon is alive and right. */
void wire_check_alive(struct wire *w);

#endif
