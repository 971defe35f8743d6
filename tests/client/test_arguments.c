/* SPDX-License-Identifier: MIT
 *
 * Passes NULL for every pointer argument of every public function. The call must return
 * SHUF_INVALID with the argument's name, unless the header defines a meaning of NULL. The test also
 * reads the headers, and fails if its table lacks an argument of a public function.
 */
/* Public headers leave the short names to programs. */
#define X 3
#include "shuf.h"
_Static_assert(X == 3, "shuf.h redefines a macro of the program");
#undef X

#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/take.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static shuf *h;
static shuf_lease *lease, *buffer;
static const shuf_request permutation = {.permutation = {.n = 10}};
static const shuf_request numbers = {.kind = SHUF_NUMBERS,
                                     .numbers = {.distribution = SHUF_UNIFORM, .count = 5}};
static const shuf_records records = {.n = 10, .record = 4};
static uint64_t in[10], out[10];
static const uint64_t shares[] = {1, 2};
static const shuf_source sources[] = {{.records = 10}, {.records = 20}};
static const shuf_stage stages[] = {{0, shares}};
static const shuf_mixture_request mix = {
    .sources = sources, .source_count = 2, .stages = stages, .stage_count = 1};
static const shuf_mixed mixed = {.index = out};
static shuf_mixture *mixture;
static const shuf_chunks_request windows = {.sizes = shares, .count = 2, .window = 1};
static shuf_chunks *chunks;
static shuf_weights *weights;
static shuf_result result;
static shuf_shape shape;
static size_t room;
static shuf_daemon daemon_state;
static shuf_dropped dropped;
static char message[256], *metrics;

static bool accept_entry(void *context, const shuf_lease_entry *entry)
{
    (void)context;
    (void)entry;
    return true;
}

static bool accept_bytes(void *context, const void *bytes, size_t size)
{
    (void)context;
    (void)bytes;
    (void)size;
    return true;
}

/* shuf_connect() with a handle that this function closes. */
static shuf_status connect_to(const char *socket)
{
    shuf *handle;
    const shuf_status status = shuf_connect(&handle, socket);
    shuf_close(handle);
    return status == SHUF_NO_DAEMON ? SHUF_OK : status; /* the default socket may have no daemon */
}

static shuf_status release(shuf *handle, shuf_lease *taken)
{
    return shuf_lease_release(handle, &taken);
}

/* Releases the lease of a call that has succeeded. */
static shuf_status release_if_taken(shuf_status status, shuf_lease *taken)
{
    if (taken) /* a release would overwrite the message of a failed call */
        release(h, taken);
    return status;
}

/* These arrays are host memory: without a GPU the status is DEVICE, with one it names the array. */
static shuf_status taken_by_gpu(shuf_status status)
{
    const bool as_memory = strstr(shuf_message(NULL), "host");
    return status == SHUF_DEVICE || (status == SHUF_INVALID && as_memory) ? SHUF_OK : status;
}

#define LEASE_OF(call)             \
    __extension__({                \
        shuf_lease *l = NULL;      \
        release_if_taken(call, l); \
    })

