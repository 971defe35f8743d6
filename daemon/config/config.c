/* SPDX-License-Identifier: MIT
 *
 * See config.h. libinih splits the lines; params.def has the keys.
 */
#include "config.h"

#include "error.h"
#include "nearest.h"
#include "number.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Where a server listens ---- */

static bool parse_port(const char *text, in_port_t *port)
{
    uint64_t number;
    struct shuf__error ignored;
    if (shuf__number_parse_in("port", text, 1, 65535, &number, &ignored))
        return false;
    *port = htons((uint16_t)number);
    return true;
}

static bool parse_v4(const char *host, const char *port, struct shuf__endpoint *endpoint)
{
    struct sockaddr_in *address = &endpoint->address.v4;
    address->sin_family = AF_INET;
    endpoint->length = sizeof *address;
    return inet_pton(AF_INET, host, &address->sin_addr) == 1 &&
           ntohl(address->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET &&
           parse_port(port, &address->sin_port);
}

static bool parse_v6(const char *host, const char *port, struct shuf__endpoint *endpoint)
{
    struct sockaddr_in6 *address = &endpoint->address.v6;
    address->sin6_family = AF_INET6;
    address->sin6_addr = in6addr_loopback;
    endpoint->length = sizeof *address;
    return strcmp(host, "[::1]") == 0 && parse_port(port, &address->sin6_port);
}

static bool parse_port_of_host(const char *text, struct shuf__endpoint *endpoint)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    return (host[0] == '[' ? parse_v6 : parse_v4)(host, colon + 1, endpoint);
}

shuf_status shuf__endpoint_parse(const char *field, const char *text,
                                 struct shuf__endpoint *endpoint, struct shuf__error *error)
{
    memset(endpoint, 0, sizeof *endpoint);
    if (strcmp(text, "off") == 0)
        return SHUF_OK;
    const bool ok = parse_port_of_host(text, endpoint);
    endpoint->family = endpoint->address.any.sa_family;
    if (ok)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID, "%s %.80s: expected off, 127.0.0.1:PORT or [::1]:PORT",
                      field, *text ? text : "''");
}

/* ---- Comments ---- */

/* A '#' or ';' begins a comment at the beginning of a line, and after a blank. */
static bool has_comment(const char *value)
{
    for (const char *mark = value; (mark = strpbrk(mark, "#;")) != NULL; mark++)
        if (mark == value || isspace((unsigned char)mark[-1]))
            return true;
    return false;
}

/* Refuses a value that a file cannot hold, because the rest of its line would be a comment, and a
 * value in quotes. Fails with SHUF_INVALID. */
static shuf_status refuse_comment(const char *key, const char *value, struct shuf__error *error)
{
    if (has_comment(value))
        return shuf__fail(error, SHUF_INVALID,
                          "%s %.64s: expected no '#' or ';' at the beginning or after a blank", key,
                          value);
    if (*value == '"' || *value == '\'')
        return shuf__fail(error, SHUF_INVALID, "%s %.64s: expected the value without quotes", key,
                          value);
    return SHUF_OK;
}

/* Adds to the error of a wrong value that a comment needs a blank before it, if the value seems to
 * have one. Returns the status of the error. */
static shuf_status explain_comment(const char *value, struct shuf__error *error)
{
    const size_t used = strlen(error->text);
    const char *mark = strpbrk(value, "#;");
    if (mark)
        snprintf(error->text + used, sizeof error->text - used,
                 "; a comment needs a blank before its '%c'", *mark);
    return error->status;
}

/* Cuts a comment that begins with a blank and '#'. libinih itself cuts one with ';'. */
static void cut_comment(char *line)
{
    for (char *hash = line; (hash = strchr(hash, '#')) != NULL; hash++)
        if (hash > line && (hash[-1] == ' ' || hash[-1] == '\t')) {
            *hash = '\0';
            return;
        }
}

/* ---- The values of keys ---- */

enum kind { TEXT, PATH, BACKEND, ENDPOINT, TEXTFILE, NUMBER, AMOUNT, DURATION, MODE, LEVEL, PLACE };
enum when { RELOAD, RESTART };

