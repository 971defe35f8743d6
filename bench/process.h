/* SPDX-License-Identifier: MIT
 *
 * What a benchmark starts and leaves lying about: processes, and files in a directory
 * of its own. However it ends, by exit(), by Ctrl-C or by SIGTERM, they end with it;
 * even by SIGKILL no process that it started stays behind.
 *
 * For programs of one thread. Failures end the program with a line that says why.
 */
#ifndef SHUF__BENCH_PROCESS_H
#define SHUF__BENCH_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Ends the program: its name, and the line. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The path of a file of that name in the benchmark's directory, which is made the first
 * time. Valid until the end. */
const char *process_file(const char *name);

/* fork(); the child is one of ours, and leaves by _exit(). */
pid_t process_fork(void);

/* Starts a program, found as a shell finds it. What it writes goes to the file `log`, or where
 * this program's own goes when that is NULL. */
pid_t process_start(const char *const *argv, const char *log);

/* Has it ended? */
bool process_ended(pid_t pid, int *status);

/* Sends the signal (0: none) and returns its wait status; it is killed after a minute. */
int process_end(pid_t pid, int signal);

/* Runs a program to its end and returns what it wrote to stdout, to be freed; NULL when it
 * failed, or is not there. What it has to say on stderr is shown. */
char *process_output(const char *const *argv);

/* Bytes of memory that the kernel charges to a process: its own, and its share of what it shares
 * with others. 0 where the kernel does not say. */
double process_memory(pid_t pid);

#endif