/* X(function, parameter, status of the call with NULL there, call). */
#define ROWS(X)                                                                                    \
    X(shuf_connect, handle, INVALID, shuf_connect(NULL, NULL))                                     \
    X(shuf_connect, socket, OK, connect_to(NULL))                                                  \
    X(shuf_connect_within, handle, INVALID, shuf_connect_within(NULL, NULL, 1))                    \
    X(shuf_connect_within, socket, OK, connect_to(NULL))                                           \
    X(shuf_close, handle, OK, (shuf_close(NULL), SHUF_OK))                                         \
    X(shuf_cancel, handle, OK, (shuf_cancel(NULL), SHUF_OK))                                       \
    X(shuf_message, handle, OK, *shuf_message(NULL) ? SHUF_OK : SHUF_IO)                           \
    X(shuf_socket, handle, OK, *shuf_socket(NULL) ? SHUF_IO : SHUF_OK)                             \
    X(shuf_set_reconnect, handle, INVALID, shuf_set_reconnect(NULL, 1))                            \
    X(shuf_set_observer, handle, INVALID, shuf_set_observer(NULL, NULL, NULL))                     \
    X(shuf_set_observer, context, OK, shuf_set_observer(h, NULL, NULL))                            \
    X(shuf_set_timeout, handle, INVALID, shuf_set_timeout(NULL, 1))                                \
    X(shuf_set_idle_mappings, handle, INVALID, shuf_set_idle_mappings(NULL, 1))                    \
    X(shuf_shape_of, request, INVALID, shuf_shape_of(NULL, &shape, message, sizeof message))       \
    X(shuf_shape_of, shape, INVALID, shuf_shape_of(&permutation, NULL, message, sizeof message))   \
    X(shuf_shape_of, message, OK, shuf_shape_of(&permutation, &shape, NULL, 9))                    \
    X(shuf_copy, handle, INVALID, shuf_copy(NULL, &permutation, out, sizeof out, &result))         \
    X(shuf_copy, request, INVALID, shuf_copy(h, NULL, out, sizeof out, &result))                   \
    X(shuf_copy, out, INVALID, shuf_copy(h, &permutation, NULL, sizeof out, &result))              \
    X(shuf_copy, result, OK, shuf_copy(h, &permutation, out, sizeof out, NULL))                    \
    X(shuf_each, handle, INVALID, shuf_each(NULL, &permutation, accept_bytes, out, &result))       \
    X(shuf_each, request, INVALID, shuf_each(h, NULL, accept_bytes, out, &result))                 \
    X(shuf_each, sink, OK, shuf_each(h, &permutation, NULL, out, &result))                         \
    X(shuf_each, context, OK, shuf_each(h, &permutation, accept_bytes, NULL, &result))             \
    X(shuf_each, result, OK, shuf_each(h, &permutation, accept_bytes, out, NULL))                  \
    X(shuf_summarize, handle, INVALID, shuf_summarize(NULL, &permutation, &result))                \
    X(shuf_summarize, request, INVALID, shuf_summarize(h, NULL, &result))                          \
    X(shuf_summarize, result, INVALID, shuf_summarize(h, &permutation, NULL))                      \
    X(shuf_shuffle, handle, INVALID, shuf_shuffle(NULL, &records, in, out, sizeof in, &result))    \
    X(shuf_shuffle, records, INVALID, shuf_shuffle(h, NULL, in, out, sizeof in, &result))          \
    X(shuf_shuffle, in, INVALID, shuf_shuffle(h, &records, NULL, out, sizeof in, &result))         \
    X(shuf_shuffle, out, INVALID, shuf_shuffle(h, &records, in, NULL, sizeof in, &result))         \
    X(shuf_shuffle, result, OK, shuf_shuffle(h, &records, in, out, sizeof in, NULL))               \
    X(shuf_shuffle_each, handle, INVALID,                                                          \
      shuf_shuffle_each(NULL, &records, in, sizeof in, accept_bytes, out, &result))                \
    X(shuf_shuffle_each, records, INVALID,                                                         \
      shuf_shuffle_each(h, NULL, in, sizeof in, accept_bytes, out, &result))                       \
    X(shuf_shuffle_each, in, INVALID,                                                              \
      shuf_shuffle_each(h, &records, NULL, sizeof in, accept_bytes, out, &result))                 \
    X(shuf_shuffle_each, sink, INVALID,                                                            \
      shuf_shuffle_each(h, &records, in, sizeof in, NULL, out, &result))                           \
    X(shuf_shuffle_each, context, OK,                                                              \
      shuf_shuffle_each(h, &records, in, sizeof in, accept_bytes, NULL, &result))                  \
    X(shuf_shuffle_each, result, OK,                                                               \
      shuf_shuffle_each(h, &records, in, sizeof in, accept_bytes, out, NULL))                      \
    X(shuf_host_fill, request, INVALID, shuf_host_fill(NULL, 1, out, sizeof out))                  \
    X(shuf_host_fill, out, INVALID, shuf_host_fill(&permutation, 1, NULL, sizeof out))             \
    X(shuf_host_shuffle, records, INVALID, shuf_host_shuffle(NULL, 1, in, out, sizeof in))         \
    X(shuf_host_shuffle, in, INVALID, shuf_host_shuffle(&records, 1, NULL, out, sizeof in))        \
    X(shuf_host_shuffle, out, INVALID, shuf_host_shuffle(&records, 1, in, NULL, sizeof in))        \
    X(shuf_host_index, permutation, INVALID, shuf_host_index(NULL, SHUF_FORWARD, 1, in, 10, out))  \
    X(shuf_host_index, at, INVALID,                                                                \
      shuf_host_index(&permutation.permutation, SHUF_FORWARD, 1, NULL, 10, out))                   \
    X(shuf_host_index, out, INVALID,                                                               \
      shuf_host_index(&permutation.permutation, SHUF_FORWARD, 1, in, 10, NULL))                    \
    X(shuf_host_fingerprint, values, INVALID, shuf_host_fingerprint(NULL, 8, 1, 1, out))           \
    X(shuf_host_fingerprint, fingerprint, INVALID, shuf_host_fingerprint(in, 8, 1, 1, NULL))       \
    X(shuf_host_part, request, INVALID, shuf_host_part(NULL, 0, 1, 1, out, out))                   \
    X(shuf_host_part, out, INVALID, shuf_host_part(&permutation, 0, 1, 1, NULL, out))              \
    X(shuf_host_part, fingerprint, OK, shuf_host_part(&permutation, 0, 1, 1, out, NULL))           \
    X(shuf_cuda_workspace, request, INVALID, shuf_cuda_workspace(NULL, &room))                     \
    X(shuf_cuda_workspace, bytes, INVALID, shuf_cuda_workspace(&permutation, NULL))                \
    X(shuf_cuda_fill, request, INVALID, shuf_cuda_fill(NULL, out, sizeof out, in, 9, NULL))        \
    X(shuf_cuda_fill, out, INVALID, shuf_cuda_fill(&permutation, NULL, sizeof out, in, 9, NULL))   \
    X(shuf_cuda_fill, workspace, OK,                                                               \
      taken_by_gpu(shuf_cuda_fill(&permutation, out, sizeof out, NULL, 0, NULL)))                  \
    X(shuf_cuda_fill, stream, OK,                                                                  \
      taken_by_gpu(shuf_cuda_fill(&permutation, out, sizeof out, in, 9, NULL)))                    \
    X(shuf_cuda_shuffle, records, INVALID,                                                         \
      shuf_cuda_shuffle(NULL, in, out, sizeof in, in, 9, NULL))                                    \
    X(shuf_cuda_shuffle, in, INVALID,                                                              \
      shuf_cuda_shuffle(&records, NULL, out, sizeof in, in, 9, NULL))                              \
    X(shuf_cuda_shuffle, out, INVALID,                                                             \
      shuf_cuda_shuffle(&records, in, NULL, sizeof in, in, 9, NULL))                               \
    X(shuf_cuda_shuffle, workspace, OK,                                                            \
      taken_by_gpu(shuf_cuda_shuffle(&records, in, out, sizeof in, NULL, 0, NULL)))                \
    X(shuf_cuda_shuffle, stream, OK,                                                               \
      taken_by_gpu(shuf_cuda_shuffle(&records, in, out, sizeof in, in, 9, NULL)))                  \
    X(shuf_cuda_index, permutation, INVALID,                                                       \
      shuf_cuda_index(NULL, SHUF_FORWARD, SHUF_U64, in, 10, out, NULL))                            \
    X(shuf_cuda_index, at, INVALID,                                                                \
      shuf_cuda_index(&permutation.permutation, SHUF_FORWARD, SHUF_U64, NULL, 10, out, NULL))      \
    X(shuf_cuda_index, out, INVALID,                                                               \
      shuf_cuda_index(&permutation.permutation, SHUF_FORWARD, SHUF_U64, in, 10, NULL, NULL))       \
    X(shuf_cuda_index, stream, OK,                                                                 \
      taken_by_gpu(                                                                                \
          shuf_cuda_index(&permutation.permutation, SHUF_FORWARD, SHUF_U64, in, 10, out, NULL)))   \
    X(shuf_cuda_fingerprint, values, INVALID, shuf_cuda_fingerprint(NULL, 8, 1, out, NULL))        \
    X(shuf_cuda_fingerprint, fingerprint, INVALID, shuf_cuda_fingerprint(in, 8, 1, NULL, NULL))    \
    X(shuf_cuda_fingerprint, stream, OK, taken_by_gpu(shuf_cuda_fingerprint(in, 8, 1, out, NULL))) \
    X(shuf_mixture_make, request, INVALID, shuf_mixture_make(NULL, &mixture))                      \
    X(shuf_mixture_make, mixture, INVALID, shuf_mixture_make(&mix, NULL))                          \
    X(shuf_mixture_free, mixture, OK, (shuf_mixture_free(NULL), SHUF_OK))                          \
    X(shuf_mixture_length, mixture, OK, (shuf_mixture_length(NULL), SHUF_OK))                      \
    X(shuf_weights_free, weights, OK, (shuf_weights_free(NULL), SHUF_OK))                          \
    X(shuf_mixture_fill, mixture, INVALID, shuf_mixture_fill(NULL, 0, 5, 1, 1, &mixed))            \
    X(shuf_mixture_fill, out, INVALID, shuf_mixture_fill(mixture, 0, 5, 1, 1, NULL))               \
    X(shuf_mixture_positions, mixture, INVALID, shuf_mixture_positions(NULL, 5, &mixed, out))      \
    X(shuf_mixture_positions, in, INVALID, shuf_mixture_positions(mixture, 5, NULL, out))          \
    X(shuf_mixture_positions, positions, INVALID,                                                  \
      shuf_mixture_positions(mixture, 5, &mixed, NULL))                                            \
    X(shuf_mixture_counts, mixture, INVALID, shuf_mixture_counts(NULL, 5, out))                    \
    X(shuf_mixture_counts, counts, INVALID, shuf_mixture_counts(mixture, 5, NULL))                 \
    X(shuf_mixture_exhausted, mixture, INVALID, shuf_mixture_exhausted(NULL, out))                 \
    X(shuf_mixture_exhausted, positions, INVALID, shuf_mixture_exhausted(mixture, NULL))           \
    X(shuf_cuda_mixture_workspace, mixture, INVALID, shuf_cuda_mixture_workspace(NULL, 5, &room))  \
    X(shuf_cuda_mixture_workspace, bytes, INVALID, shuf_cuda_mixture_workspace(mixture, 5, NULL))  \
    X(shuf_cuda_mixture_fill, mixture, INVALID,                                                    \
      shuf_cuda_mixture_fill(NULL, 0, 5, out, in, 9, NULL))                                        \
    X(shuf_cuda_mixture_fill, index, INVALID,                                                      \
      shuf_cuda_mixture_fill(mixture, 0, 5, NULL, in, 9, NULL))                                    \
    X(shuf_cuda_mixture_fill, workspace, OK,                                                       \
      taken_by_gpu(shuf_cuda_mixture_fill(mixture, 0, 5, out, NULL, 0, NULL)))                     \
    X(shuf_cuda_mixture_fill, stream, OK,                                                          \
      taken_by_gpu(shuf_cuda_mixture_fill(mixture, 0, 5, out, in, 9, NULL)))                       \
    X(shuf_chunks_make, request, INVALID, shuf_chunks_make(NULL, &chunks))                         \
    X(shuf_chunks_make, chunks, INVALID, shuf_chunks_make(&windows, NULL))                         \
    X(shuf_chunks_free, chunks, OK, (shuf_chunks_free(NULL), SHUF_OK))                             \
    X(shuf_chunks_length, chunks, OK, (shuf_chunks_length(NULL), SHUF_OK))                         \
    X(shuf_chunks_fill, chunks, INVALID, shuf_chunks_fill(NULL, 0, 3, 1, 1, SHUF_U64, out))        \
    X(shuf_chunks_fill, out, INVALID, shuf_chunks_fill(chunks, 0, 3, 1, 1, SHUF_U64, NULL))        \
    X(shuf_chunks_index, chunks, INVALID, shuf_chunks_index(NULL, SHUF_FORWARD, 1, in, 3, out))    \
    X(shuf_chunks_index, at, INVALID, shuf_chunks_index(chunks, SHUF_FORWARD, 1, NULL, 3, out))    \
    X(shuf_chunks_index, out, INVALID, shuf_chunks_index(chunks, SHUF_FORWARD, 1, in, 3, NULL))    \
    X(shuf_chunks_needed, chunks, INVALID, shuf_chunks_needed(NULL, 0, 3, 1, out, &room))          \
    X(shuf_chunks_needed, numbers, INVALID, shuf_chunks_needed(chunks, 0, 3, 1, NULL, &room))      \
    X(shuf_chunks_needed, found, INVALID, shuf_chunks_needed(chunks, 0, 3, 1, out, NULL))          \
    X(shuf_weights_make, values, INVALID, shuf_weights_make(NULL, SHUF_U64, 2, &weights))          \
    X(shuf_weights_make, weights, INVALID, shuf_weights_make(shares, SHUF_U64, 2, NULL))           \
    X(shuf_weights_draw, weights, INVALID, shuf_weights_draw(NULL, 7, 0, 0, 5, 1, 1, out))         \
    X(shuf_weights_draw, out, INVALID, shuf_weights_draw(weights, 7, 0, 0, 5, 1, 1, NULL))         \
    X(shuf_weights_sample, values, INVALID, shuf_weights_sample(NULL, SHUF_U64, 2, 7, 0, 1, out))  \
    X(shuf_weights_sample, out, INVALID, shuf_weights_sample(shares, SHUF_U64, 2, 7, 0, 1, NULL))  \
    X(shuf_cuda_weights_workspace, bytes, INVALID, shuf_cuda_weights_workspace(2, NULL))           \
    X(shuf_cuda_weights_make, values, INVALID,                                                     \
      shuf_cuda_weights_make(NULL, SHUF_U64, 2, out, 80, in, 9, NULL))                             \
    X(shuf_cuda_weights_make, table, INVALID,                                                      \
      shuf_cuda_weights_make(shares, SHUF_U64, 2, NULL, 80, in, 9, NULL))                          \
    X(shuf_cuda_weights_make, workspace, OK,                                                       \
      taken_by_gpu(shuf_cuda_weights_make(shares, SHUF_U64, 2, out, 80, NULL, 0, NULL)))           \
    X(shuf_cuda_weights_make, stream, OK,                                                          \
      taken_by_gpu(shuf_cuda_weights_make(shares, SHUF_U64, 2, out, 80, in, 9, NULL)))             \
    X(shuf_cuda_weights_draw, table, INVALID,                                                      \
      shuf_cuda_weights_draw(NULL, 2, 7, 0, 0, 5, 1, out, NULL))                                   \
    X(shuf_cuda_weights_draw, out, INVALID,                                                        \
      shuf_cuda_weights_draw(shares, 2, 7, 0, 0, 5, 1, NULL, NULL))                                \
    X(shuf_cuda_weights_draw, stream, OK,                                                          \
      taken_by_gpu(shuf_cuda_weights_draw(shares, 2, 7, 0, 0, 5, 1, out, NULL)))                   \
    X(shuf_cuda_weights_sample_workspace, bytes, INVALID,                                          \
      shuf_cuda_weights_sample_workspace(2, NULL))                                                 \
    X(shuf_cuda_weights_sample, values, INVALID,                                                   \
      shuf_cuda_weights_sample(NULL, SHUF_U64, 2, 7, 0, 1, out, in, 9, NULL))                      \
    X(shuf_cuda_weights_sample, out, INVALID,                                                      \
      shuf_cuda_weights_sample(shares, SHUF_U64, 2, 7, 0, 1, NULL, in, 9, NULL))                   \
    X(shuf_cuda_weights_sample, workspace, OK,                                                     \
      taken_by_gpu(shuf_cuda_weights_sample(shares, SHUF_U64, 2, 7, 0, 1, out, NULL, 0, NULL)))    \
    X(shuf_cuda_weights_sample, stream, OK,                                                        \
      taken_by_gpu(shuf_cuda_weights_sample(shares, SHUF_U64, 2, 7, 0, 1, out, in, 9, NULL)))      \
    X(shuf_index, handle, INVALID,                                                                 \
      shuf_index(NULL, &permutation.permutation, SHUF_FORWARD, in, 10, out))                       \
    X(shuf_index, permutation, INVALID, shuf_index(h, NULL, SHUF_FORWARD, in, 10, out))            \
    X(shuf_index, at, INVALID,                                                                     \
      shuf_index(h, &permutation.permutation, SHUF_FORWARD, NULL, 10, out))                        \
    X(shuf_index, out, INVALID,                                                                    \
      shuf_index(h, &permutation.permutation, SHUF_FORWARD, in, 10, NULL))                         \
    X(shuf_lease_take, handle, INVALID, LEASE_OF(shuf_lease_take(NULL, &permutation, NULL, &l)))   \
    X(shuf_lease_take, request, INVALID, LEASE_OF(shuf_lease_take(h, NULL, NULL, &l)))             \
    X(shuf_lease_take, options, OK, LEASE_OF(shuf_lease_take(h, &permutation, NULL, &l)))          \
    X(shuf_lease_take, lease, INVALID, shuf_lease_take(h, &permutation, NULL, NULL))               \
    X(shuf_lease_release, handle, INVALID, release(NULL, lease))                                   \
    X(shuf_lease_release, lease, OK, shuf_lease_release(h, NULL))                                  \
    X(shuf_lease_read, handle, INVALID, shuf_lease_read(NULL, lease, 0, 8, out))                   \
    X(shuf_lease_read, lease, INVALID, shuf_lease_read(h, NULL, 0, 8, out))                        \
    X(shuf_lease_read, out, INVALID, shuf_lease_read(h, lease, 0, 8, NULL))                        \
    X(shuf_prefetch, handle, INVALID, shuf_prefetch(NULL, &permutation, NULL))                     \
    X(shuf_prefetch, request, INVALID, shuf_prefetch(h, NULL, NULL))                               \
    X(shuf_prefetch, options, OK, shuf_prefetch(h, &permutation, NULL))                            \
    X(shuf_lease_write, handle, INVALID, shuf_lease_write(NULL, buffer, 0, 8, in))                 \
    X(shuf_lease_write, lease, INVALID, shuf_lease_write(h, NULL, 0, 8, in))                       \
    X(shuf_lease_write, in, INVALID, shuf_lease_write(h, buffer, 0, 8, NULL))                      \
    X(shuf_leases, handle, INVALID, shuf_leases(NULL, accept_entry, out))                          \
    X(shuf_leases, visit, INVALID, shuf_leases(h, NULL, out))                                      \
    X(shuf_leases, context, OK, shuf_leases(h, accept_entry, NULL))                                \
    X(shuf_daemon_status, handle, INVALID, shuf_daemon_status(NULL, &daemon_state))                \
    X(shuf_daemon_status, daemon, INVALID, shuf_daemon_status(h, NULL))                            \
    X(shuf_drop, handle, INVALID, shuf_drop(NULL, SHUF_OWN, 0, &dropped))                          \
    X(shuf_drop, dropped, OK, shuf_drop(h, SHUF_OWN, 0, NULL))                                     \
    X(shuf_daemon_metrics, handle, INVALID, shuf_daemon_metrics(NULL, SHUF_PROMETHEUS, &metrics))  \
    X(shuf_daemon_metrics, text, INVALID, shuf_daemon_metrics(h, SHUF_PROMETHEUS, NULL))

