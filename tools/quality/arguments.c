/* SPDX-License-Identifier: MIT
 *
 * See arguments.h.
 */
#include "arguments.h"

#include "number.h"
#include "option_values.h"
#include "run.h"

#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

uint64_t shuf__quality_number(struct argp_state *state, const char *field, const char *text,
                              uint64_t least, uint64_t most)
{
    uint64_t value;
    shuf__option_number_in(state, field, text, least, most, &value);
    return value;
}

bool shuf__quality_choice(struct argp_state *state, const char *field, const char *text,
                          const char *no, const char *yes)
{
    const char *const words[] = {no, yes, NULL};
    char expected[64];
    snprintf(expected, sizeof expected, "%s or %s", no, yes);
    return shuf__option_choice(state, field, text, words, expected) == 1;
}

void shuf__quality_check_input(struct argp_state *state, const char *path)
{
    if (strcmp(path, "-") != 0 && access(path, R_OK) != 0)
        shuf__option_fail(state, EX_NOINPUT, "--in %.128s: %s", *path ? path : "''",
                          strerror(errno));
}

void shuf__quality_list_name(char *list, size_t size, const char *name)
{
    const size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}

/* ---- Of all that judge --------------------------------------------------------- */

static double read_alpha(struct argp_state *state, const char *text)
{
    struct shuf__error error;
    double alpha;
    if (shuf__decimal_parse("--alpha", text, &alpha, &error) != SHUF_OK ||
        !(alpha > 0 && alpha < 1))
        shuf__option_fail(state, EX_USAGE, "--alpha %.64s: expected a number between 0 and 1",
                          text);
    return alpha;
}

static void refuse_tests(struct argp_state *state, const char *text, const char *(*test)(int i))
{
    char names[512] = "";
    for (int i = 0; test(i); i++)
        shuf__quality_list_name(names, sizeof names, test(i));
    shuf__option_fail(state, EX_USAGE, "--tests %.64s: expected names from %s", *text ? text : "''",
                      names);
}

static uint32_t read_tests(struct argp_state *state, const char *text, const char *(*test)(int i))
{
    uint32_t tests = 0;
    for (const char *p = text, *end; *p; p = end + 1) {
        end = strchrnul(p, ',');
        const size_t length = (size_t)(end - p);
        int i = 0;
        while (test(i) && (strlen(test(i)) != length || strncmp(test(i), p, length) != 0))
            i++;
        if (!test(i))
            break;
        tests |= UINT32_C(1) << i;
        if (!*end)
            return tests;
    }
    refuse_tests(state, text, test);
    return 0;
}

void shuf__judging_init(struct shuf__judging *judging)
{
    *judging = (struct shuf__judging){
        .tests = SHUF__TESTS_ALL, .alpha = 0.001, .threads = omp_get_max_threads()};
}

error_t shuf__judging_parse(int key, char *text, struct argp_state *state,
                            struct shuf__judging *judging, const char *(*test)(int i))
{
    switch (key) {
    case SHUF__KEY_TESTS:
        judging->tests = read_tests(state, text, test);
        return 0;
    case SHUF__KEY_ALPHA:
        judging->alpha = read_alpha(state, text);
        return 0;
    case SHUF__KEY_THREADS:
        judging->threads = (int)shuf__quality_number(state, "--threads", text, 1, 1024);
        return 0;
    case SHUF__KEY_JSON:
        judging->json = true;
        return 0;
    case SHUF__KEY_PLOT:
        judging->plot = text;
        return 0;
    default:
        return shuf__option_common(key, text, state);
    }
}
