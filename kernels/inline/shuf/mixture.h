/* SPDX-License-Identifier: MIT
 *
 * How many records of each source the prefixes of a mixture have. docs/spec.md, "Mixtures".
 *
 * The sources are the leaves of a Huffman tree of their weights. A node with a share of N records
 * gives its left child N * (weight of the child) / (its own weight) of them, rounded to the nearest
 * whole number, and its right child the rest. Both shares grow by 0 or 1 when N grows by 1. So no
 * source ever loses a record, and in the first stage its share differs from its exact part by less
 * than 1.68 records (the proof is in docs/spec.md). A later stage compensates for the errors at
 * its beginning.
 */
#ifndef SHUF_MIXTURE_SHARES_H
#define SHUF_MIXTURE_SHARES_H

#include "inline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sum of the weights of a tree is below SHUF_MIXTURE_WEIGHTS, and all shares are at most
 * SHUF_MIXTURE_END. */
#define SHUF_MIXTURE_WEIGHTS (UINT64_C(1) << 61)
#define SHUF_MIXTURE_END (UINT64_C(1) << 62)

enum { SHUF_MIXTURE_DEPTH = 96 }; /* of a tree, at most: weights grow as Fibonacci's numbers */

/* Nodes 0 to leaves - 1 of a tree are its leaves. The others are numbered in the order in which
 * they are made, so children precede their parents and the root is the last one. */
typedef struct shuf_mixture_node {
    uint64_t weight;
    /* What the left child gets in addition, because of the stages before: whole + part / weight
     * records. part < weight. */
    uint64_t part;
    int64_t whole;
    uint32_t left, right; /* not of leaves */
    uint32_t parent;      /* not of the root */
} shuf_mixture_node;

typedef struct shuf_mixture_tree {
    uint32_t leaves; /* at least 1 */
    shuf_mixture_node *node;
} shuf_mixture_tree;

/* (2 (n * of_left + part) + weight) / (2 weight), rounded down */
static inline uint64_t shuf__mixture_nearest(uint64_t weight, uint64_t of_left, uint64_t part,
                                             uint64_t n)
{
    const shuf__u128 dividend = ((shuf__u128)n * of_left + part) * 2 + weight;
    if (dividend >> 64 == 0) /* a division of 64-bit words takes a fraction of the time */
        return (uint64_t)dividend / (2 * weight);
    return (uint64_t)(dividend / ((shuf__u128)weight * 2));
}

/* The share of the left child of a node that has n records. */
static inline uint64_t shuf_mixture_left(const shuf_mixture_tree *tree,
                                         const shuf_mixture_node *node, uint64_t n)
{
    const int64_t left =
        (int64_t)shuf__mixture_nearest(node->weight, tree->node[node->left].weight, node->part, n) +
        node->whole;
    return left < 0 ? 0 : (uint64_t)left < n ? (uint64_t)left : n;
}

/* The smallest n with which the left child has m >= 1 records. */
static inline uint64_t shuf__mixture_reach_left(const shuf_mixture_node *node, uint64_t of_left,
                                                uint64_t m)
{
    const shuf__i128 least = (shuf__i128)node->weight * (2 * ((int64_t)m - node->whole) - 1) -
                             2 * (shuf__i128)node->part;
    const shuf__i128 twice = 2 * (shuf__i128)of_left;
    const uint64_t n = least <= 0 ? 0 : (uint64_t)((least + twice - 1) / twice);
    return n > m ? n : m;
}

static inline uint64_t shuf__mixture_reach_right(const shuf_mixture_node *node, uint64_t of_right,
                                                 uint64_t m)
{
    const shuf__i128 below = (shuf__i128)node->weight * (2 * ((int64_t)m + node->whole) - 1) +
                             2 * (shuf__i128)node->part;
    const uint64_t n = below < 0 ? 0 : (uint64_t)(below / (2 * (shuf__i128)of_right)) + 1;
    return n > m ? n : m;
}

/* The records of a leaf among the first n of the tree. Exact; grows by 0 or 1 with n. */
static inline uint64_t shuf_mixture_share(const shuf_mixture_tree *tree, uint32_t leaf, uint64_t n)
{
    uint32_t path[SHUF_MIXTURE_DEPTH];
    unsigned depth = 0;
    for (uint32_t at = leaf; at != 2 * tree->leaves - 2; at = tree->node[at].parent)
        path[depth++] = at;
    while (depth-- > 0) {
        const shuf_mixture_node *parent = &tree->node[tree->node[path[depth]].parent];
        const uint64_t left = shuf_mixture_left(tree, parent, n);
        n = path[depth] == parent->left ? left : n - left;
    }
    return n;
}

/* The smallest n of which the leaf has m records: 1 <= m <= shuf_mixture_share() of some n. */
static inline uint64_t shuf_mixture_reach(const shuf_mixture_tree *tree, uint32_t leaf, uint64_t m)
{
    for (uint32_t at = leaf; at != 2 * tree->leaves - 2; at = tree->node[at].parent) {
        const shuf_mixture_node *node = &tree->node[at], *parent = &tree->node[node->parent];
        m = at == parent->left ? shuf__mixture_reach_left(parent, node->weight, m)
                               : shuf__mixture_reach_right(parent, node->weight, m);
    }
    return m;
}

/* Joins the nodes from `leaves` on, given the leaves' weights and their numbers in the order of
 * (weight, number). */
static inline void shuf_mixture_plant(shuf_mixture_tree *tree, const uint32_t *sorted)
{
    shuf_mixture_node *const node = tree->node;
    const uint32_t end = 2 * tree->leaves - 1;
    uint32_t leaf = 0, inner = tree->leaves;
    for (uint32_t next = tree->leaves; next < end; next++) {
        uint32_t child[2];
        for (int i = 0; i < 2; i++) {
            const bool is_leaf = leaf < tree->leaves &&
                                 (inner >= next || node[sorted[leaf]].weight <= node[inner].weight);
            child[i] = is_leaf ? sorted[leaf++] : inner++;
            node[child[i]].parent = next;
        }
        node[next].weight = node[child[0]].weight + node[child[1]].weight;
        node[next].left = child[0];
        node[next].right = child[1];
    }
}

/* Sets what the left children get in addition. lacks[node], in records / 2^32, is what the leaves
 * of a node lack at the beginning of the stage; the caller sets those of the leaves. */
static inline void shuf_mixture_carry(shuf_mixture_tree *tree, int64_t *lacks)
{
    for (uint32_t at = tree->leaves; at < 2 * tree->leaves - 1; at++) {
        shuf_mixture_node *node = &tree->node[at];
        lacks[at] = lacks[node->left] + lacks[node->right];
        const shuf__i128 carry = ((shuf__i128)lacks[node->left] * node->weight -
                                  (shuf__i128)lacks[at] * tree->node[node->left].weight) >>
                                 32;
        const shuf__i128 weight = node->weight;
        node->whole = (int64_t)(carry / weight) - (carry % weight < 0);
        node->part = (uint64_t)(carry - node->whole * weight);
    }
}

#endif
