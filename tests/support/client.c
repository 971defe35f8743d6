/* SPDX-License-Identifier: MIT
 *
 * See client.h.
 */
#include "client.h"

#include "cmocka_all.h"
#include "expected.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

shuf *client_open(void)
{
    shuf *handle;
    shuf_status status = shuf_connect(&handle, harness_shared.socket);
    if (status != SHUF_OK)
        fprintf(stderr, "%s\n", shuf_message(handle));
    assert_int_equal(status, SHUF_OK);
    return handle;
}

void client_expect(shuf *handle, shuf_status got, shuf_status expected, const char *words)
{
    if (got != expected || !strstr(shuf_message(handle), words))
        fprintf(stderr, "status %s: %s\n", shuf_status_name(got), shuf_message(handle));
    assert_int_equal(got, expected);
    assert_non_null(strstr(shuf_message(handle), words));
}

bool client_check(shuf *handle, const shuf_request *request)
{
    shuf_shape shape;
    shuf_result result;
    uint64_t count;
    if (shuf_shape_of(request, &shape, NULL, 0) != SHUF_OK)
        return false;
    uint64_t *values = expected_values(request, &count);
    void *out = malloc(shape.bytes + 1);
    bool right = out && count == shape.rows * shape.count && count * shape.width == shape.bytes &&
                 shuf_copy(handle, request, out, shape.bytes, &result) == SHUF_OK &&
                 expected_equal(values, out, shape.width, count);
    if (!right)
        fprintf(stderr, "n %llu: %s\n", (unsigned long long)request->permutation.n,
                shuf_message(handle));
    free(values);
    free(out);
    return right;
}