static const struct param {
    const char *key;
    enum kind kind;
    size_t offset, size;
    const char *standard;
    uint64_t least, most;
    enum when when;
    const char *help;
} params[] = {
#define SHUF__PARAM(key, kind, standard, least, most, when, help) \
    {#key,                                                        \
     kind,                                                        \
     offsetof(struct shuf__config, key),                          \
     sizeof(shuf__config_##kind),                                 \
     standard,                                                    \
     least,                                                       \
     most,                                                        \
     when,                                                        \
     help},
#include "params.def"
#undef SHUF__PARAM
};

enum { PARAMS = SHUF__CONFIG_KEYS };

static void *field_of(struct shuf__config *config, const struct param *param)
{
    return (char *)config + param->offset;
}

static const struct param *find_param(const char *key)
{
    for (size_t i = 0; i < PARAMS; i++)
        if (strcmp(params[i].key, key) == 0)
            return &params[i];
    return NULL;
}

static shuf_status set_text(const struct param *param, const char *value, char *field,
                            struct shuf__error *error)
{
    size_t length = strlen(value);
    if (length < param->least || length > param->most)
        return shuf__fail(error, SHUF_INVALID,
                          "%s %.80s: %zu byte%s, expected %" PRIu64 " to %" PRIu64, param->key,
                          length ? value : "''", length, shuf__plural(length), param->least,
                          param->most);
    memcpy(field, value, length + 1);
    return SHUF_OK;
}

static shuf_status set_endpoint(const struct param *param, const char *value, char *field,
                                struct shuf__error *error)
{
    struct shuf__endpoint endpoint;
    if (shuf__endpoint_parse(param->key, value, &endpoint, error))
        return error->status;
    return set_text(param, value, field, error);
}

/* The textfile collector reads only files that end in .prom. A relative path would depend on the
 * directory in which shufd starts. */
static shuf_status set_textfile(const struct param *param, const char *value, char *field,
                                struct shuf__error *error)
{
    static const char end[] = ".prom";
    const size_t length = strlen(value);
    if (length > 0 &&
        (*value != '/' || length < sizeof end || strcmp(value + length - strlen(end), end) != 0))
        return shuf__fail(error, SHUF_INVALID,
                          "%s %.128s: expected an absolute path that ends in .prom", param->key,
                          value);
    return set_text(param, value, field, error);
}

static shuf_status set_number(const struct param *param, const char *value, uint64_t *field,
                              struct shuf__error *error)
{
    return (param->kind == DURATION ? shuf__duration_parse : shuf__number_parse_in)(
        param->key, value, param->least, param->most, field, error);
}

static shuf_status set_mode(const struct param *param, const char *value, uint64_t *field,
                            struct shuf__error *error)
{
    uint64_t mode = 0;
    size_t length = strspn(value, "01234567");
    for (size_t i = 0; i < length && mode <= param->most; i++)
        mode = mode * 8 + (uint64_t)(value[i] - '0');
    if (length == 0 || value[length] != '\0' || mode > param->most)
        return shuf__fail(error, SHUF_INVALID, "%s %.64s: expected octal permissions, 0000 to 0777",
                          param->key, *value ? value : "''");
    if ((mode & 0222) == 0) /* connect() needs it */
        return shuf__fail(error, SHUF_INVALID,
                          "%s %.64s: without permission to write nobody could connect; expected "
                          "0600, 0660, 0666 or another mode with it",
                          param->key, value);
    *field = mode;
    return SHUF_OK;
}

/* The words of a LEVEL or a PLACE. */
static const char *word_of(const struct param *param, uint64_t number)
{
    static const char *const places[] = {"auto", "host", "device"};
    return param->kind == LEVEL ? shuf__log_level_name((enum shuf__log_level)number)
                                : places[number];
}

static shuf_status set_word(const struct param *param, const char *value, uint64_t *field,
                            struct shuf__error *error)
{
    for (uint64_t number = param->least; number <= param->most; number++)
        if (strcmp(value, word_of(param, number)) == 0) {
            *field = number;
            return SHUF_OK;
        }
    return shuf__fail(
        error, SHUF_INVALID, "%s %.64s: expected %s", param->key, *value ? value : "''",
        param->kind == LEVEL ? "error, warning, info or debug" : "auto, host or device");
}

static shuf_status set_value(struct shuf__config *config, const struct param *param,
                             const char *value, struct shuf__error *error)
{
    void *field = field_of(config, param);
    if (refuse_comment(param->key, value, error))
        return error->status;
    switch (param->kind) {
    case TEXT:
    case PATH:
    case BACKEND:
        return set_text(param, value, field, error);
    case ENDPOINT:
        return set_endpoint(param, value, field, error);
    case TEXTFILE:
        return set_textfile(param, value, field, error);
    case NUMBER:
    case DURATION:
        return set_number(param, value, field, error);
    case AMOUNT:
        return shuf__amount_parse(param->key, value, field, error);
    case MODE:
        return set_mode(param, value, field, error);
    case LEVEL:
    case PLACE:
        return set_word(param, value, field, error);
    }
    return SHUF_OK;
}

static shuf_status set_param(struct shuf__config *config, const struct param *param,
                             const char *value, struct shuf__error *error)
{
    return set_value(config, param, value, error) ? explain_comment(value, error) : SHUF_OK;
}

struct shuf__config_help shuf__config_help(enum shuf__config_key key)
{
    static const char *const values[] = {
        [TEXT] = "TEXT",
        [PATH] = "PATH",
        [BACKEND] = "auto|cpu|cuda",
        [ENDPOINT] = "ADDRESS",
        [TEXTFILE] = "FILE",
        [NUMBER] = "NUMBER",
        [AMOUNT] = "SIZE",
        [DURATION] = "TIME",
        [MODE] = "MODE",
        [LEVEL] = "error|warning|info|debug",
        [PLACE] = "auto|host|device",
    };
    const struct param *param = &params[key];
    return (struct shuf__config_help){param->key, values[param->kind], param->help,
                                      param->when == RESTART};
}

void shuf__config_init(struct shuf__config *config)
{
    struct shuf__error error;
    config->file[0] = '\0';
    config->root[0] = '\0';
    config->source = (struct shuf__config_source){0};
    memset(config->line, 0, sizeof config->line);
    for (size_t i = 0; i < PARAMS; i++) {
        shuf_status status = set_param(config, &params[i], params[i].standard, &error);
        assert(status == SHUF_OK);
        (void)status;
    }
}

static shuf_status refuse_key(const char *key, struct shuf__error *error)
{
    char hint[SHUF__HINT];
    struct shuf__nearest nearest = {.text = key};
    for (size_t i = 0; i < PARAMS; i++)
        shuf__nearest_offer(&nearest, params[i].key);
    return shuf__fail(error, SHUF_INVALID, "%.64s: no such key%s", key,
                      nearest.name ? shuf__nearest_hint(&nearest, hint)
                                   : "; shufd --print-config lists them");
}

shuf_status shuf__config_set(struct shuf__config *config, const char *key, const char *value,
                             struct shuf__error *error)
{
    const struct param *param = find_param(key);
    if (!param)
        return refuse_key(key, error);
    return set_param(config, param, value, error);
}

/* ---- Reading a file ---- */

/* The state that the callbacks of libinih share. */
struct reading {
    struct shuf__config *config;
    FILE *file;
    int line;                 /* the number of the last line read */
    struct shuf__error fault; /* the first error */
    int fault_line;           /* 0 while there is none */
};

static void note_fault(struct reading *reading, const struct shuf__error *error)
{
    if (reading->fault_line)
        return;
    reading->fault = *error;
    reading->fault_line = reading->line;
}

/* Reads a line, skips the blanks at its beginning, and keeps the first size - 1 bytes. Returns the
 * number of kept bytes, or EOF. */
static int copy_line(FILE *file, char *out, int size, bool *has_nul)
{
    int c, length = 0;
    while ((c = getc(file)) != EOF && c != '\n') {
        *has_nul |= c == '\0';
        if (length < size - 1 && (length > 0 || (c != ' ' && c != '\t')))
            out[length++] = (char)c;
    }
    out[length] = '\0';
    return c == EOF && length == 0 ? EOF : length;
}

/* Whether libinih takes the line for a section, behind a byte order mark too. */
static const char *find_section(const char *line)
{
    static const char mark[] = "\xef\xbb\xbf";
    line += strncmp(line, mark, strlen(mark)) == 0 ? strlen(mark) : 0;
    line += strspn(line, " \t\v\f\r");
    return *line == '[' && strchr(line, ']') ? line : NULL;
}

/* Here and not in take_pair(), because libinih reports a section only with the next key. */
static void refuse_section(struct reading *reading, const char *line)
{
    struct shuf__error error;
    const char *section = find_section(line);
    if (!section)
        return;
    const int length = (int)strcspn(section, "]");
    shuf__fail(&error, SHUF_INVALID, "%.*s: expected no sections", length < 64 ? length + 1 : 64,
               section);
    note_fault(reading, &error);
}

/* Reads the lines for libinih, because libinih does not report their numbers. It would also cut a
 * long line in two, and join a line that begins with blanks to the line before. */
static char *read_line(char *out, int size, void *context)
{
    struct reading *reading = context;
    struct shuf__error error = {.status = SHUF_OK};
    bool has_nul = false;
    const int length = copy_line(reading->file, out, size, &has_nul);
    if (length == EOF)
        return NULL;
    reading->line++;
    if (has_nul)
        shuf__fail(&error, SHUF_INVALID, "a NUL byte: expected text");
    else if (*out == '#' || *out == ';') /* a comment may have any length */
        *out = '\0';
    else if (length == size - 1)
        shuf__fail(&error, SHUF_INVALID, "line of %d bytes or more: expected fewer", size - 1);
    if (error.status)
        note_fault(reading, &error);
    cut_comment(out);
    refuse_section(reading, out);
    return out;
}

static int take_pair(void *context, const char *section, const char *key, const char *value)
{
    struct reading *reading = context;
    struct shuf__error error = {.status = SHUF_OK};
    const struct param *param = find_param(key);
    int *line = param ? &reading->config->line[param - params] : NULL;
    if (*section)
        return 0; /* read_line() has noted it */
    if (line && *line)
        shuf__fail(&error, SHUF_INVALID, "%s %.64s: given in line %d already, expected once", key,
                   value, *line);
    else
        shuf__config_set(reading->config, key, value, &error);
    if (line && !*line)
        *line = reading->line;
    if (error.status)
        note_fault(reading, &error);
    return error.status == SHUF_OK;
}

/* A reload reads the file on the loop, so a large one would stop all requests. */
enum { FILE_MOST = 1 << 20 };

static shuf_status open_regular(const char *path, FILE **file, struct shuf__error *error)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const bool is_known = fd >= 0 && fstat(fd, &status) == 0;
    if (is_known && (!S_ISREG(status.st_mode) || status.st_size > FILE_MOST)) {
        close(fd);
        return shuf__fail(error, SHUF_IO, "configuration %.128s: %s", path,
                          S_ISREG(status.st_mode) ? "larger than 1 MiB, expected a few lines"
                                                  : "not a regular file, expected one");
    }
    *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (*file)
        return SHUF_OK;
    shuf__fail(error, SHUF_IO, "configuration %.128s: %s; expected a file that uid %u may read%s",
               *path ? path : "''", strerror(errno), (unsigned)geteuid(),
               shuf__advice_of_sandbox(path));
    if (fd >= 0)
        close(fd);
    return error->status;
}

