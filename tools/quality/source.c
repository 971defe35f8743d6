/* SPDX-License-Identifier: MIT
 *
 * See source.h.
 */
#include "source.h"

#include "clock.h"
#include "generator.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* ---- Interrupts ---- */

/* The time of the first signal. It is atomic, because any thread may receive the signal. It needs
 * no lock, because a signal handler must not wait. */
static atomic_ullong interrupted_ns;
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a signal handler sets it");

/* Some programs send a signal to a process and then to its group, so the process gets it twice.
 * Only a signal that comes more than a second later ends the process. */
static void on_signal(int signal_number)
{
    const uint64_t now_ns = shuf__clock_ns();
    unsigned long long first_ns = 0;
    if (atomic_compare_exchange_strong(&interrupted_ns, &first_ns, now_ns) ||
        now_ns < first_ns + UINT64_C(1000000000))
        return;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void shuf__catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool shuf__interrupted(void)
{
    return interrupted_ns != 0;
}

/* ---- Input ---- */

enum { LOOK_UP_MS = 200 };

shuf_status shuf__input_open(struct shuf__input *input, const char *path, struct shuf__error *error)
{
    const bool standard = strcmp(path, "-") == 0;
    input->begun = false;
    input->name = standard ? "standard input" : path;
    input->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0)
        return shuf__fail(error, SHUF_IO, "--in %.128s: %s", path, strerror(errno));
    return SHUF_OK;
}

/* Waits until the input can be read. The thread checks regularly for an interrupt, because another
 * thread may have received the signal. */
static shuf_status wait_for_bytes(const struct shuf__input *input, struct shuf__error *error)
{
    struct pollfd poller = {.fd = input->fd, .events = POLLIN};
    while (!shuf__interrupted())
        if (poll(&poller, 1, LOOK_UP_MS) > 0)
            return SHUF_OK;
    return shuf__fail(error, SHUF_CANCELLED, "%.128s: interrupted", input->name);
}

static shuf_status look_at_first(struct shuf__input *input, const void *bytes, size_t size,
                                 struct shuf__error *error)
{
    static const char npy[] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};
    if (input->begun || size < sizeof npy || memcmp(bytes, npy, sizeof npy) != 0) {
        input->begun = true;
        return SHUF_OK;
    }
    return shuf__fail(error, SHUF_INVALID,
                      "%.128s: npy; expected raw values, as --format raw of shufctl writes them",
                      input->name);
}

shuf_status shuf__input_read(struct shuf__input *input, void *bytes, size_t size, size_t *got,
                             struct shuf__error *error)
{
    for (*got = 0; *got < size;) {
        shuf_status status = wait_for_bytes(input, error);
        if (status != SHUF_OK)
            return status;
        const ssize_t now = read(input->fd, (char *)bytes + *got, size - *got);
        if (now < 0 && errno != EINTR)
            return shuf__fail(error, SHUF_IO, "%.128s: %s", input->name, strerror(errno));
        if (now == 0)
            break;
        *got += now > 0 ? (size_t)now : 0;
    }
    return look_at_first(input, bytes, *got, error);
}

void shuf__input_close(const struct shuf__input *input)
{
    if (input->fd > STDERR_FILENO)
        close(input->fd);
}

/* ---- A file ---- */

/* Rows from a file or standard input: raw little-endian words, row after row, in the format of
 * `shufctl permute --epochs 0:S --format raw --out -`. */

enum { BUFFER = 8192 };

struct input {
    struct shuf__input bytes;
    uint32_t n;
    bool wide;
};

static shuf_status open_file(void *state, const struct shuf__origin *origin, uint32_t n,
                             struct shuf__error *error)
{
    struct input *in = state;
    in->n = n;
    in->wide = origin->wide;
    return shuf__input_open(&in->bytes, origin->input, error);
}

/* Converts u64 values to u32. A value of 2^32 or more is an error, because it is not below n. `got`
 * is the number of values before these. */
