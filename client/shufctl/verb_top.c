/* SPDX-License-Identifier: MIT
 *
 * `shufctl top`: a live view of the daemon on a terminal; elsewhere it prints pages of text.
 */
#include "clock.h"
#include "connect.h"
#include "daemon_options.h"
#include "exit.h"
#include "number.h"
#include "option_parse.h"
#include "option_values.h"
#include "top_page.h"
#include "verbs.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>
#ifdef SHUF_HAVE_NCURSES
#include <curses.h>
#include <term.h>

static const uint64_t glance_ns = 200000000;
#endif

enum key { KEY_INTERVAL = 0x400, KEY_COUNT };

struct top_options {
    struct shuf__daemon_options daemon;
    uint64_t interval_ns, count; /* 0 pages: no end */
};

static const struct argp_option option_table[] = {
    {"interval", KEY_INTERVAL, "TIME", 0, "Time between two pages, 100ms or more (default 1s)", 0},
    {"count", KEY_COUNT, "N", 0, "End after so many pages", 0},
    {0},
};

static error_t parse_top_option(int key, char *text, struct argp_state *state)
{
    struct top_options *options = state->input;
    struct shuf__error error;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->daemon;
        return 0;
    case KEY_INTERVAL:
        if (shuf__duration_parse("--interval", text, 100000000, UINT64_C(3600000000000),
                                 &options->interval_ns, &error))
            shuf__option_fail(state, EX_USAGE, "%s", error.text);
        return 0;
    case KEY_COUNT:
        shuf__option_number_in(state, "--count", text, 1, UINT32_MAX, &options->count);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- where the pages go ---- */

static void pause_ns(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000),
                                  .tv_nsec = (long)(ns % 1000000000)};
    nanosleep(&time, NULL);
}

static void show_text(const char *page)
{
    puts(page);
    fflush(stdout);
}

static bool wait_text(uint64_t ns)
{
    pause_ns(ns);
    return !ferror(stdout);
}

#ifdef SHUF_HAVE_NCURSES

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

static void end_screen(void)
{
    if (!isendwin())
        endwin();
}

/* initscr() would end the program for a terminal without a description, and a failed newterm()
 * keeps memory. */
static bool is_known_terminal(void)
{
    int found;
    if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
        return false;
    del_curterm(cur_term);
    return true;
}

/* False if curses does not know the terminal, as in a container without its description. */
static bool begin_screen(void)
{
    const struct sigaction action = {.sa_handler = on_signal};
    if (!is_known_terminal() || !newterm(NULL, stdout, stdin))
        return false;
    atexit(end_screen);
    cbreak();
    noecho();
    curs_set(0);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return true;
}

/* Shows the page without the lines that do not fit. */
static void show_screen(const char *page)
{
    int row = 0;
    erase();
    for (const char *line = page; *line && row < LINES - 1; row++) {
        const size_t length = strcspn(line, "\n");
        mvaddnstr(row, 0, line, length < (size_t)COLS ? (int)length : COLS);
        line += length + (line[length] == '\n');
    }
    mvaddnstr(LINES - 1, 0, "q: quit", COLS);
    refresh();
}

/* False if the user wants to leave. A signal that comes just before getch() does not end it, so it
 * waits for a short time only. */
static bool wait_screen(uint64_t ns)
{
    const uint64_t end_ns = shuf__clock_ns() + ns;
    for (uint64_t now_ns; !interrupted && (now_ns = shuf__clock_ns()) < end_ns;) {
        const uint64_t left_ns = end_ns - now_ns;
        timeout((int)((left_ns < glance_ns ? left_ns : glance_ns) / 1000000) + 1);
        const int key = getch();
        if (key != ERR)
            return key != 'q' && key != 'Q';
    }
    return !interrupted;
}

#endif

struct screen {
    void (*show)(const char *page);
    bool (*wait)(uint64_t ns);
};

static struct screen begin(void)
{
#ifdef SHUF_HAVE_NCURSES
    if (isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && begin_screen())
        return (struct screen){show_screen, wait_screen};
#endif
    return (struct screen){show_text, wait_text};
}

/* False when out of memory. Without memory for its last byte, fclose() succeeds without a page. */
static bool show_page(const struct screen *screen, const char *socket,
                      const struct shuf__top_sample *before, const struct shuf__top_sample *now)
{
    char *page = NULL;
    size_t size;
    FILE *to = open_memstream(&page, &size);
    if (!to)
        return false;
    shuf__top_print(socket, before, now, to);
    const bool failed = ferror(to), is_complete = fclose(to) == 0 && !failed && page;
    if (is_complete)
        screen->show(page);
    free(page);
    return is_complete;
}

/* Sets *has_memory to false if there is no memory for a page. */
static shuf_status watch_daemon(shuf *handle, const struct top_options *options, bool *has_memory)
{
    static struct shuf__top_sample samples[2];
    shuf_status status = shuf__top_sample_read(handle, &samples[0]);
    if (status != SHUF_OK)
        return status;
    const struct screen screen = begin();
    for (uint64_t page = 0; options->count == 0 || page < options->count; page++) {
        struct shuf__top_sample *before = &samples[page % 2], *now = &samples[1 - page % 2];
        if (!screen.wait(options->interval_ns))
            return SHUF_OK;
        if ((status = shuf__top_sample_read(handle, now)) != SHUF_OK)
            return status;
        *has_memory = show_page(&screen, shuf_socket(handle), before, now);
        if (!*has_memory)
            return SHUF_OK;
    }
    return SHUF_OK;
}

static int show_top(shuf *handle, const struct top_options *options)
{
    bool has_memory = true;
    const shuf_status status = watch_daemon(handle, options, &has_memory);
#ifdef SHUF_HAVE_NCURSES
    if (stdscr)
        end_screen();
#endif
    if (!has_memory)
        return shuf__fail_with(EX_OSERR, "top: out of memory");
    return status == SHUF_OK ? EX_OK : shuf__fail_call(handle, status, &options->daemon);
}

int shuf__verb_top(int argc, char **argv)
{
    static const struct argp_child children[] = {{&shuf__connection_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = option_table,
        .parser = parse_top_option,
        .doc = "Shows requests, latency, memory, users and leases of the daemon, as they change.",
        .children = children,
    };
    struct top_options options = {.interval_ns = 1000000000};
    shuf *handle;
    shuf__options_parse(&argp, argc, argv, &options);
    int code = shuf__connect_or_fail(&handle, &options.daemon);
    if (code == EX_OK)
        code = show_top(handle, &options);
    shuf_close(handle);
    return code;
}
