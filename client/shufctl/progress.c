/* SPDX-License-Identifier: MIT
 *
 * See progress.h.
 */
#include "progress.h"

#include "clock.h"
#include "end_by_signal.h"
#include "exit.h"
#include "units.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const uint64_t second_ns = 1000000000, interval_ns = 100000000;

/* The lock guards all fields except three: only the main thread uses `quiet` and `thread`, and
 * `dying` is a sig_atomic_t. */
static struct {
    bool quiet;
    bool running; /* the thread */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* the end */
    bool ends, hidden;
    bool counts; /* the phase counts its bytes itself */
    const char *phase;
    uint64_t done, total;        /* bytes of the phase */
    uint64_t start_ns, phase_ns; /* the start of the command, and of its phase */
    uint64_t lost_ns;            /* the time at which the daemon was lost; 0: it is not lost */
    unsigned reconnect_ms;       /* the longest wait for a daemon */
    bool noted_loss;             /* without a terminal */
    volatile sig_atomic_t drawn, dying; /* a signal handler reads and writes them */
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- The line ---- */

struct line {
    char text[256];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void append(struct line *line, const char *format, ...)
{
    va_list args;
    const size_t room = sizeof line->text - line->used;
    va_start(args, format);
    const int length = vsnprintf(line->text + line->used, room, format, args);
    va_end(args);
    line->used += (size_t)length < room ? (size_t)length : room - 1;
}

static void add_rate(struct line *line, double seconds)
{
    char done[SHUF__UNITS_TEXT], rate[SHUF__UNITS_TEXT];
    const double per_second = (double)progress.done / seconds;
    append(line, " %s", shuf__units_bytes(done, progress.done));
    if (progress.total > 0)
        append(line, " of %s", shuf__units_bytes(done, progress.total));
    append(line, ", %s/s", shuf__units_bytes(rate, (uint64_t)per_second));
}

static void add_left(struct line *line, double seconds)
{
    char left[SHUF__UNITS_TEXT];
    const double part = (double)progress.done / (double)progress.total;
    const double rest = part < 1 ? seconds / part * (1 - part) : 0;
    const uint64_t whole = rest < 1e9 ? (uint64_t)rest + 1 : 1000000000;
    if (whole < 60)
        append(line, ", %d %%, %d s left", (int)(part * 100), (int)whole);
    else
        append(line, ", %d %%, %s left", (int)(part * 100),
               shuf__units_time(left, whole * second_ns));
}

static void add_time(struct line *line, uint64_t seconds)
{
    char time[SHUF__UNITS_TEXT];
    if (seconds < 60)
        append(line, " %d s", (int)seconds);
    else
        append(line, " %s", shuf__units_time(time, seconds * second_ns));
}

static void write_loss(struct line *line, uint64_t now)
{
    append(line, "waiting for the daemon to come back: %d s of %u s",
           (int)((now - progress.lost_ns) / second_ns), progress.reconnect_ms / 1000);
}

static void write_phase(struct line *line, uint64_t now)
{
    const uint64_t elapsed_ns = now - progress.phase_ns;
    append(line, "%s:", progress.phase);
    if (progress.done == 0)
        add_time(line, elapsed_ns / second_ns);
    else
        add_rate(line, (double)elapsed_ns / 1e9);
    if (progress.done > 0 && progress.total > 0)
        add_left(line, (double)elapsed_ns / 1e9);
}

/* Keeps the line shorter than the width of the terminal. The next line could not replace a line
 * that wraps. */
static void draw_line(uint64_t now)
{
    struct line line = {.used = 0};
    (progress.lost_ns ? write_loss : write_phase)(&line, now);
    if (progress.dying)
        return;
    progress.drawn = true;
    fprintf(stderr, "\r%.*s\033[K", (int)shuf__terminal_columns(STDERR_FILENO) - 1, line.text);
    fflush(stderr);
}

/* Also clears a ^C that the terminal may have echoed on the line. */
static void clear_before_signal(void)
{
    static const char clear[] = "\r\033[K";
    progress.dying = true;
    if (progress.drawn && write(STDERR_FILENO, clear, sizeof clear - 1) < 0)
        return;
}

static void clear_line(void)
{
    if (progress.drawn)
        fputs("\r\033[K", stderr);
    progress.drawn = false;
}

/* ---- The thread ---- */

static void wait_interval(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)interval_ns;
    until.tv_sec += until.tv_nsec / (long)second_ns;
    until.tv_nsec %= (long)second_ns;
    pthread_cond_timedwait(&progress.wake, &progress.lock, &until);
}

static void *draw(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&progress.lock);
    while (!progress.ends) {
        wait_interval();
        const uint64_t now = shuf__clock_ns();
        if (!progress.ends && !progress.hidden && now - progress.start_ns >= second_ns)
            draw_line(now);
    }
    clear_line();
    pthread_mutex_unlock(&progress.lock);
    return NULL;
}

