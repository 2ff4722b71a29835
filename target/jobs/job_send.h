/* Bytes that a job has and that become an object wherever its name belongs: gathered in a temporary
 * file of the store here, whole and with their checksum, before they are sent.
 *
 *     rc = job_send_begin(j, bucket_id, name, size, &put, err);
 *     object_put_write(put, …) …
 *     job_send(j, put, &copy, err);      // or object_put_abort(put)
 *
 * Any thread that may wait. */
#pragma once

#include "target/jobs/job_base.h"

/* The bytes of an open file and its attribute, as job_send() does. */
int job_send_file(struct job_base *j, const struct object *o, const struct object_copy *copy,
                  struct error *err);
/* size: or OBJECT_SIZE_UNKNOWN.  E_BUCKET_NOT_FOUND, E_NO_SPACE. */
int job_send_begin(struct job_base *j, uint64_t bucket_id, const char *name, uint64_t size,
                   struct object_put **put, struct error *err);
/* Ends the put.  `copy` says where to and by which rule, not from what.  Until it is done, was
 * refused for good, or the job ends; what it waits for is shown.  As object_copy(). */
int job_send(struct job_base *j, struct object_put *put, const struct object_copy *copy,
             struct error *err);