static shuf_status narrow(const struct input *in, const uint64_t *wide, size_t count,
                          uint64_t first, size_t got, uint32_t *values, struct shuf__error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (wide[i] >= in->n)
            return shuf__fail(error, SHUF_INVALID,
                              "row %" PRIu64 ": value %" PRIu64 " at position %zu"
                              ": expected a permutation of 0 to %" PRIu32,
                              first + (got + i) / in->n, wide[i], (got + i) % in->n, in->n - 1);
        values[got + i] = (uint32_t)wide[i];
    }
    return SHUF_OK;
}

static shuf_status read_wide(struct input *in, uint64_t first, uint32_t *values, size_t count,
                             size_t *bytes, struct shuf__error *error)
{
    uint64_t buffer[BUFFER];
    size_t now = 1;
    *bytes = 0;
    for (size_t got = 0; got < count && now != 0; got += now / sizeof *buffer) {
        const size_t size = count - got < BUFFER ? count - got : BUFFER;
        shuf_status status =
            shuf__input_read(&in->bytes, buffer, size * sizeof *buffer, &now, error);
        if (status == SHUF_OK)
            status = narrow(in, buffer, now / sizeof *buffer, first, got, values, error);
        if (status != SHUF_OK)
            return status;
        *bytes += now;
        if (now < size * sizeof *buffer)
            break;
    }
    return SHUF_OK;
}

static shuf_status read_file(void *state, const struct shuf__row_request *request, uint32_t *rows,
                             size_t *count, struct shuf__error *error)
{
    struct input *in = state;
    const unsigned width = in->wide ? 8 : 4;
    const size_t values = request->count * in->n, row = (size_t)in->n * width;
    size_t bytes;
    shuf_status status =
        in->wide ? read_wide(in, request->first, rows, values, &bytes, error)
                 : shuf__input_read(&in->bytes, rows, values * sizeof *rows, &bytes, error);
    if (status != SHUF_OK)
        return status;
    *count = bytes / row;
    if (bytes % row != 0)
        return shuf__fail(error, SHUF_INVALID,
                          "row %" PRIu64 ": ends after %zu byte%s, in value number %zu"
                          ": expected %" PRIu32 " values of %u bytes",
                          request->first + *count, bytes % row, shuf__plural(bytes % row),
                          bytes % row / width, in->n, width);
    return SHUF_OK;
}

static void close_file(void *state)
{
    const struct input *in = state;
    shuf__input_close(&in->bytes);
}

const struct shuf__source_type shuf__source_file = {
    .name = "file",
    .data = true,
    .state = sizeof(struct input),
    .open = open_file,
    .read = read_file,
    .close = close_file,
};

/* ---- A daemon ---- */

/* Rows from a running shufd, by libshuf. Each request is for a batch of epochs. */

struct service {
    shuf *daemon;
    const struct shuf__origin *origin;
    uint32_t n;
};

static shuf_status open_daemon(void *state, const struct shuf__origin *origin, uint32_t n,
                               struct shuf__error *error)
{
    struct service *s = state;
    s->origin = origin;
    s->n = n;
    shuf_status status = shuf_connect(&s->daemon, origin->socket);
    return status == SHUF_OK ? SHUF_OK : shuf__fail(error, status, "%s", shuf_message(s->daemon));
}

static shuf_status read_daemon(void *state, const struct shuf__row_request *request, uint32_t *rows,
                               size_t *count, struct shuf__error *error)
{
    struct service *s = state;
    const size_t batch = s->origin->vary_seed ? 1 : request->count;
    for (size_t r = 0; r < request->count; r += batch) {
        const struct shuf__place place =
            shuf__place_of(s->origin, request->relation, request->bit, request->first + r);
        const shuf_request what = {.permutation = {
                                       .algorithm = s->origin->algorithm,
                                       .n = s->n,
                                       .seed = place.seed,
                                       .epoch = place.epoch,
                                       .epochs = batch,
                                       .dtype = SHUF_U32,
                                   }};
        shuf_status status =
            shuf_copy(s->daemon, &what, rows + r * s->n, batch * s->n * sizeof *rows, NULL);
        if (status != SHUF_OK)
            return shuf__fail(error, status, "%s", shuf_message(s->daemon));
    }
    *count = request->count;
    return SHUF_OK;
}

