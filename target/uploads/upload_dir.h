/* The files of one upload in parts, on the mountpath of its object:
 *
 *   <path>/.dfc/uploads/<id>/about.json   of which object, and with which headers
 *                            body         parts that lie where the object has them (part_place.h)
 *                            side-<n>     other parts
 *                            parts        the log of parts (part_log.h)
 *                            done.json    the reply of its completion; the bytes are gone
 *
 * about.json is written last: a directory without it is the rest of a begin that was cut.  In what
 * follows an absent upload is E_NOT_FOUND. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "target/disk/mountpath.h"
#include "cluster/placement/upload_id.h"
#include "s3/uploads/sum_kind.h"

struct upload_about {
    uint64_t bucket_id;
    char *object;
    char *headers; /* of the PUT that completes it: "Name: value" lines, each ended by a NUL */
    size_t headers_len;
};

void upload_about_clear(struct upload_about *about);
/* The value of a header that the upload began with; NULL: it has none. */
const char *upload_about_header(const struct upload_about *about, const char *name);

/* A header of a begin, "CRC32C COMPOSITE": the parts have checksums of this algorithm, and the
 * object has one of this type. */
#define UPLOAD_SUMS_HEADER "Dfc-Upload-Sums"
/* `is_asked` is false where it has no such header. */
void upload_about_sums(const struct upload_about *about, struct s3_sum_kind *out);

/* On the disk when it returns.  E_NO_SPACE, E_IO: nothing is left. */
int upload_dir_make(const struct mountpath *mp, const char *id, const struct upload_about *about,
                    struct error *err);
/* The caller's to clear after a success.  E_CORRUPT. */
int upload_dir_read(const struct mountpath *mp, const char *id, struct upload_about *out,
                    struct error *err);
/* "<path>/.dfc/uploads/<id>/<file>"; the caller's to free. */
char *upload_dir_file(const struct mountpath *mp, const char *id, const char *file);
bool upload_dir_has(const struct mountpath *mp, const char *id, const char *file);
/* Is it neither cut nor over? */
bool upload_dir_is_open(const struct mountpath *mp, const char *id);
/* The reply of the completion.  NULL: it is not completed. */
int upload_dir_read_done(const struct mountpath *mp, const char *id, json_t **out,
                         struct error *err);
/* From now on it is completed; then removes the bytes. */
int upload_dir_finish(const struct mountpath *mp, const char *id, const json_t *reply,
                      struct error *err);
/* Absent is fine. */
int upload_dir_remove(const struct mountpath *mp, const char *id, struct error *err);
/* Every directory of an upload, whole or not, until fn returns false. */
int upload_dir_each(const struct mountpath *mp, bool (*fn)(void *ctx, const char *id), void *ctx,
                    struct error *err);
