/* SPDX-License-Identifier: MIT
 *
 * What is asked for and what is to become of it: the options that every verb with
 * values takes, read and checked.
 */
#ifndef SHUF__ORDER_H
#define SHUF__ORDER_H

#include "daemon_options.h"
#include "shuf.h"

enum shuf__format { SHUF__FORMAT_RAW, SHUF__FORMAT_NPY, SHUF__FORMAT_TEXT };

struct shuf__order {
    const shuf_permutation
        *permutation; /* one of these; complete: the library will not refuse it */
    const shuf_numbers *numbers;
    shuf_shape shape;
    bool batch;      /* rows are a dimension, even a single one */
    const char *out; /* NULL: only a summary */
    enum shuf__format format;
    bool format_given;
    shuf_transport transport; /* 0: the values are sent, or stay where they are */
    bool prefetch;
    struct shuf__daemon_options daemon;
};

/* For the `children` of a verb; its input is a struct shuf__order. */
extern const struct argp shuf__order_argp;

/* At the end of the options, when the subject and its shape are known: refuses what does not go
 * together, and fills in the format. Ends the process as argp does. */
void shuf__order_complete(struct argp_state *state, struct shuf__order *order);

/* Ends the process: only one of these options may be given. */
void shuf__order_refuse_both(struct argp_state *state, const char *one, const char *other);

/* Ends the process where no file is named. */
void shuf__order_check_out(struct argp_state *state, const char *out);

/* The index of `text` in a list that ends with NULL; ends the process where it is not in it. */
int shuf__order_name(struct argp_state *state, const char *field, const char *text,
                     const char *const names[], const char *expected);

/* Values on standard output leave no room there for a summary. */
bool shuf__order_to_stdout(const struct shuf__order *order);

/* "raw", "npy", "text". */
const char *shuf__format_name(enum shuf__format format);

/* "u32", "bf16", by the type's number, from "auto" on; NULL ends the list. */
extern const char *const shuf__dtype_names[];

/* "u32"; "-" of a type that is not known. */
const char *shuf__dtype_text(shuf_dtype dtype);

#endif
