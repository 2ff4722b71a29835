/* All keys of a volume, a page at a time: for tools that look at the whole of it.  Pages are of
 * different moments; each page is of one.  Nothing is changed, and no session is needed.
 *
 * visit() returns 0, or a code with its sentence in err, which ends the walk.  A row holds until
 * visit() returns. */
#pragma once

#include "mount/meta/meta.h"

typedef int walk_visit(void *context, const struct meta_row *row, struct error *err);

struct walk {
    struct meta *m;
    walk_visit *visit;
    void *context;
};

/* Of a POINT kind. */
int walk_points(const struct walk *w, enum meta_kind kind, struct error *err);
/* Of all these parents. */
int walk_children(const struct walk *w, enum meta_kind kind, const uint64_t *ids, size_t count,
                  struct error *err);
/* Of a QUEUE kind, due or not. */
int walk_queue(const struct walk *w, enum meta_kind kind, struct error *err);
