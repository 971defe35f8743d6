/* SPDX-License-Identifier: MIT
 *
 * Command lines of shufctl, one word a line. The parser ends the process with a status and one
 * line, or returns a request that the library accepts. The linker's --wrap replaces exit() and
 * functions of argp, so that the target goes on with the next input instead of ending the process.
 */
#include "error.h"
#include "fuzz.h"
#include "program.h"
#include "verbs.h"

#include <argp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sysexits.h>

enum { WORDS = 64, LINE = 2048 };

static jmp_buf back;
static bool is_running; /* true while the target runs; false when libFuzzer itself calls exit() */
static int code;
static char line[LINE];

/* ---- The replaced functions ---- */

_Noreturn void __wrap_exit(int status);
_Noreturn void __real_exit(int status);
void __wrap_argp_failure(const struct argp_state *state, int status, int cause, const char *format,
                         ...) __attribute__((format(printf, 4, 5)));
error_t __wrap_argp_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
                          int *index, void *input);
error_t __real_argp_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
                          int *index, void *input);
void __wrap_argp_state_help(const struct argp_state *state, FILE *out, unsigned flags);

_Noreturn void __wrap_exit(int status)
{
    if (!is_running)
        __real_exit(status);
    code = status;
    longjmp(back, 1);
}

/* Frees the memory that argp has allocated, because the jump out of argp skips its free(). In glibc
 * the address of this memory comes directly after the state. */
static _Noreturn void leave(const struct argp_state *state, int status)
{
    void *storage;
    memcpy(&storage, state + 1, sizeof storage);
    free(storage);
    __wrap_exit(status);
}

void __wrap_argp_failure(const struct argp_state *state, int status, int cause, const char *format,
                         ...)
{
    va_list arguments;
    (void)cause;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fuzz_require(status != EX_OK && line[0]);
    leave(state, status);
}

void __wrap_argp_state_help(const struct argp_state *state, FILE *out, unsigned flags)
{
    (void)out;
    (void)flags;
    leave(state, EX_OK);
}

/* argp's own --help and --usage would print and exit. ARGP_NO_HELP removes both options, so argp
 * refuses them like any unknown option. */
error_t __wrap_argp_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
                          int *index, void *input)
{
    const error_t error = __real_argp_parse(
        argp, argc, argv, flags | ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, index, input);
    if (error != 0)
        __wrap_exit(EX_USAGE);
    return 0;
}

/* ---- The verbs ---- */

static void check_permutation(const shuf_request *permutation)
{
    shuf_shape shape;
    char message[SHUF__ERROR_TEXT];
    if (shuf_shape_of(permutation, &shape, message, sizeof message) == SHUF_OK)
        return;
    dprintf(2, "%s\n", message);
    abort();
}

static void permute(int argc, char **argv)
{
    static shuf_request permutation;
    static struct shuf__output_options options;
    shuf__permute_options(argc, argv, &permutation, &options);
    check_permutation(&permutation);
}

static void draw(int argc, char **argv, shuf_distribution distribution)
{
    static shuf_request numbers;
    static struct shuf__output_options options;
    shuf_shape shape;
    char message[SHUF__ERROR_TEXT];
    numbers = (shuf_request){.kind = SHUF_NUMBERS, .numbers = {.distribution = distribution}};
    shuf__draw_options(argc, argv, &numbers, &options);
    if (shuf_shape_of(&numbers, &shape, message, sizeof message) == SHUF_OK)
        return;
    dprintf(2, "%s\n", message);
    abort();
}

static void gauss(int argc, char **argv)
{
    draw(argc, argv, SHUF_GAUSS);
}

static void uniform(int argc, char **argv)
{
    draw(argc, argv, SHUF_UNIFORM);
}

static void exponential(int argc, char **argv)
{
    draw(argc, argv, SHUF_EXPONENTIAL);
}

static void bernoulli(int argc, char **argv)
{
    draw(argc, argv, SHUF_BERNOULLI);
}

static void integers(int argc, char **argv)
{
    draw(argc, argv, SHUF_INTEGERS);
}

static struct shuf__index_options index_options;

static void look_up(int argc, char **argv)
{
    shuf__index_options(argc, argv, &index_options);
    /* A few look-ups are valid also if all values would be too many for a result. */
    shuf_request value = {.permutation = index_options.permutation};
    value.permutation.view = SHUF_VIEW_SLICE;
    value.permutation.count = value.permutation.stride = 1;
    check_permutation(&value);
    fuzz_require(index_options.read_places || index_options.places.count > 0);
}

static struct shuf__mix_options mixture;

static void mix(int argc, char **argv)
{
    static uint64_t index;
    shuf__mix_options(argc, argv, &mixture);
    fuzz_require(mixture.offset <= mixture.length);
    if (mixture.count == 0)
        return;
    const uint64_t last = mixture.offset + (mixture.count - 1) * mixture.stride;
    const shuf_mixed out = {.index = &index};
    fuzz_require(shuf_mixture_fill(mixture.mixture, last, 1, 1, 1, &out) == SHUF_OK);
}

static void shuffle(int argc, char **argv)
{
    static struct shuf__shuffle_options options;
    shuf__shuffle_options(argc, argv, &options);
    fuzz_require(options.in && *options.in);
    fuzz_require(options.out && *options.out);
}

static const struct {
    const char *name;
    void (*run)(int argc, char **argv);
} verbs[] = {{"permute", permute},
             {"index", look_up},
             {"gauss", gauss},
             {"uniform", uniform},
             {"exponential", exponential},
             {"bernoulli", bernoulli},
             {"integers", integers},
             {"mix", mix},
             {"shuffle", shuffle}};

/* ---- The target ---- */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    /* Hides the lines of the option parser. A sanitizer still writes to descriptor 2. */
    stderr = fopen("/dev/null", "w");
    fuzz_require(stderr != NULL);
    argp_err_exit_status = EX_USAGE;
    return 0;
}

static int divide(char *text, char *words[WORDS + 1])
{
    int count = 0;
    char *word;
    while (count < WORDS && (word = strsep(&text, "\n")) != NULL)
        words[count++] = word;
    words[count] = NULL;
    return count;
}

static void ignore(int argc, char **argv)
{
    (void)argc;
    (void)argv;
}

static void (*find_verb(const char *name))(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(name, verbs[i].name) == 0)
            return verbs[i].run;
    return ignore;
}

static void run(int count, char **words)
{
    static void (*verb)(int argc, char **argv);
    verb = find_verb(words[0]);
    if (setjmp(back) == 0)
        verb(count, words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *words[WORDS + 1], *text = malloc(size + 1);
    fuzz_require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    code = EX_OK;
    is_running = true;
    run(divide(text, words), words);
    is_running = false;
    fuzz_require(code >= 0 && code < 128);
    free(index_options.places.at);
    shuf__chunk_list_free(&index_options.chunks);
    index_options = (struct shuf__index_options){0};
    shuf__mix_options_free(&mixture);
    free(text);
    return 0;
}
