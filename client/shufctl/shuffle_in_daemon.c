/* SPDX-License-Identifier: MIT
 *
 * A shuffle in the memory of the daemon: shufctl reads the records into a buffer of the daemon,
 * leases the shuffled result, and writes this to the output.
 */
#include "connect.h"
#include "exit.h"
#include "progress.h"
#include "shuffle_run.h"

#include <sysexits.h>
#include <unistd.h>

enum {
    PART = 4 << 20,  /* bytes between two updates of the progress */
    LOSSES_MAX = 16, /* daemons that one shuffle may lose */
};

struct daemon_shuffle {
    struct shuf__shuffle_run *run;
    shuf_lease *buffer;
    bool lost; /* a daemon was lost */
    int code;  /* the exit code of a failure in this process */
};

/* ---- Input ---------------------------------------------------------------------- */

/* Reads directly into the buffer if the buffer is mapped. */
static shuf_status fill_part(shuf *daemon, struct daemon_shuffle *s, uint64_t offset, size_t size)
{
    static char part[PART];
    const shuf_lease *buffer = s->buffer;
    char *to = buffer->buffer ? (char *)buffer->buffer + offset : part;
    s->code = shuf__array_read(&s->run->array, offset, size, to);
    if (s->code != EX_OK || buffer->buffer)
        return SHUF_OK;
    return shuf_lease_write(daemon, buffer, offset, size, part);
}

static shuf_status fill_buffer(shuf *daemon, struct daemon_shuffle *s)
{
    const uint64_t all = s->run->array.bytes;
    shuf_status status = SHUF_OK;
    shuf__progress_phase("reading", all);
    for (uint64_t done = 0; done < all && status == SHUF_OK && s->code == EX_OK;) {
        const size_t size = all - done < PART ? (size_t)(all - done) : PART;
        status = fill_part(daemon, s, done, size);
        done += size;
        shuf__progress_add(size);
    }
    return status;
}

/* After a failure it keeps its leases, because a release would replace the message of the failure.
 * The next attempt releases the buffer, and shuf_close() ends all leases. */
static shuf_status shuffle_once(shuf *daemon, struct daemon_shuffle *s, shuf_lease **shuffled)
{
    const shuf_request buffer = {.kind = SHUF_BUFFER, .bytes = s->run->array.bytes};
    shuf_request shuffle = {.kind = SHUF_RECORDS, .records = s->run->records};
    shuf_status status = shuf_lease_take(daemon, &buffer, NULL, &s->buffer);
    if (status == SHUF_OK)
        status = fill_buffer(daemon, s);
    shuf__progress_phase("computing", 0);
    shuffle.records.input = s->buffer;
    if (status == SHUF_OK && s->code == EX_OK)
        status = shuf_lease_take(daemon, &shuffle, NULL, shuffled);
    return status == SHUF_OK ? shuf_lease_release(daemon, &s->buffer) : status;
}

/* shuf_daemon_status() waits for the next daemon as long as the library's reconnect time. */
static shuf_status shuffle_array(shuf *daemon, struct daemon_shuffle *s, shuf_lease **shuffled)
{
    shuf_daemon ignored;
    shuf_status status = shuffle_once(daemon, s, shuffled);
    for (int losses = 0; status == SHUF_NO_DAEMON && losses < LOSSES_MAX; losses++) {
        s->lost = true;
        if ((status = shuf_daemon_status(daemon, &ignored)) != SHUF_OK)
            break;
        status = shuffle_once(daemon, s, shuffled);
    }
    return status;
}

/* ---- Output --------------------------------------------------------------------- */

static int write_records(struct shuf__shuffle_run *run, const shuf_lease *shuffled)
{
    const uint64_t all = run->array.bytes;
    int code = shuf__shuffle_begin_output(run);
    bool written = code == EX_OK;
    shuf__progress_phase("writing", all);
    for (uint64_t done = 0; done < all && written;) {
        const size_t size = all - done < PART ? (size_t)(all - done) : PART;
        written = shuf__output_write(&run->output, (const char *)shuffled->data + done, size);
        done += size;
        shuf__progress_add(size);
    }
    return code != EX_OK || written ? code : shuf__output_failed(&run->output);
}

/* ---- The whole way ------------------------------------------------------------------ */

/* Fails if the array and its copy are larger than the daemon's limit for results. */
static shuf_status check_room(shuf *daemon, const struct shuf__shuffle_run *run)
{
    shuf_daemon now;
    shuf_status status = shuf_daemon_status(daemon, &now);
    return status == SHUF_OK && run->array.bytes > now.host_limit / 2 ? SHUF_NO_MEMORY : status;
}

static int fail(shuf *daemon, const struct daemon_shuffle *s, shuf_status status)
{
    if (status == SHUF_NO_DAEMON && s->lost)
        return shuf__fail_with(shuf__exit_code(status), "the daemon was lost; %s",
                               shuf_message(daemon));
    return shuf__fail_call(daemon, status, &s->run->options->daemon);
}

/* The next request of the handle gives the buffer back. */
static void drop_buffer(shuf *daemon, struct daemon_shuffle *s)
{
    shuf_lease_release(daemon, &s->buffer);
}

int shuf__shuffle_in_daemon(shuf *daemon, struct shuf__shuffle_run *run, bool *too_large)
{
    struct daemon_shuffle s = {.run = run};
    shuf_lease *shuffled = NULL;
    shuf_status status = check_room(daemon, run);
    if (status == SHUF_OK)
        status = shuffle_array(daemon, &s, &shuffled);
    *too_large = status == SHUF_NO_MEMORY || status == SHUF_BUSY;
    if (*too_large) {
        drop_buffer(daemon, &s);
        return EX_OK;
    }
    if (status != SHUF_OK)
        return fail(daemon, &s, status);
    if (s.code != EX_OK)
        return s.code;
    run->result = shuffled->result;
    return write_records(run, shuffled);
}
