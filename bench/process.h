/* SPDX-License-Identifier: MIT
 *
 * Starts processes for a benchmark, and makes files in a temporary directory. When the benchmark
 * ends by exit(), Ctrl-C or SIGTERM, its processes end and its files are deleted. After SIGKILL
 * only its processes end.
 *
 * For programs of one thread. A failure ends the program with a line that gives the reason.
 */
#ifndef SHUF__BENCH_PROCESS_H
#define SHUF__BENCH_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

/* The clock of benchmarks that time from outside: monotonic, in nanoseconds. */
static inline double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Prints the program's name and the line, and ends the program. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The path of a file of that name in the benchmark's directory. The first call makes the directory.
 * The path is valid until the end. */
const char *process_file(const char *name);

/* The same for a FIFO that is open for reading, so a program can open it, and that nobody reads. */
const char *process_unread_file(const char *name);

/* fork() for a child that ends with the benchmark. The child must end by _exit(). */
pid_t process_fork(void);

/* Starts a program, found through PATH. Its output goes to the file `log`, or with NULL to this
 * program's output. */
pid_t process_start(const char *const *argv, const char *log);

/* Whether the process has ended. */
bool process_ended(pid_t pid, int *status);

/* Sends the signal (0: none) and waits; kills the process after a minute. Returns its wait
 * status. */
int process_end(pid_t pid, int signal);

/* Runs a program to its end and returns its stdout; the caller frees it. NULL if it failed or does
 * not exist. Its stderr is shown. */
char *process_output(const char *const *argv);

/* Bytes of memory that the kernel charges to a process: its private memory, and its share of shared
 * memory. 0 if the kernel does not report it. */
double process_memory(pid_t pid);

#endif
