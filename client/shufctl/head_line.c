/* SPDX-License-Identifier: MIT
 *
 * See head_line.h.
 */
#include "head_line.h"

#include "describe_request.h"
#include "format_value.h"
#include "terminal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    BYTES_MOST = 1 << 30, /* bytes of a result; a larger one may be slow: the cache may lack it */
    KEY_COLUMNS = 12,
};

struct head {
    unsigned width; /* bytes of a value */
    size_t bytes;
    uint8_t values[SHUF__COLUMNS_MOST * sizeof(uint64_t)];
};

static bool take_chunk(void *context, const void *bytes, size_t size)
{
    struct head *head = context;
    const size_t room = sizeof head->values - head->bytes;
    const size_t taken = size < room ? size : room;
    memcpy(head->values + head->bytes, bytes, taken);
    head->bytes += taken;
    return head->bytes < sizeof head->values;
}

/* Prints the values that fit a line of `room` columns, and "..." if there are more. */
static void print_values(const struct head *head, const shuf_shape *shape, size_t room)
{
    char line[SHUF__COLUMNS_MOST + 8] = "", text[SHUF__VALUE_TEXT];
    const uint64_t all = shape->rows * shape->count;
    size_t used = 0;
    uint64_t shown = 0;
    for (; shown < head->bytes / head->width; shown++) {
        uint64_t bits = 0; /* little-endian: fewer bytes fill its low end */
        memcpy(&bits, head->values + shown * head->width, head->width);
        const size_t length = shuf__value_text(shape->dtype, bits, text);
        const size_t rest = shown + 1 < all ? strlen(" ...") : 0;
        if (used + length + 1 + rest > room)
            break;
        used += (size_t)sprintf(line + used, "%s%s", shown > 0 ? " " : "", text);
    }
    if (shown > 0)
        shuf__print_line(stdout, "values", "%s%s", line, shown < all ? " ..." : "");
}

void shuf__head_line_print(shuf *daemon, const struct shuf__output_options *o)
{
    static struct head head;
    const size_t columns = shuf__terminal_columns(STDOUT_FILENO);
    if (!isatty(STDOUT_FILENO) || o->shape.bytes > BYTES_MOST || columns <= KEY_COLUMNS)
        return;
    head = (struct head){.width = o->shape.width};
    shuf_status status = o->numbers
                             ? shuf_draw_each(daemon, o->numbers, take_chunk, &head, NULL)
                             : shuf_permute_each(daemon, o->permutation, take_chunk, &head, NULL);
    if (status == SHUF_OK || status == SHUF_CANCELLED)
        print_values(&head, &o->shape, columns - KEY_COLUMNS);
}