shuf_status shuf__config_read(struct shuf__config *config, const char *path,
                              struct shuf__error *error)
{
    struct reading reading = {.config = config};
    if (open_regular(path, &reading.file, error))
        return error->status;
    int line = ini_parse_stream(read_line, &reading, take_pair, &reading);
    int broken = ferror(reading.file);
    fclose(reading.file);
    if (broken || line < 0)
        return shuf__fail(error, SHUF_IO, "%.128s: reading failed", path);
    if (reading.fault_line && (line == 0 || reading.fault_line <= line))
        return shuf__fail(error, reading.fault.status, "%.80s:%d: %.400s", path, reading.fault_line,
                          reading.fault.text);
    if (line)
        return shuf__fail(error, SHUF_INVALID, "%.128s:%d: expected a line KEY = VALUE", path,
                          line);
    return SHUF_OK;
}

const char *shuf__config_locate(const struct shuf__config *config, struct shuf__error *error)
{
    char key[32], text[SHUF__ERROR_TEXT];
    const struct param *param =
        sscanf(error->text, "%31[a-z_] ", key) == 1 ? find_param(key) : NULL;
    if (!param || !config->line[param - params] || config->source.value[param - params])
        return error->text;
    if (param - params == SHUF__CONFIG_socket && !*config->socket) /* the path is another's */
        return error->text;
    memcpy(text, error->text, sizeof text);
    shuf__fail(error, error->status, "%.80s:%d: %.400s", config->file, config->line[param - params],
               text);
    return error->text;
}

