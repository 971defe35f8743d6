/* SPDX-License-Identifier: MIT
 *
 * The values of options and keys. A parser refuses a text with one line that names the field, or
 * returns a value in its range. Printed and parsed again, the value must be the same.
 */
#include "algorithm.h"
#include "config/config.h"
#include "format_value.h"
#include "fuzz.h"
#include "nearest.h"
#include "number.h"
#include "request.h"
#include "socket.h"

#include <math.h>

static struct shuf__error error;

static void check_refusal(shuf_status status)
{
    fuzz_require(status == SHUF_INVALID && error.status == status);
    fuzz_require(strncmp(error.text, "field", 5) == 0);
}

static void number(const char *text)
{
    uint64_t value, again = 0;
    char out[SHUF__NUMBER_TEXT];
    const shuf_status status = shuf__number_parse("field", text, &value, &error);
    if (status) {
        check_refusal(status);
        return;
    }
    fuzz_require(shuf__number_parse("field", shuf__size_text(out, value), &again, &error) == 0);
    fuzz_require(again == value);
    fuzz_require(shuf__number_parse_in("field", text, value, value, &again, &error) == 0);
    fuzz_require(value == 0 || shuf__number_parse_in("field", text, 0, value - 1, &again, &error));
    shuf__bound_text(out, value);
}

static void decimal(const char *text)
{
    double value, again = 0;
    char out[SHUF__VALUE_TEXT];
    const shuf_status status = shuf__decimal_parse("field", text, &value, &error);
    if (status) {
        check_refusal(status);
        return;
    }
    if (!isfinite(value))
        return;
    fuzz_require(shuf__fraction_text(value, true, out) == strlen(out));
    fuzz_require(shuf__decimal_parse("field", out, &again, &error) == SHUF_OK);
    fuzz_require(again == value);
}

static void duration(const char *text)
{
    uint64_t value, again = 0;
    char out[SHUF__NUMBER_TEXT];
    const shuf_status status =
        shuf__duration_parse("field", text, 0, UINT64_MAX / 2, &value, &error);
    if (status) {
        check_refusal(status);
        return;
    }
    fuzz_require(value <= UINT64_MAX / 2);
    fuzz_require(shuf__duration_parse("field", shuf__duration_text(out, value), 0, UINT64_MAX,
                                      &again, &error) == SHUF_OK);
    fuzz_require(again == value);
}

static void amount(const char *text)
{
    struct shuf__amount value, again = {0};
    char out[SHUF__NUMBER_TEXT];
    const shuf_status status = shuf__amount_parse("field", text, &value, &error);
    if (status) {
        check_refusal(status);
        return;
    }
    fuzz_require(shuf__amount_parse("field", shuf__amount_text(out, value), &again, &error) ==
                 SHUF_OK);
    fuzz_require(again.number == value.number && again.percent == value.percent);
    fuzz_require(!value.percent || shuf__amount_bytes(value, UINT64_MAX) <= UINT64_MAX);
    fuzz_require(!value.percent || shuf__amount_bytes(value, 1000) == value.number * 10);
}

static void dtype(const char *text)
{
    shuf_dtype value = SHUF_AUTO;
    const unsigned set = shuf__dtype_set(SHUF_DISTRIBUTION_GAUSS);
    const shuf_status status = shuf__dtype_parse("field", text, set, &value, &error);
    if (status) {
        check_refusal(status);
        return;
    }
    fuzz_require(shuf__dtype_is_allowed(value, SHUF_DISTRIBUTION_GAUSS));
}

static void algorithm(const char *text)
{
    enum shuf_algorithm value = SHUF_ALGORITHM_COUNT;
    if (shuf__algorithm_parse(text, &value, &error)) {
        fuzz_require(error.status == SHUF_INVALID);
        return;
    }
    fuzz_require(value < SHUF_ALGORITHM_COUNT);
    fuzz_require(!*text || strcmp(shuf__algorithm_name(value), text) == 0);
}

static void endpoint(const char *text)
{
    struct shuf__endpoint value;
    const shuf_status status = shuf__endpoint_parse("field", text, &value, &error);
    if (status) {
        check_refusal(status);
        return;
    }
    fuzz_require(value.length <= sizeof value.address);
}

static void socket_path(const char *text)
{
    struct sockaddr_un address;
    if (!*text || shuf__socket_address(text, SHUF__SOCKET_CONNECT, &address, &error))
        return;
    const char *const end = address.sun_path + strlen(address.sun_path) - strlen(text);
    fuzz_require(end >= address.sun_path && strcmp(end, text) == 0);
    fuzz_require(end == address.sun_path || (*text != '/' && end[-1] == '/'));
}

static void key_name(const char *text)
{
    struct shuf__request request = {.kind = SHUF__STREAM};
    if (shuf__request_name_key(&request, text, &error)) {
        fuzz_require(error.status == SHUF_INVALID && !shuf__key_name_is_valid(text));
        return;
    }
    fuzz_require(strcmp(request.key.name, text) == 0);
    fuzz_require(!*text || (shuf__key_name_is_valid(text) && !strchr(text, '/')));
}

/* "KEY VALUE" of the configuration. */
static void parameter(const char *text)
{
    static struct shuf__config config;
    char key[32];
    const size_t length = strcspn(text, " ");
    snprintf(key, sizeof key, "%.*s", (int)(length < 31 ? length : 31), text);
    shuf__config_init(&config);
    if (shuf__config_set(&config, key, text + length + (text[length] != '\0'), &error))
        fuzz_require(error.status == SHUF_INVALID && error.text[0]);
}

static void printable(const char *text)
{
    char copy[256];
    snprintf(copy, sizeof copy, "%s", text);
    shuf__make_printable(copy);
    fuzz_require(fuzz_is_printable(copy));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const parsers[])(const char *) = {number,   decimal,   duration, amount,
                                                    dtype,    algorithm, endpoint, socket_path,
                                                    key_name, parameter, printable};
    if (size == 0)
        return 0;
    char *text = malloc(size); /* of exact size */
    fuzz_require(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    error = (struct shuf__error){0};
    parsers[data[0] % (sizeof parsers / sizeof *parsers)](text);
    free(text);
    return 0;
}
