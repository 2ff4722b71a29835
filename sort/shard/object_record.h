/* An object that is no archive as a record: one member, whose contents are the object's bytes where
 * they are.  What a tar has around them is made, the same for the same object always.  Pure. */
#pragma once

#include "common/buf.h"
#include "common/error.h"
#include "sort/shard/record.h"
#include "sort/spec/spec.h"

enum { OBJECT_RECORD_PIECES = 3 }; /* headers, contents, padding */

struct object_record {
    struct buf path;    /* of the member, which is the record's name, too */
    struct buf inlines; /* what inline pieces are offsets into */
    struct record_piece pieces[OBJECT_RECORD_PIECES];
    size_t count;
    uint64_t size; /* of all pieces */
};

/* All zero at first; kept from one object to the next.  E_SPEC where nothing is left of its name.
 */
int object_record_make(struct object_record *r, const struct sort_spec *spec, const char *name,
                       uint64_t size, int64_t modified_s, struct error *err);
void object_record_done(struct object_record *r);
