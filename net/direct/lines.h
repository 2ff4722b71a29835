/* Connections to nodes that are kept between requests, by HTTP thread and the node's address.
 *
 * The thread goes on watching a line that it keeps.  A line on which anything comes is closed: its
 * node leaves, or sends what nobody has asked for.  So is one that has not been used for
 * LINES_KEPT_MS, before the node would do so.  At most `kept_max` are kept by all threads together.
 */
#pragma once

#include <stddef.h>

#include "net/direct/line.h"

struct http_request;
struct lines;

enum { LINES_KEPT_MS = 20000 };

struct lines *lines_new(size_t kept_max);
/* After the threads, which close what they keep.  NULL is fine. */
void lines_free(struct lines *l);

/* In the request's thread: one that it keeps, the one that was used last; NULL: none.  It has a
 * guest, which is to be passed on. */
struct line *lines_take(struct lines *l, const struct http_request *req, const char *authority);
/* In the line's thread, after a whole reply; taken over.  Closes one too many. */
void lines_give(struct lines *l, struct line *line);
