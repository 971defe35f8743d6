/* SPDX-License-Identifier: MIT
 *
 * A shuffle in this process. The daemon computes the permutation in parts, so the array may be
 * larger than the daemon's memory. A forward shuffle reads records at any place of the mapped input
 * and writes them one after the other. An inverse shuffle writes records at any place, so it maps
 * the output.
 */
#include "array.h"
#include "connect.h"
#include "exit.h"
#include "progress.h"
#include "shuffle_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sysexits.h>
#include <unistd.h>

enum { PART = 4 << 20 };

/* ---- Mapped files ---------------------------------------------------------------- */

static void end_cut_off(int number)
{
    static const char text[] =
        "shufctl shuffle: a mapped file was cut off meanwhile, or its disk is full\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)number;
    (void)ignored;
    shuf__output_remove_temporary();
    _exit(EX_IOERR);
}

static void catch_cut_off(void)
{
    struct sigaction action = {.sa_handler = end_cut_off};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

static char *map_file(int fd, uint64_t bytes, int protection)
{
    void *memory = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int cannot_map(const char *option, const char *name)
{
    return shuf__fail_with(EX_IOERR, "%s %s: cannot map: %s", option, name, strerror(errno));
}

/* ---- In order ---------------------------------------------------------------------- */

static bool write_chunk(void *context, const void *bytes, size_t size)
{
    struct shuf__output *output = context;
    shuf__progress_add(size);
    return shuf__output_write(output, bytes, size);
}

static int write_in_order(shuf *daemon, struct shuf__shuffle_run *run, const char *in)
{
    int code = shuf__shuffle_begin_output(run);
    if (code != EX_OK)
        return code;
    shuf__progress_phase("writing", run->array.bytes);
    shuf_status status = shuf_shuffle_each(daemon, &run->records, in, run->array.bytes, write_chunk,
                                           &run->output, &run->result);
    if (run->output.cause != 0)
        return shuf__output_failed(&run->output);
    return status == SHUF_OK ? EX_OK : shuf__fail_call(daemon, status, &run->options->daemon);
}

/* ---- The inverse -------------------------------------------------------------------- */

static int write_copy(struct shuf__shuffle_run *run, const char *bytes)
{
    const uint64_t all = run->array.bytes;
    bool written = true;
    shuf__progress_phase("writing", all);
    for (uint64_t done = 0; done < all && written;) {
        const size_t size = all - done < PART ? (size_t)(all - done) : PART;
        written = shuf__output_write(&run->output, bytes + done, size);
        done += size;
        shuf__progress_add(size);
    }
    return written ? EX_OK : shuf__output_failed(&run->output);
}

/* Writes the records to the file from `offset` on. The file must already be long enough. */
static int fill_file(shuf *daemon, struct shuf__shuffle_run *run, const char *in, int fd,
                     size_t offset, bool copies)
{
    const uint64_t all = run->array.bytes;
    char *out = map_file(fd, offset + all, PROT_READ | PROT_WRITE);
    if (!out)
        return cannot_map("--out", run->options->out);
    shuf__progress_phase("computing", 0);
    shuf_status status = shuf_shuffle(daemon, &run->records, in, out + offset, all, &run->result);
    int code = status == SHUF_OK ? EX_OK : shuf__fail_call(daemon, status, &run->options->daemon);
    if (code == EX_OK && copies)
        code = write_copy(run, out);
    munmap(out, offset + all);
    return code;
}

/* Reserves the space of the mapped file first. On a full disk, a write to the mapping would end the
 * process by a signal, without a message. */
static bool reserve(int fd, uint64_t bytes)
{
    int result;
    do
        result = fallocate(fd, 0, 0, (off_t)bytes);
    while (result != 0 && errno == EINTR);
    return result == 0 ||
           ((errno == EOPNOTSUPP || errno == ENOSYS) && ftruncate(fd, (off_t)bytes) == 0);
}

static int fill_temporary(shuf *daemon, struct shuf__shuffle_run *run, const char *in)
{
    int fd = shuf__temporary_file();
    if (fd < 0 || !reserve(fd, run->array.bytes)) {
        int cause = errno;
        if (fd >= 0)
            close(fd);
        return shuf__fail_with(EX_IOERR,
                               "--inverse to a pipe: its temporary copy in %s: %s; set TMPDIR",
                               shuf__temporary_directory(), strerror(cause));
    }
    int code = fill_file(daemon, run, in, fd, 0, true);
    close(fd);
    return code;
}

static int write_inverse(shuf *daemon, struct shuf__shuffle_run *run, const char *in)
{
    struct shuf__output *output = &run->output;
    const size_t header = run->array.header_size;
    int code = shuf__shuffle_begin_output(run);
    if (code != EX_OK)
        return code;
    if (!output->path) /* a pipe, or a device */
        return fill_temporary(daemon, run, in);
    if (!reserve(output->fd, header + run->array.bytes)) {
        output->cause = errno;
        return shuf__output_failed(output);
    }
    return fill_file(daemon, run, in, output->fd, header, false);
}

int shuf__shuffle_mapped(shuf *daemon, struct shuf__shuffle_run *run)
{
    const uint64_t bytes = run->array.header_size + run->array.bytes;
    char *in = map_file(run->array.fd, bytes, PROT_READ);
    if (!in)
        return cannot_map("--in", run->options->in);
    catch_cut_off();
    int code = (run->records.inverse ? write_inverse : write_in_order)(daemon, run,
                                                                       in + run->array.header_size);
    munmap(in, bytes);
    return code;
}
