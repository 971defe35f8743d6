/* SPDX-License-Identifier: MIT
 *
 * See key_changes.h. The check of a key tells whether its bits have changed.
 */
#include "key_changes.h"

#include <stdio.h>
#include <string.h>

enum { NAMES = 110 };

/* The keys of one kind of change. */
struct list {
    const char *kind;
    unsigned count;
    char names[NAMES];
};

static void add(struct list *list, const char *name)
{
    const size_t used = strlen(list->names);
    const char *const comma = list->count > 0 ? ", " : "";
    list->count++;
    if (used + strlen(comma) + strlen(name) + sizeof ", ..." <= NAMES)
        snprintf(list->names + used, NAMES - used, "%s%s", comma, name);
    else if (strcmp(list->names + used - 3, "...") != 0)
        strcpy(list->names + used, ", ...");
}

static bool is_same(const struct shuf__key_facts *a, const struct shuf__key_facts *b)
{
    return a->check == b->check && a->has_group == b->has_group &&
           (!a->has_group || a->group == b->group);
}

const char *shuf__key_changes(const struct shuf__key_set *before, const struct shuf__key_set *after,
                              char text[SHUF__KEY_CHANGES])
{
    struct list lists[] = {{.kind = "changed"}, {.kind = "new"}, {.kind = "removed"}};
    size_t used = 0;
    for (unsigned i = 0; i < after->count; i++) {
        const struct shuf__key_facts *key = &after->facts[i],
                                     *old = shuf__key_set_find(before, key->name);
        if (!old || !is_same(old, key))
            add(&lists[old ? 0 : 1], key->name);
    }
    for (unsigned i = 0; i < before->count; i++)
        if (!shuf__key_set_find(after, before->facts[i].name))
            add(&lists[2], before->facts[i].name);
    text[0] = '\0';
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (lists[i].count > 0)
            used += (size_t)snprintf(text + used, SHUF__KEY_CHANGES - used, "%s%u %s (%s)",
                                     used > 0 ? ", " : "", lists[i].count, lists[i].kind,
                                     lists[i].names);
    return text;
}
