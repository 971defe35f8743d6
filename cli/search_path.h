/* SPDX-License-Identifier: MIT
 *
 * The folders in which a program finds the programs that it runs: python3, systemctl, gnuplot.
 */
#ifndef SHUF__SEARCH_PATH_H
#define SHUF__SEARCH_PATH_H

/* Removes the relative folders from PATH, so no program of the current directory runs. */
void shuf__search_path_clean(void);

#endif
