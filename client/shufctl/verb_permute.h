/* SPDX-License-Identifier: MIT
 *
 * The command line of `shufctl permute`, parsed and checked.
 */
#ifndef SHUF__VERB_PERMUTE_H
#define SHUF__VERB_PERMUTE_H

#include "output_options.h"

/* Sets *options to the request *permutation. Ends the process as argp does: 0 after --help, 64 with
 * one line on a wrong option. */
void shuf__permute_options(int argc, char **argv, shuf_request *request,
                           struct shuf__output_options *options);

#endif