/* The new thread blocks all signals, so only the main thread receives them. The main thread can
 * then block them while it must not be interrupted. */
static bool start_thread(void)
{
    sigset_t all, old;
    pthread_condattr_t attributes;
    sigfillset(&all);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&progress.wake, &attributes);
    pthread_condattr_destroy(&attributes);
    progress.ends = progress.hidden = false;
    progress.start_ns = shuf__clock_ns();
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int error = pthread_create(&progress.thread, NULL, draw, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error == 0;
}

/* ---- Interface ---- */

void shuf__progress_set_quiet(bool quiet)
{
    progress.quiet = quiet;
}

void shuf__progress_phase(const char *name, uint64_t total)
{
    pthread_mutex_lock(&progress.lock);
    progress.phase = name;
    progress.total = total;
    progress.done = 0;
    progress.counts = false;
    progress.phase_ns = shuf__clock_ns();
    pthread_mutex_unlock(&progress.lock);
    shuf__before_failure = shuf__progress_end;
    if (!progress.running && !progress.quiet && isatty(STDERR_FILENO)) {
        shuf__before_signal(clear_before_signal);
        progress.running = start_thread();
    }
}

void shuf__progress_add(uint64_t bytes)
{
    pthread_mutex_lock(&progress.lock);
    progress.done += bytes;
    progress.counts = true;
    pthread_mutex_unlock(&progress.lock);
}

void shuf__progress_hide(void)
{
    pthread_mutex_lock(&progress.lock);
    progress.hidden = true;
    clear_line();
    pthread_mutex_unlock(&progress.lock);
}

void shuf__progress_end(void)
{
    if (!progress.running)
        return;
    pthread_mutex_lock(&progress.lock);
    progress.ends = true;
    pthread_cond_signal(&progress.wake);
    pthread_mutex_unlock(&progress.lock);
    pthread_join(progress.thread, NULL);
    pthread_cond_destroy(&progress.wake);
    progress.running = false;
}

/* ---- Events ---- */

static void print_note(const char *text)
{
    if (!progress.running)
        return;
    pthread_mutex_lock(&progress.lock);
    clear_line();
    fprintf(stderr, "%s: %s\n", shuf__program_name, text);
    pthread_mutex_unlock(&progress.lock);
}

/* Has no effect in a phase that counts its bytes itself, because its count is ahead of the
 * count of parts. */
static void note_part(uint64_t done, uint64_t all)
{
    pthread_mutex_lock(&progress.lock);
    if (!progress.counts) {
        progress.done = done;
        progress.total = all;
    }
    pthread_mutex_unlock(&progress.lock);
}

/* On a terminal it reports every loss, elsewhere only the first one. */
static void note_loss(void)
{
    char text[128];
    snprintf(text, sizeof text,
             "the connection to the daemon is lost; waiting up to %u s for it to come back",
             progress.reconnect_ms / 1000);
    if (!progress.running && !progress.quiet && !progress.noted_loss)
        fprintf(stderr, "%s: %s\n", shuf__program_name, text);
    progress.noted_loss = true;
    print_note(text);
}

static void set_lost(uint64_t since_ns)
{
    pthread_mutex_lock(&progress.lock);
    progress.lost_ns = since_ns;
    pthread_mutex_unlock(&progress.lock);
}

static void observe(void *context, shuf_event event, uint64_t done, uint64_t all)
{
    (void)context;
    if (event == SHUF_EVENT_LOST) {
        note_loss();
        set_lost(shuf__clock_ns());
    } else if (event == SHUF_EVENT_FOUND) {
        set_lost(0);
        print_note("connected again");
    } else {
        note_part(done, all);
    }
}

void shuf__progress_observe(shuf *handle, unsigned reconnect_ms)
{
    progress.reconnect_ms = reconnect_ms;
    shuf_set_reconnect(handle, reconnect_ms);
    shuf_set_observer(handle, observe, NULL);
}

/* ---- Terminals ---- */

enum { COLUMNS = 80 }; /* of a terminal that does not report its width */

unsigned shuf__terminal_columns(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return COLUMNS;
    return size.ws_col < SHUF__COLUMNS_MOST ? size.ws_col : SHUF__COLUMNS_MOST;
}
