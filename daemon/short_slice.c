/* SPDX-License-Identifier: MIT
 *
 * See short_slice.h. glibc before 2.41 has no functions for these system calls.
 */
#include "short_slice.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SLICE_NS = 100000, RESET_ON_FORK = 1 };

/* The kernel's struct sched_attr, in its first version. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period; /* with SCHED_OTHER the first one is the slice */
};

void shuf__short_slice_set(void)
{
    struct attributes attributes = {0};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 ||
        attributes.policy != SCHED_OTHER)
        return;
    attributes.runtime = SLICE_NS;
    attributes.flags |= RESET_ON_FORK;
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}
