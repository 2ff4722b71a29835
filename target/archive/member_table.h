/* The members of one archive: where the bytes of each are.
 *
 *     struct member_table *t = member_table_new();
 *     member_table_add(t, &place) …                in the archive's order
 * member_table_finish(t);                      by name; of members with one name the last stays,
 *                                                  as it does when the archive is extracted
 *     member_table_find(t, name, len, &place)
 *
 * Pure.  Once finished it does not change, and any thread may read it.  A member takes 40 bytes and
 * its name; while names are put in order, 8 more. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"

enum member_kind {
    MEMBER_FILE,
    MEMBER_SPARSE,
    MEMBER_DIRECTORY,
    MEMBER_HARD_LINK,
    MEMBER_SYMBOLIC_LINK,
    MEMBER_ENCRYPTED,
    MEMBER_OTHER,
};

struct member_place {
    const char *name; /* not terminated; any bytes but NUL */
    size_t name_len;  /* at most TAR_PATH_MAX */
    enum member_kind kind;
    uint64_t offset; /* of its bytes in the archive; in a packed one its turn (member_unpack.h) */
    uint64_t size;
    int64_t mtime_s;
};

struct member_table;

/* Of a member's type in a tar: '0', '5' … */
enum member_kind member_kind_of(char type);
const char *member_kind_name(enum member_kind kind); /* "file", "symbolic_link" … */

struct member_table *member_table_new(void);
void member_table_free(struct member_table *t);
DEFINE_CLEANUP(struct member_table, member_table_free);
/* Its members' bytes do not lie in the archive as they are. */
void member_table_set_packed(struct member_table *t);
/* What `place` points to is copied. */
void member_table_add(struct member_table *t, const struct member_place *place);
void member_table_finish(struct member_table *t);
size_t member_table_bytes(const struct member_table *t); /* of memory */

/* --- of one that is finished ------------------------------------------------------------------ */
bool member_table_packed(const struct member_table *t);
size_t member_table_count(const struct member_table *t);
/* By name, from 0; the name borrows from the table. */
void member_table_at(const struct member_table *t, size_t i, struct member_place *out);
bool member_table_find(const struct member_table *t, const char *name, size_t len,
                       struct member_place *out);
/* The first member whose name is greater than this one. */
size_t member_table_after(const struct member_table *t, const char *name, size_t len);
