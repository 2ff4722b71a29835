/* The next version of an archive, as pieces of the one before, of the body, and of memory:
 *
 *   tar    [ old, up to behind its last member ] [ the members ] [ end blocks ]
 *   zip    [ old, up to its directory ] [ records and contents ] [ directory ] [ end ]
 *
 * The bytes of the old version are its first ones, and only the first piece has them.
 *
 * A name that the archive has is refused; with `overwrite` the new member counts.  In a tar the
 * last one of a name does, and the directory of a zip has the new one alone.  The bytes of the old
 * member stay.  Members of a zip are stored as they are.
 *
 * Pure, but for the reads. */
#pragma once

#include "sort/shard/tar_tail.h"
#include "target/archive/append_body.h"

enum append_format { APPEND_TAR, APPEND_ZIP };

enum splice_from { SPLICE_OLD, SPLICE_BODY, SPLICE_BYTES };

struct splice {
    enum splice_from from;
    uint64_t offset, length;
};

struct append_plan {
    struct buf bytes;
    struct buf splices; /* of the structs above */
    uint64_t size;      /* of all of them */
};

struct append_input {
    enum append_format format;
    struct tar_source old; /* of size 0: there is none, or it is empty */
    struct body_source body;
    bool overwrite;
};

/* What the first bytes of an archive say, of `len` there are, 512 at most; false: neither of the
 * two. */
bool append_format_of(const unsigned char *head, size_t len, enum append_format *out);
/* That of a new archive.  E_NOT_ARCHIVE: its name says none. */
int append_format_of_name(const char *name, enum append_format *out, struct error *err);
const char *append_content_type(enum append_format format);

/* E_MEMBER_EXISTS; E_SHARD_CORRUPT, E_SHARD_UNSUPPORTED of the old archive; what append_body_read()
 * says.  The plan is done in any case. */
int append_plan_make(const struct append_input *in, struct append_plan *out, struct error *err);
void append_plan_done(struct append_plan *p);
size_t append_plan_count(const struct append_plan *p);
const struct splice *append_plan_at(const struct append_plan *p, size_t i);
