/* DeleteBucket, at the primary: no object that a client was told of is destroyed with a bucket.
 *
 *   close ─▶ list ─┬─ empty ─▶ destroy ─▶ done
 *                  └─ a name, or a failure ─▶ open ─▶ done with the error
 *
 * A target gives no object its name in a closed bucket, and asks for that by the state in force.
 * The list is made by the state that has the bucket closed, so that it has every object that got
 * its name earlier.  If the primary dies meanwhile, the next term opens the bucket. */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "net/http/handler.h"

/* Of the bucket in the path of the request.  done() replies; `err` NULL: it is destroyed.
 * E_BUCKET_NOT_EMPTY, E_BUCKET_NOT_FOUND, E_NOT_READY (it is being destroyed already), and errors
 * of a list. */
void bucket_delete(struct http_request *req, uint64_t bucket_id,
                   void (*done)(struct http_request *req, const struct error *err));
