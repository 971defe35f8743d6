/* SPDX-License-Identifier: MIT
 *
 * The command lines of the verbs that compute random numbers, parsed and checked.
 */
#ifndef SHUF__VERB_DRAW_H
#define SHUF__VERB_DRAW_H

#include "output_options.h"

/* The caller sets numbers->distribution only. Sets *options to the request *numbers. Ends the
 * process as argp does: 0 after --help, 64 with one line on a wrong option. */
void shuf__draw_options(int argc, char **argv, shuf_request *request,
                        struct shuf__output_options *options);

#endif