void shuf__warn_of_config(const struct shuf__config *config, const struct shuf__log *log,
                          const char *format, ...)
{
    struct shuf__error warning = {.status = SHUF_INVALID};
    va_list args;
    va_start(args, format);
    vsnprintf(warning.text, sizeof warning.text, format, args);
    va_end(args);
    shuf__log(log, SHUF__LOG_WARNING, "%s", shuf__config_locate(config, &warning));
}

static const char *value_text(const struct param *param, const struct shuf__config *config,
                              char text[SHUF__NUMBER_TEXT])
{
    const void *field = (const char *)config + param->offset;
    const uint64_t *number = field;
    switch (param->kind) {
    case TEXT:
    case PATH:
    case BACKEND:
    case ENDPOINT:
    case TEXTFILE:
        return field;
    case NUMBER:
        snprintf(text, SHUF__NUMBER_TEXT, "%" PRIu64, *number);
        return text;
    case AMOUNT:
        return shuf__amount_text(text, *(const struct shuf__amount *)field);
    case DURATION:
        return shuf__duration_text(text, *number);
    case MODE:
        snprintf(text, SHUF__NUMBER_TEXT, "%04" PRIo64, *number);
        return text;
    case LEVEL:
    case PLACE:
        return word_of(param, *number);
    }
    return "";
}

