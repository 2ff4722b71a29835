/* The completion of an upload: the list of its parts becomes one object.
 *
 *   in place    The body has the object's bytes, this target leads the name, and the bucket keeps
 *               one copy: the body gets the object's name (struct object_file).  Its bytes are read
 *               once, for their checksum.
 *   else        The bytes go to the leader of the name as the body of a PUT.
 *
 * Either way a PUT with `Dfc-Copy: upload` goes to the leader, which does with it what it does with
 * a client's: conditions, quotas, copies, slices, backends.  In place it has `Dfc-Upload: <id>` and
 * no body, and upload_ready() has the file.
 *
 * Where the parts have checksums, the one of the object is made of theirs.  One of all bytes is
 * compared by the PUT with the bytes.
 *
 * A repeated completion gets the first one's reply. */
#pragma once

#include "target/uploads/upload_plan.h"
#include "target/uploads/uploads.h"

#define UPLOAD_TAG_HEADER "Dfc-Upload-Tag"             /* of the object: its entity tag in S3 */
#define UPLOAD_PARTS_HEADER "Dfc-Upload-Parts"         /* the sizes of its parts */
#define UPLOAD_SUM_HEADER "Dfc-Upload-Sum"             /* its checksum in S3 */
#define UPLOAD_PART_SUMS_HEADER "Dfc-Upload-Part-Sums" /* the checksums of the parts */
#define UPLOAD_ID_HEADER "Dfc-Upload"

struct completion {
    struct upload *upload;
    const struct listed_part *list;
    size_t count;
    const char *const *headers; /* conditions of the request, and others; NULL-terminated */
    const char *sum;            /* Dfc-Sum of the request, or NULL */
    const char *kind;           /* UPLOAD_SUMS_HEADER of the request, or NULL */
};

/* Waits, as long as it takes.  *reply: a new reference.  E_PART_*, E_NOT_FOUND, E_NOT_READY, or
 * what the PUT says. */
int upload_complete(const struct completion *c, json_t **reply, struct error *err);

/* The upload of this id while it is completed in place, for the PUT that has it: a reference.  Its
 * `file` is valid as long.  E_NOT_FOUND. */
int upload_ready(struct uploads *all, const char *id, uint64_t bucket_id, const char *object,
                 struct upload **out, struct error *err);
