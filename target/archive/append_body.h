/* What is to be put into an archive: the members that the body of the request has.
 *
 *   ?member=PATH    one file, of all bytes of the body
 *   ?members=tar    those of the tar that the body is, with their times, permissions and links
 *
 * The names are those that a careful extraction takes: no absolute path, no "..".  Pure, but it
 * reads the body. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

struct member_table;

enum { APPEND_MEMBERS_MAX = 1 << 18 };

/* A range of the body, or bytes of the body's `bytes`. */
struct body_piece {
    bool inline_data;
    uint64_t offset, length;
};

struct body_member {
    size_t name_at, name_len; /* in `names` */
    char type;                /* of a tar: '0' … */
    bool sparse;
    uint32_t mode;
    int64_t mtime_s;
    uint64_t offset, size;           /* of its contents in the body */
    size_t first_piece, piece_count; /* as a member of a tar */
};

struct append_body {
    struct buf names, bytes, members, pieces; /* the latter two of the structs above */
    struct member_table *table;               /* of the names; finished */
};

struct body_source {
    int fd;
    uint64_t size;
    const char *member; /* its name; NULL: the body is a tar */
    int64_t now_s;
    uint64_t memory_max; /* bytes for all of struct append_body (archive_append_memory) */
    int (*go_on)(void *ctx, struct error *err); /* asked before each read */
    void *ctx;
};

/* E_INVALID: a name, a body without members; E_MEMBER_EXISTS: two members have one name;
 * E_NOT_ARCHIVE, E_ARCHIVE_DAMAGED: the body is no plain tar, or a damaged one; E_ARCHIVE_LIMIT. */
int append_body_read(const struct body_source *in, bool overwrite, struct append_body *out,
                     struct error *err);
void append_body_done(struct append_body *b);
size_t append_body_count(const struct append_body *b);
const struct body_member *append_body_at(const struct append_body *b, size_t i);
const char *append_body_name(const struct append_body *b, const struct body_member *m);
/* E_INVALID, and why. */
int append_name_check(const char *name, size_t len, struct error *err);