/* ---- Changes ---- */

bool shuf__config_diff(const struct shuf__config *from, const struct shuf__config *to, size_t *next,
                       struct shuf__config_change *change)
{
    char old[SHUF__NUMBER_TEXT], new[SHUF__NUMBER_TEXT];
    while (*next < PARAMS) {
        const struct param *param = &params[(*next)++];
        const char *before = value_text(param, from, old), *after = value_text(param, to, new);
        if (strcmp(before, after) == 0)
            continue;
        change->key = param->key;
        change->number = (enum shuf__config_key)(param - params);
        change->needs_restart = param->when == RESTART;
        snprintf(change->from, sizeof change->from, "%s", *before ? before : "''");
        snprintf(change->to, sizeof change->to, "%s", *after ? after : "''");
        return true;
    }
    return false;
}

const char *shuf__config_value(const struct shuf__config *config, enum shuf__config_key key,
                               char text[SHUF__CONFIG_VALUE])
{
    return value_text(&params[key], config, text);
}

bool shuf__config_is_default(const struct shuf__config *config, enum shuf__config_key key)
{
    struct shuf__config defaults;
    char text[SHUF__NUMBER_TEXT], of_default[SHUF__NUMBER_TEXT];
    shuf__config_init(&defaults);
    return strcmp(value_text(&params[key], config, text),
                  value_text(&params[key], &defaults, of_default)) == 0;
}

void shuf__config_update(struct shuf__config *config, const struct shuf__config *from)
{
    for (size_t i = 0; i < PARAMS; i++) {
        if (params[i].when != RELOAD)
            continue;
        memcpy(field_of(config, &params[i]), (const char *)from + params[i].offset, params[i].size);
        config->line[i] = from->line[i];
    }
}

/* ---- The text of a configuration, config/shufd.conf ---- */

static void print_help(const struct shuf__config_help *help, FILE *out)
{
    for (const char *line = help->text; *line;) {
        const size_t length = strcspn(line, "\n");
        const bool is_last = line[length] == '\0';
        fprintf(out, "# %.*s%s\n", (int)length, line,
                is_last && help->needs_restart ? " (restart)" : "");
        line += length + !is_last;
    }
}

void shuf__config_print(const struct shuf__config *config, FILE *out)
{
    char text[SHUF__CONFIG_VALUE], origin[SHUF__CONFIG_ORIGIN];
    if (!config->source.no_file)
        fprintf(out, "# %s\n#\n", shuf__config_origin(config, origin));
    fprintf(
        out,
        "# SPDX-License-Identifier: MIT\n#\n"
        "# The configuration of shufd. Every key is optional. A key without a line has its "
        "default.\n"
        "# Write sizes as 8Gi, 8G or 8589934592, and durations as 10min, 5s or 50us;\n"
        "# `shufctl help units` lists all forms. A blank and a '#' or ';' after a value begin a\n"
        "# comment.\n"
        "# On SIGHUP shufd reads the file again. Keys marked (restart) take effect only at the "
        "next\n"
        "# start.\n");
    for (int key = 0; key < SHUF__CONFIG_KEYS; key++) {
        const struct shuf__config_help help = shuf__config_help((enum shuf__config_key)key);
        const char *value = shuf__config_value(config, (enum shuf__config_key)key, text);
        fputc('\n', out);
        print_help(&help, out);
        fprintf(out, "%s =%s%s\n", help.name, *value ? " " : "", value);
    }
}
