/* SPDX-License-Identifier: MIT
 *
 * See process_limits.h.
 */
#include "process_limits.h"

#include "descriptors.h"

#include <inttypes.h>
#include <sys/resource.h>

enum { STACK = 1 << 20 }; /* several times the most that a thread has used */

/* The stacks of all threads have the size of this limit. */
static shuf_status check_stack(struct shuf__error *error)
{
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= STACK)
        return SHUF_OK;
    return shuf__fail(error, SHUF_IO,
                      "stack: the limit is %" PRIu64 " KiB, but shufd needs at least %d; raise it "
                      "with ulimit -s, or with LimitSTACK= of the unit",
                      (uint64_t)stack.rlim_cur / 1024, STACK / 1024);
}

/* The limit also holds for memfds, which have the results. */
static void raise_file_size(void)
{
    struct rlimit size;
    if (getrlimit(RLIMIT_FSIZE, &size) != 0)
        return;
    size.rlim_cur = size.rlim_max;
    setrlimit(RLIMIT_FSIZE, &size); /* if it fails, the old limit stays */
}

shuf_status shuf__limits_check(const struct shuf__config *config, struct shuf__error *error)
{
    raise_file_size();
    return check_stack(error) ? error->status : shuf__descriptors_check(config, error);
}
