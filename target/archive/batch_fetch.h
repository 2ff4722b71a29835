/* One entry of a batch on its way from its owner: asked for ahead, and read when its turn comes.
 *
 *     struct batch_fetch *f = batch_fetch_begin(t, entry, request_id);
 *     batch_fetch_head(f, stop, &size, …)    waits for the head: how long it is, or what is wrong
 *     batch_fetch_read(f, data, len, …)       exactly `size` bytes, in pieces
 *     batch_fetch_end(f)
 *
 * One that only looks (BATCH_LOOK) asks by HEAD, and by GET for what is wrong, since the reply to a
 * HEAD cannot say it.
 *
 * A call that breaks off goes on in the same version, where it ended; an owner that cannot answer
 * for now is asked again, whoever it is then, until call_timeout is over.  The bytes wait in a pipe
 * of BATCH_PIPE_BYTES, which holds the owner back.
 *
 * Of one thread, which waits; the head and the end come in the data loop's. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/checksum.h"
#include "common/error.h"

struct batch_entry;
struct batch_fetch;
struct buf;
struct job_stop;
struct target;

enum { BATCH_PIPE_BYTES = 256 << 10 };
enum batch_look {
    BATCH_READ,
    BATCH_LOOK, /* the head alone: no batch_fetch_read() */
};

/* `e` and `request_id` live as long as the fetch. */
struct batch_fetch *batch_fetch_begin(struct target *t, const struct batch_entry *e,
                                      enum batch_look look, const char *request_id);
int batch_fetch_head(struct batch_fetch *f, struct job_stop *stop, uint64_t *size,
                     int64_t *modified_s, struct error *err);
/* Of a whole object, after its head: what its bytes must have.  CHECKSUM_NONE: it is not known. */
void batch_fetch_checksum(const struct batch_fetch *f, struct checksum_value *out);
/* After its head: the entity tag of the object. */
const char *batch_fetch_etag(const struct batch_fetch *f);
/* > 0: bytes; an error's code.  Not asked for beyond the size. */
ssize_t batch_fetch_read(struct batch_fetch *f, struct job_stop *stop, void *out, size_t len,
                         struct error *err);
void batch_fetch_end(struct batch_fetch *f); /* whatever is under way; NULL is fine */

/* The URL at which the owner of an object gives it to this target as to a client; *node: the
 * owner's id, the caller's.  *separator: of what a query adds.  E_BUCKET_NOT_FOUND, E_NO_TARGETS,
 * E_NODE_UNREACHABLE. */
int batch_fetch_url(struct target *t, const char *bucket, const char *object, char **node,
                    struct buf *url, char *separator, struct error *err);
