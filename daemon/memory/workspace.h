/* SPDX-License-Identifier: MIT
 *
 * What a job works in beside its result and its input, from the daemon's budget: a
 * allocation of its user's, which is memory for that user's next jobs and results when the
 * job is over, as all that nobody refers to is.
 */
#ifndef SHUFD_WORKSPACE_H
#define SHUFD_WORKSPACE_H

#include "cache/cache.h"

/* What the result's job would like to work in. On any thread. */
struct shuf__workspace shuf__workspace_wanted(const struct shuf__cache_entry *result,
                                              const struct shuf__backend *backend);

/* SHUF_NO_MEMORY where the result, its input and what its job cannot do without would not fit if
 * nobody had anything else. */
shuf_status shuf__workspace_could_fit(const struct shuf__cache_entry *result,
                                      const struct shuf__backend *backend,
                                      struct shuf__error *error);

/* On the loop's thread, when the job's turn has come: whether there is room for the result, where
 * it has no allocation yet, and what its job cannot do without; gives the result a allocation that
 * lies there where both fit only so. Fails as shuf__allocations_refuse(). */
shuf_status shuf__workspace_make_sure(struct shuf__cache_entry *result,
                                      const struct shuf__backend *backend,
                                      struct shuf__error *error);

/* Then, when the result has its allocation: one for its job. What that would only like gives way to
 * all that somebody could find, and is left out where `sparing`; *workspace is NULL where there is
 * nothing else. Fails as shuf__cache_entry_take_allocation(). */
shuf_status shuf__workspace_take(const struct shuf__cache_entry *result,
                                 const struct shuf__backend *backend, bool sparing,
                                 struct shuf__cache_entry **workspace, struct shuf__error *error);

/* On the engine's thread: its block, which is NULL where the workspace is, and where the device has
 * none and the job can do without. */
shuf_status shuf__workspace_open(struct shuf__cache_entry *workspace,
                                 const struct shuf__cache_entry *result,
                                 struct shuf__backend *backend, const struct shuf__block **block,
                                 struct shuf__error *error);

/* On the loop's thread, when the job is over: `done` where it has used all of it. NULL is allowed.
 */
void shuf__workspace_give_back(struct shuf__cache_entry *workspace, bool done);

#endif
