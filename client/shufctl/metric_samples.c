/* SPDX-License-Identifier: MIT
 *
 * See metric_samples.h.
 */
#include "metric_samples.h"

#include <stdlib.h>
#include <string.h>

/* Copies bytes up to the first one of `ends`, and returns its address; NULL if they do not fit. */
static const char *copy_until(const char *at, const char *ends, char *out, size_t room)
{
    const size_t length = strcspn(at, ends);
    if (length >= room || at[length] == '\0')
        return NULL;
    memcpy(out, at, length);
    out[length] = '\0';
    return at + length;
}

/* Reads the value of a label. Returns the address after its closing quote. */
static const char *read_value(const char *at, char *out, size_t room)
{
    size_t used = 0;
    for (; *at && *at != '"' && used + 1 < room; at++) {
        if (*at == '\\' && at[1]) {
            at++;
            out[used++] = *at == 'n' ? '\n' : *at;
        } else {
            out[used++] = *at;
        }
    }
    out[used] = '\0';
    return *at == '"' ? at + 1 : NULL;
}

/* Reads the labels after an opening brace. Returns the address after the closing brace. */
static const char *read_labels(const char *at, struct shuf__metric_sample *sample)
{
    while (*at != '}') {
        if (sample->labels == SHUF__SAMPLE_LABELS)
            return NULL;
        struct shuf__metric_label *label = &sample->label[sample->labels++];
        if (!(at = copy_until(at, "=", label->name, sizeof label->name)) || at[1] != '"' ||
            !(at = read_value(at + 2, label->value, sizeof label->value)))
            return NULL;
        at += *at == ',';
    }
    return at + 1;
}

static const char *read_sample(const char *at, struct shuf__metric_sample *sample)
{
    char *end;
    sample->labels = 0;
    at = copy_until(at, "{ ", sample->name, sizeof sample->name);
    if (at && *at == '{')
        at = read_labels(at + 1, sample);
    if (!at || *at != ' ')
        return NULL;
    sample->value = strtod(at, &end);
    return end == at || *end != '\n' ? NULL : end + 1;
}

bool shuf__metric_sample_next(const char **at, struct shuf__metric_sample *sample)
{
    while (**at == '#') {
        const char *end = strchr(*at, '\n');
        *at = end ? end + 1 : *at + strlen(*at);
    }
    const char *next = **at ? read_sample(*at, sample) : NULL;
    if (next)
        *at = next;
    return next != NULL;
}

const char *shuf__metric_label_of(const struct shuf__metric_sample *sample, const char *name)
{
    for (unsigned i = 0; i < sample->labels; i++)
        if (strcmp(sample->label[i].name, name) == 0)
            return sample->label[i].value;
    return "";
}
