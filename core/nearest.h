/* SPDX-License-Identifier: MIT
 *
 * Hints such as "did you mean permute?": finds the name nearest to a mistyped word.
 */
#ifndef SHUF__NEAREST_H
#define SHUF__NEAREST_H

/* A search in a list of names. Begin with {.text = WORD}, and then offer each name. */
struct shuf__nearest {
    const char *text;
    const char *name; /* the nearest name so far; NULL: none is near */
    unsigned distance;
};

/* Considers one name, which must stay valid during the search. Upper and lower case are equal. A
 * name is near if few letters are wrong, missing, added or exchanged with their neighbour. It is
 * also near if it begins with the word. */
void shuf__nearest_offer(struct shuf__nearest *nearest, const char *name);

enum { SHUF__HINT = 80 };

/* "; did you mean NAME?", or an empty text if no name is near. */
const char *shuf__nearest_hint(const struct shuf__nearest *nearest, char hint[SHUF__HINT]);

/* Searches a list of names that ends with NULL, and returns the hint. */
const char *shuf__hint_of(const char *text, const char *const names[], char hint[SHUF__HINT]);

#endif
