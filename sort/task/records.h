/* Records for a peer: the request that asks for them, and the source of their bytes.
 *
 * A request is one peer's list of records of one output, in the order in which it will want
 * them; the reply is their bytes, or those of their outlines (outline.h), one behind the other,
 * nothing between.
 *
 *     job        8 bytes
 *     form       varint, enum records_form
 *     count      varint, at most RECORDS_MAX
 *     records    shard's number at the asked target, position: varints */
#pragma once

#include <stdint.h>

#include "common/buf.h"
#include "sort/shard/catalog.h"
#include "sort/task/context.h"
#include "sort/task/task.h"

#define RECORDS_MAX 32768 /* of one request */

enum records_form { RECORDS_WHOLE, RECORDS_OUTLINES };

struct record_ref {
    uint32_t shard;
    uint32_t position;
};

void records_request(uint64_t job, enum records_form form, const struct record_ref *refs,
                     size_t count, struct buf *out);
/* E_CORRUPT, E_LENGTH, E_INVALID where the request is malformed or names what is not there. */
int records_open(const struct sort_context *c, const struct catalog *catalog, const void *request,
                 size_t len, struct sort_records **out, struct error *err);
