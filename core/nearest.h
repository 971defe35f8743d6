/* SPDX-License-Identifier: MIT
 *
 * "did you mean permute?": the name that a mistyped word is nearest to.
 */
#ifndef SHUF__NEAREST_H
#define SHUF__NEAREST_H

/* The search over a list of names: begin with {.text = WORD}, offer each name. */
struct shuf__nearest {
    const char *text;
    const char *name; /* the best so far; NULL while none is near */
    unsigned distance;
};

/* Considers one name, which must outlive the search. Letters of the other case are equal. A name is
 * near when few letters are wrong, missing, added or exchanged with their neighbour, or when the
 * word is its beginning. */
void shuf__nearest_offer(struct shuf__nearest *nearest, const char *name);

enum { SHUF__HINT = 80 };

/* "; did you mean NAME?", or an empty text where no name is near. */
const char *shuf__nearest_hint(const struct shuf__nearest *nearest, char hint[SHUF__HINT]);

/* Both for a list of names that ends with NULL. */
const char *shuf__hint_of(const char *text, const char *const names[], char hint[SHUF__HINT]);

#endif
