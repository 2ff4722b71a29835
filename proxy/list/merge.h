/* One page of a bucket's list out of the targets' pages: a k-way merge that asks for more of a
 * target only when it has run out of what it sent.  Pure.
 *
 *     m = list_merge_new(targets, &position, limit);
 *     for every target i:  list_merge_wants(m, i, &question)  -> ask it, then
 *                          list_merge_feed(m, i, page)        or list_merge_lose(m, i)
 *     until list_merge_done(m), then list_merge_page(m)
 *
 * What a target says (page.h) is checked: names that do not grow, or a page that leads
 * nowhere, would make the merge drop names or run for ever.  Every item of the result is greater
 * than start_after; a name that two targets have (one is moved to the other) comes once, with the
 * greatest version, and not at all where that is a tombstone.  A backend is a source as any other,
 * whose names have the least version.
 *
 * Why nothing falls between the pages of two targets while objects are moved from one to the other.
 * The questions of one page are asked within layout_page_ms() (list.c), or it is begun anew.  An
 * object leaves its old place only rebalance_keep, which is longer, after it is in the new one
 * (cluster/documents/layout.h).  Had a page asked the new place before the object came, and the old
 * one after it went, it would have taken longer than that.  No target is left out either: one that
 * knows later owners than the proxy refuses to answer (stale_map), and the page is begun anew, too.
 *
 * A target's page may be short or empty, and lead on all the same: it has passed many names that
 * are not shown.  What the others have up to that place is taken meanwhile; after LIST_ROUNDS_MAX
 * questions to one target the page is given out as it is, short or even empty, and its token goes
 * on where the slowest target stands. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "proxy/list/token.h"

enum { LIST_LIMIT_DEFAULT = 1000, LIST_LIMIT_MAX = 10000, LIST_ROUNDS_MAX = 32 };

struct list_merge;

struct list_merge *list_merge_new(size_t sources, const struct list_position *position,
                                  size_t limit);
void list_merge_free(struct list_merge *m);
DEFINE_CLEANUP(struct list_merge, list_merge_free);

/* The texts are good until the next feed of this source. */
struct list_question {
    struct list_position position;
    size_t limit;
};

/* Must source i be asked (again)? */
bool list_merge_wants(const struct list_merge *m, size_t i, struct list_question *question);
/* Its answer: malloc'ed, and taken.  E_CORRUPT where it is none. */
int list_merge_feed(struct list_merge *m, size_t i, char *text, size_t len, struct error *err);
/* It cannot be asked: the page will say incomplete. */
void list_merge_lose(struct list_merge *m, size_t i);
bool list_merge_done(const struct list_merge *m);
/* {"entries", "prefixes", "next", "incomplete"}, JSON. */
void list_merge_page(struct list_merge *m, struct buf *out);