struct row {
    const char *function, *parameter;
    shuf_status status;
    shuf_status (*call)(void);
};

#define X(function, parameter, status, call)               \
    static shuf_status call_##function##_##parameter(void) \
    {                                                      \
        return call;                                       \
    }
ROWS(X)
#undef X

static const struct row rows[] = {
#define X(function, parameter, status, call) \
    {#function, #parameter, SHUF_##status, call_##function##_##parameter},
    ROWS(X)
#undef X
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* The message of the call: the shape functions write it to the caller's memory. */
static const char *message_of(const struct row *row)
{
    if (strstr(row->function, "_shape"))
        return message;
    static const char *const local[] = {"shuf_host_", "shuf_cuda_", "shuf_mixture_", "shuf_chunks_",
                                        "shuf_weights_"};
    bool without_handle = strcmp(row->parameter, "handle") == 0;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        without_handle |= strncmp(row->function, local[i], strlen(local[i])) == 0;
    return shuf_message(without_handle ? NULL : h);
}

static void null_arguments_are_refused(void **state)
{
    (void)state;
    assert_int_equal(shuf_mixture_make(&mix, &mixture), SHUF_OK);
    assert_int_equal(shuf_chunks_make(&windows, &chunks), SHUF_OK);
    assert_int_equal(shuf_weights_make(shares, SHUF_U64, 2, &weights), SHUF_OK);
    for (size_t i = 0; i < N_ROWS; i++) {
        char expected[64];
        const shuf_status status = rows[i].call();
        if (status != rows[i].status)
            fail_msg("%s with %s NULL: %s", rows[i].function, rows[i].parameter,
                     shuf_status_name(status));
        snprintf(expected, sizeof expected, "%s NULL: expected ", rows[i].parameter);
        if (status == SHUF_INVALID &&
            strncmp(message_of(&rows[i]), expected, strlen(expected)) != 0)
            fail_msg("%s with %s NULL: %s", rows[i].function, rows[i].parameter,
                     message_of(&rows[i]));
    }
    shuf_mixture_free(mixture);
    shuf_chunks_free(chunks);
    shuf_weights_free(weights);
    assert_true(client_check(h, &permutation)); /* the handle still works */
}

/* ---- The headers ---- */

/* shuf_message(NULL) is the message of the last call without a handle, or "" if it succeeded. */
static void message_without_handle_is_kept(void **state)
{
    (void)state;
    shuf_request wrong = permutation;
    shuf_request none = numbers;
    wrong.permutation.dtype = SHUF_F32;
    assert_int_equal(shuf_shape_of(&wrong, &shape, NULL, 0), SHUF_INVALID);
    assert_string_equal(shuf_message(NULL), "dtype f32: expected u32, u64 or i64");
    none.numbers.count = 0;
    assert_int_equal(shuf_shape_of(&none, &shape, NULL, 0), SHUF_INVALID);
    assert_non_null(strstr(shuf_message(NULL), "count 0"));
    assert_int_equal(shuf_shape_of(&numbers, &shape, NULL, 0), SHUF_OK);
    assert_string_equal(shuf_message(NULL), "");
}

static bool has_row(const char *function, const char *parameter)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].function, function) == 0 && strcmp(rows[i].parameter, parameter) == 0)
            return true;
    return false;
}

