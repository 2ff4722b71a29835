/* A native page of a list in the form that the SDK reads, MessagePack:
 *
 *   {"UUID", "ContinuationToken", "Flags", "Entries": [{"n", "cs", "v", "s", "f"}, …]}
 *
 * Entries and prefixes of the page become one sequence in order of names.  Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

/* Flags of a request (value.flags), by bit; the SDK's ListObjectFlag. */
struct list_flags {
    bool cached;       /* what is stored here, alone */
    bool members;      /* of archives, too */
    bool names_only;   /* … */
    bool sizes_only;   /* names and sizes */
    bool no_recursion; /* the level below the prefix */
    bool no_dirs;      /* without prefixes */
};

/* E_UNSUPPORTED: a bit asks for what is not done; E_INVALID: it is no number. */
int list_flags_parse(const char *text, struct list_flags *out, struct error *err);

/* E_CORRUPT: `page` is none.  `uuid`: not empty, or the SDK asks for ever. */
int list_form_put(const struct buf *page, const struct list_flags *flags, const char *uuid,
                  struct buf *out, struct error *err);
