/* SPDX-License-Identifier: MIT
 *
 * See amount.h.
 */
#include "amount.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static shuf_status refuse_amount(const char *field, const char *text, struct shuf__error *error)
{
    char hint[SHUF__NUMBER_HINT];
    return shuf__fail(error, SHUF_INVALID,
                      "%s %.64s: expected a whole number below 2^63, such as 2e9 or 8Gi, or whole "
                      "percent, 0%% to 100%%%s",
                      field, *text ? text : "''", shuf__number_hint(text, hint));
}

shuf_status shuf__amount_parse(const char *field, const char *text, struct shuf__amount *amount,
                               struct shuf__error *error)
{
    char number[64];
    const size_t length = strlen(text);
    const bool percent = length > 0 && text[length - 1] == '%';
    if (length - percent >= sizeof number)
        return refuse_amount(field, text, error);
    snprintf(number, sizeof number, "%.*s", (int)(length - percent), text);
    amount->percent = percent;
    snprintf(amount->written, sizeof amount->written, "%s",
             length < sizeof amount->written ? text : "");
    if (shuf__number_parse_in(field, number, 0, percent ? 100 : INT64_MAX, &amount->number, error))
        return refuse_amount(field, text, error);
    return SHUF_OK;
}

const char *shuf__amount_text(char text[SHUF__NUMBER_TEXT], struct shuf__amount amount)
{
    if (!amount.percent)
        return shuf__size_text(text, amount.number);
    snprintf(text, SHUF__NUMBER_TEXT, "%" PRIu64 "%%", amount.number);
    return text;
}

uint64_t shuf__amount_bytes(struct shuf__amount amount, uint64_t total)
{
    if (!amount.percent)
        return amount.number;
    return total / 100 * amount.number + total % 100 * amount.number / 100;
}
