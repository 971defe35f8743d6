/* SPDX-License-Identifier: MIT
 *
 * Asks the scheduler for short slices of the processor for the loop's thread. On busy processors
 * the kernel then runs this thread earlier after it wakes up. The thread gets no more time than
 * with long slices. Kernels before Linux 6.12 ignore the wish.
 */
#ifndef SHUFD_SHORT_SLICE_H
#define SHUFD_SHORT_SLICE_H

/* For the calling thread. Threads that it creates later have slices of the default length, and no
 * negative nice value. Has no effect with a policy other than SCHED_OTHER. */
void shuf__short_slice_set(void);

#endif
