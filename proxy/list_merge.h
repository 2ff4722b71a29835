/* One page of a bucket's list out of the targets' pages: a k-way merge that asks for more of a
 * target only when it has run out of what it sent.  Pure.
 *
 *     m = list_merge_new(targets, start_after, limit);
 *     for every target i:  list_merge_wants(m, i, &after, &count)   -> ask it, then
 *                          list_merge_feed(m, i, page)              or list_merge_lose(m, i)
 *     until list_merge_done(m), then list_merge_page(m)
 *
 * A target's page is {"entries": [{"name", "version", …}], "prefixes": […], "next"}; what it says
 * is checked: names that do not grow, or a page that leads nowhere, would make the merge drop names or
 * run for ever.  Every item of the result is greater than start_after; a name that two targets have
 * (a copy that a move left behind) comes once, with the greatest version. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/cleanup.h"
#include "common/error.h"

enum { LIST_LIMIT_DEFAULT = 1000, LIST_LIMIT_MAX = 10000 };

struct list_merge;

struct list_merge *list_merge_new(size_t sources, const char *start_after, size_t limit);
void list_merge_free(struct list_merge *m);
DEFINE_CLEANUP(struct list_merge, list_merge_free);

/* Must source i be asked (again)?  *start_after is good until the next feed of this source. */
bool list_merge_wants(const struct list_merge *m, size_t i, const char **start_after,
                      size_t *limit);
/* Its answer.  E_CORRUPT where it is none. */
int list_merge_feed(struct list_merge *m, size_t i, json_t *page, struct error *err);
/* It cannot be asked: the page will say incomplete. */
void list_merge_lose(struct list_merge *m, size_t i);
bool list_merge_done(const struct list_merge *m);
/* {"entries", "prefixes", "next", "incomplete"}: a new reference. */
json_t *list_merge_page(const struct list_merge *m);
