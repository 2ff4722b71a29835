/* A list that shows the members of archives, each behind its archive:
 *
 *     {"entries": [{"name": "a.tar", …}, {"name": "a.tar/dir/m", "size", "version", "modified_ms",
 *                  "member": true}, …], "prefixes", "next", "incomplete"}
 *
 * It is put together from pages of the plain list and of members:
 *
 *     struct list_expand *e = list_expand_new(token, limit, err);
 *     while ((step = list_expand_next(e, &q)) != EXPAND_DONE)
 *         … ask for q, and feed the reply: list_expand_page(), list_expand_members() …
 *     list_expand_put(e, &page)
 *
 * An archive is an object whose name ends as archives' names do, and which is stored here.  Its
 * plain files are shown, in bytewise order.  A member whose name is no UTF-8 is shown
 * percent-encoded, with "escaped": true.  A page ends at `limit` names, also within an archive: its
 * token then has the archive and the member, so that it leads on after a change of either.  Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/cleanup.h"
#include "common/error.h"

struct buf;
struct list_expand;

enum list_expand_step { EXPAND_PAGE, EXPAND_MEMBERS, EXPAND_DONE };

/* Borrows from the expansion until it is fed. */
struct list_expand_question {
    const char *token; /* EXPAND_PAGE: of the plain list; NULL: the first page */
    size_t limit;
    const char *archive, *after; /* EXPAND_MEMBERS: those behind `after`, any bytes; "": all */
};

/* Does an object of this name hold members? */
bool list_expand_is_archive(const char *name);

/* `token`: next of an earlier page, of this or of the plain list; NULL: from the start. */
struct list_expand *list_expand_new(const char *token, size_t limit);
void list_expand_free(struct list_expand *e);
DEFINE_CLEANUP(struct list_expand, list_expand_free);

enum list_expand_step list_expand_next(struct list_expand *e, struct list_expand_question *q);
/* E_CORRUPT: it is no such page. */
int list_expand_page(struct list_expand *e, const char *text, size_t len, struct error *err);
int list_expand_members(struct list_expand *e, const char *text, size_t len, struct error *err);
void list_expand_no_members(struct list_expand *e); /* it is no archive, or is gone */

void list_expand_put(struct list_expand *e, struct buf *out);
