/* The bytes of an upload on their way from the acting owner of a name to the other owners, as they
 * come from the client (staged.h is the other side).
 *
 *                    ┌─ pipe ─▶ PUT … Dfc-Copy: stage ─▶ other owner
 *   fanout_take() ───┤
 *                    └─ pipe ─▶ PUT … Dfc-Copy: stage ─▶ other owner
 *
 * A pipe is small and has a bound: who takes bytes slowly slows the client down (fanout_take()
 * takes none, and `resume` is called when it is worth trying again).  One that fails is left out
 * from then on, and the write fails at its end, before anybody was told to commit.
 *
 *   new ─▶ take … ─▶ finish ─▶ await ─▶ check ─▶ the commit ─▶ unref
 *
 * One thread at a time; `resume` and what fanout_await() calls come in the data loop's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/placement/owners.h"
#include "common/cleanup.h"
#include "target/format/attr.h"

struct fanout;
struct s3_sum_text;
struct target;

struct fanout_spec {
    struct target *target;
    const struct cluster_state *state;
    const struct bucket *bucket;
    const char *name;
    const struct node *const *others; /* the state's */
    size_t count;                     /* at most OWNERS_MAX */
    int64_t length;                   /* of the body; -1: not known */
    const char *content_type;         /* or NULL */
    const char *meta;                 /* as attr's */
    size_t meta_len;
    enum durability durability;    /* at least the bucket's */
    bool md5;                      /* each of them computes ATTR_MD5 */
    const struct s3_sum_text *sum; /* or NULL: each of them computes OBJECT_SUM */
    const char *slices;            /* NULL, or a manifest (ec_manifest.h): then no bytes come */
    void (*resume)(void *arg);
    void *arg;
};

struct fanout *fanout_new(const struct fanout_spec *spec);
/* Drops what was staged, unless fanout_keep(): the others are told so. */
void fanout_unref(struct fanout *f); /* NULL is fine */
DEFINE_CLEANUP(struct fanout, fanout_unref);

/* How many of these bytes all of them have taken; the rest is to be given again. */
size_t fanout_take(struct fanout *f, const char *data, size_t len);
/* After it `resume` is called no more.  `why`: NULL, or the upload has failed. */
void fanout_finish(struct fanout *f, const struct error *why);
/* fn(arg) when each of them has staged all, or failed; at once where that is so. */
void fanout_await(struct fanout *f, void (*fn)(void *arg), void *arg);
/* Has each of them what this attribute says?  Else who has not, and why. */
int fanout_check(const struct fanout *f, const struct attr *a, struct error *err);
/* The same of one of them. */
int fanout_check_node(const struct fanout *f, const char *node_id, const struct attr *a,
                      struct error *err);

/* "" without others. */
const char *fanout_stage(const struct fanout *f);
bool fanout_has(const struct fanout *f, const char *node_id);
/* What is staged has been, or may have been, committed. */
void fanout_keep(struct fanout *f);