/* Checks the parameters of one declaration that can be NULL. `list` is the text between its
 * parentheses. */
static unsigned check_parameters(const char *function, char *list)
{
    unsigned pointers = 0;
    for (char *rest, *one = strtok_r(list, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        if (!strchr(one, '*') && !strstr(one, "shuf_sink ") && !strstr(one, "shuf_lease_visitor "))
            continue;
        const char *name = one + strlen(one);
        while (name > one && !strchr(" *\n", name[-1]))
            name--;
        if (!has_row(function, name))
            fail_msg("%s: no row for NULL as %s", function, name);
        pointers++;
    }
    return pointers;
}

static unsigned check_header(const char *path, const regex_t *declaration)
{
    char text[65536];
    regmatch_t part[3];
    unsigned pointers = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (char *at = text; regexec(declaration, at, 3, part, 0) == 0; at += part[0].rm_eo) {
        char function[64], list[512];
        snprintf(function, sizeof function, "%.*s", (int)(part[1].rm_eo - part[1].rm_so),
                 at + part[1].rm_so);
        snprintf(list, sizeof list, "%.*s", (int)(part[2].rm_eo - part[2].rm_so),
                 at + part[2].rm_so);
        pointers += check_parameters(function, list);
    }
    return pointers;
}

static void every_pointer_parameter_has_a_row(void **state)
{
    (void)state;
    static const char *const headers[] = {SHUF_HEADERS};
    regex_t declaration;
    unsigned pointers = 0;
    assert_int_equal(
        regcomp(&declaration, "SHUF_API [^(;]*[ *](shuf_[a-z_]+)\\(([^)]*)\\);", REG_EXTENDED), 0);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        pointers += check_header(headers[i], &declaration);
    regfree(&declaration);
    assert_int_equal(pointers, N_ROWS);
}

/* ---- Leases ---- */

static void released_lease_is_cleared(void **state)
{
    (void)state;
    shuf_lease *taken = NULL;
    assert_int_equal(shuf_lease_take(h, &permutation, NULL, &taken), SHUF_OK);
    assert_int_equal(shuf_lease_release(h, &taken), SHUF_OK);
    assert_null(taken);
    assert_int_equal(shuf_lease_release(h, &taken), SHUF_OK);
}

/* Another pointer to a released lease is refused. Its memory is not read, as ASan shows. */
static void copy_of_released_lease_is_refused(void **state)
{
    (void)state;
    static const char words[] = "released or of another handle, expected one of this handle";
    shuf_lease *taken = NULL;
    assert_int_equal(shuf_lease_take(h, &permutation, NULL, &taken), SHUF_OK);
    shuf_lease *copy = taken;
    assert_int_equal(shuf_lease_release(h, &taken), SHUF_OK);
    client_expect(h, shuf_lease_release(h, &copy), SHUF_INVALID, words);
    client_expect(h, shuf_lease_read(h, copy, 0, 4, out), SHUF_INVALID, words);
    client_expect(h, shuf_lease_take(h, &permutation, NULL, &copy), SHUF_INVALID, words);
    assert_int_equal(shuf_lease_take(h, &permutation, NULL, &taken), SHUF_OK);
    assert_int_equal(shuf_lease_release(h, &taken), SHUF_OK);
}

static void lease_of_another_handle_is_refused(void **state)
{
    (void)state;
    static const char words[] = "released or of another handle, expected one of this handle";
    shuf *other = client_open();
    shuf_lease *other_lease = lease, *own_lease = NULL;
    client_expect(other, shuf_lease_release(other, &other_lease), SHUF_INVALID, words);
    client_expect(other, shuf_lease_take(other, &permutation, NULL, &other_lease), SHUF_INVALID,
                  words);
    client_expect(other, shuf_lease_read(other, lease, 0, 4, out), SHUF_INVALID, words);
    client_expect(other, shuf_lease_write(other, buffer, 0, 4, in), SHUF_INVALID, words);
    client_expect(other, take_shuffle(other, &records, buffer, NULL, &own_lease), SHUF_INVALID,
                  words);
    assert_ptr_equal(other_lease, lease);
    assert_int_equal(shuf_lease_read(h, lease, 0, 4, out), SHUF_OK);
    shuf_close(other);
}

/* An empty name is not NULL: a program without a key must not get the values of seed 0. */
static void empty_names_are_refused(void **state)
{
    (void)state;
    static const char no_key[] = "key \"\": expected the name of a key, 1 to 31 letters, digits, "
                                 "'.', '_' and '-', or NULL for the seed";
    static const char no_algorithm[] =
        "algorithm \"\": expected primefold, philox24 or lcg, or NULL for the default";
    for (int i = 0; i < 2; i++) {
        const char *key = i ? "" : NULL, *algorithm = i ? NULL : "";
        const char *words = i ? no_key : no_algorithm;
        const shuf_request p = {.permutation = {.algorithm = algorithm, .n = 10, .key = key}};
        const shuf_request z = {.kind = SHUF_NUMBERS,
                                .numbers = {.distribution = SHUF_UNIFORM, .count = 5, .key = ""}};
        const shuf_records r = {.algorithm = algorithm, .n = 10, .record = 4, .key = key};
        const shuf_request x = {.kind = SHUF_RANKS,
                                .ranks = {.algorithm = algorithm, .n = 10, .world = 4, .key = key}};
        shuf_lease *taken = NULL;
        client_expect(h, shuf_copy(h, &p, out, sizeof out, NULL), SHUF_INVALID, words);
        client_expect(h, shuf_index(h, &p.permutation, SHUF_FORWARD, in, 10, out), SHUF_INVALID,
                      words);
        client_expect(h, shuf_copy(h, &z, out, sizeof out, NULL), SHUF_INVALID, no_key);
        client_expect(h, shuf_shuffle(h, &r, in, out, 40, NULL), SHUF_INVALID, words);
        client_expect(h, take_shuffle(h, &r, buffer, NULL, &taken), SHUF_INVALID, words);
        client_expect(h, shuf_copy(h, &x, out, sizeof out, NULL), SHUF_INVALID, words);
        client_expect(h, shuf_lease_take(h, &p, NULL, &taken), SHUF_INVALID, words);
        assert_int_equal(shuf_shape_of(&p, &shape, message, sizeof message), SHUF_INVALID);
        assert_string_equal(message, words);
    }
}

static void overlapping_arrays_of_index_are_refused(void **state)
{
    (void)state;
    static const char words[] = "at and out overlap: expected the same array, or 6 numbers each";
    const uint64_t at[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    uint64_t both[10], expected[10];
    memcpy(both, at, sizeof both);
    client_expect(h, shuf_index(h, &permutation.permutation, SHUF_FORWARD, both, 6, both + 1),
                  SHUF_INVALID, words);
    client_expect(h, shuf_index(h, &permutation.permutation, SHUF_FORWARD, both + 4, 6, both),
                  SHUF_INVALID, words);
    assert_memory_equal(both, at, sizeof both);
    client_expect(h, shuf_index(h, &permutation.permutation, SHUF_FORWARD, at, 10, expected),
                  SHUF_OK, "");
    client_expect(h, shuf_index(h, &permutation.permutation, SHUF_FORWARD, both, 5, both + 5),
                  SHUF_OK, "");
    assert_memory_equal(both + 5, expected, 5 * sizeof *both);
    client_expect(h, shuf_index(h, &permutation.permutation, SHUF_FORWARD, both, 5, both), SHUF_OK,
                  "");
    assert_memory_equal(both, expected, 5 * sizeof *both);
}

static int set_up(void **state)
{
    if (harness_start_shared(state) != 0)
        return -1;
    h = client_open();
    return shuf_lease_take(h, &permutation, NULL, &lease) != SHUF_OK ||
           take_buffer(h, 64, NULL, &buffer) != SHUF_OK;
}

static int tear_down(void **state)
{
    shuf_close(h);
    return harness_stop_shared(state);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_arguments_are_refused),
        cmocka_unit_test(message_without_handle_is_kept),
        cmocka_unit_test(every_pointer_parameter_has_a_row),
        cmocka_unit_test(released_lease_is_cleared),
        cmocka_unit_test(copy_of_released_lease_is_refused),
        cmocka_unit_test(lease_of_another_handle_is_refused),
        cmocka_unit_test(empty_names_are_refused),
        cmocka_unit_test(overlapping_arrays_of_index_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