static void close_daemon(void *state)
{
    shuf_close(((struct service *)state)->daemon);
}

const struct shuf__source_type shuf__source_daemon = {
    .name = "daemon",
    .relatives = true,
    .state = sizeof(struct service),
    .open = open_daemon,
    .read = read_daemon,
    .close = close_daemon,
};

/* ---- All sources ---- */

struct shuf__place shuf__place_of(const struct shuf__origin *origin, enum shuf__relation relation,
                                  unsigned bit, uint64_t row)
{
    struct shuf__place place = {origin->seed, origin->epoch};
    *(origin->vary_seed ? &place.seed : &place.epoch) += row;
    if (relation == SHUF__NEIGHBOUR)
        ++*(origin->vary_seed ? &place.epoch : &place.seed);
    if (relation == SHUF__FLIPPED)
        place.seed ^= UINT64_C(1) << bit;
    return place;
}

uint64_t shuf__origin_modulus(const struct shuf__origin *origin, uint32_t n)
{
    const struct shuf__generator *g = origin->generator;
    if (origin->type == &shuf__source_daemon)
        g = shuf__generator_find(origin->algorithm ? origin->algorithm : "primefold");
    return origin->modulus != 0 ? origin->modulus : g && g->modulus ? g->modulus(n) : 0;
}

static shuf_status check_row(uint32_t n, const uint32_t *row, uint64_t number, uint32_t *marks,
                             struct shuf__error *error)
{
    memset(marks, 0, (n / 32 + 1) * sizeof *marks);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t value = row[i];
        if (value >= n)
            return shuf__fail(error, SHUF_INVALID,
                              "row %" PRIu64 ": value %" PRIu32 " at position %" PRIu32
                              ": expected a permutation of 0 to %" PRIu32,
                              number, value, i, n - 1);
        if (marks[value / 32] >> value % 32 & 1)
            return shuf__fail(error, SHUF_INVALID,
                              "row %" PRIu64 ": value %" PRIu32 " at position %" PRIu32
                              " stands there for the second time: expected a permutation",
                              number, value, i);
        marks[value / 32] |= UINT32_C(1) << value % 32;
    }
    return SHUF_OK;
}

shuf_status shuf__rows_check(uint32_t n, const uint32_t *rows, size_t count, uint64_t first,
                             uint32_t *marks, struct shuf__error *error)
{
    for (size_t r = 0; r < count; r++) {
        shuf_status status = check_row(n, rows + r * n, first + r, marks, error);
        if (status != SHUF_OK)
            return status;
    }
    return SHUF_OK;
}

/* ---- Rows that a generator makes in this process ---- */

struct generated {
    const struct shuf__origin *origin;
    uint32_t n;
};

static shuf_status open_generator(void *state, const struct shuf__origin *origin, uint32_t n,
                                  struct shuf__error *error)
{
    (void)error;
    *(struct generated *)state = (struct generated){origin, n};
    return SHUF_OK;
}

static shuf_status read_generator(void *state, const struct shuf__row_request *request,
                                  uint32_t *rows, size_t *count, struct shuf__error *error)
{
    const struct generated *g = state;
    const struct shuf__origin *o = g->origin;
    _Alignas(64) unsigned char made[SHUF__GENERATOR_STATE] = {0};
    (void)error;
    for (size_t r = 0; r < request->count; r++) {
        const struct shuf__place place =
            shuf__place_of(o, request->relation, request->bit, request->first + r);
        o->generator->make(made, g->n, place.seed, place.epoch, o->rounds);
        o->generator->fill(made, g->n, rows + r * g->n);
    }
    *count = request->count;
    return SHUF_OK;
}

static void close_generator(void *state)
{
    (void)state;
}

const struct shuf__source_type shuf__source_generator = {
    .name = "generator",
    .parallel = true,
    .relatives = true,
    .state = sizeof(struct generated),
    .open = open_generator,
    .read = read_generator,
    .close = close_generator,
};
