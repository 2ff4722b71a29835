/* A target's page of a list, read without making a tree of it: pages have thousands of entries, of
 * which the merge needs the name and the version, and passes the rest on as it came.
 *
 *     {"entries": [{"name", "version", …}], "prefixes": ["a/"], "next": "…", "from": "…"}
 *
 * The text is JSON, wholly checked (RFC 8259; UTF-8; nesting to 8), or it is refused: what is
 * passed on stands in our own replies.  Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

/* An entry or a common prefix. */
struct list_item {
    const char *name;
    bool is_prefix;
    bool deleted; /* a tombstone */
    uint64_t version[3];
    const char *text; /* the entry or prefix as it came, JSON */
    size_t len;
};

struct list_page {
    struct list_item *items; /* both kinds in one order */
    size_t count;
    const char *next; /* "" where it has none */
    const char *from;
    struct arena *arena; /* of all texts */
    char *text;
};

/* Takes the text, which is malloc'ed and has len bytes.  E_CORRUPT where it is no such page, or
 * where names do not grow. */
int list_page_read(char *text, size_t len, struct list_page **out, struct error *err);
void list_page_free(struct list_page *p);
DEFINE_CLEANUP(struct list_page, list_page_free);
