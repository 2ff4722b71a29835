/* The rights that a job needs, of the user who starts it, at its start.  They are asked
 * before the job is made: a bucket that the user may not use is refused alike whether it exists or
 * not.  Every job needs `jobs` on the cluster; the route of a sort asks for it.
 *
 *   job                     rights on buckets
 *   sort                    read the input and the object of an external key map; write the output
 *   delete, evict           delete, each name of a list, or the prefix
 *   copy                    read the same; write the destination below `prepend`
 *   prefetch                read the same
 *   flatten                 read and write the same; read, write and delete the containers of the
 *                           bucket's plogs, since a head may name any of them
 *   download                write below `prepend`
 *   burn                    read the prefix, or both buckets of a list or an older image; write the
 *                           image, or its bucket where contents are stored
 *
 * A template needs the right on the whole bucket, and so do a sort's input and output. */
#pragma once

#include <jansson.h>

#include "common/error.h"

struct http_request;

/* 0, E_UNAUTHORIZED, E_ACCESS_DENIED, or what is wrong with the specification. */
int job_rights_objects(struct http_request *req, const char *kind, const char *bucket,
                       json_t *value, struct error *err);
int job_rights_sort(struct http_request *req, json_t *request, struct error *err);
