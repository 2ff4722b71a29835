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

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "sort/shard/catalog.h"

struct sort_context;
struct sort_records;

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

/* The reply: a source of bytes that is pulled, never waits for anybody (so that no two targets can
 * wait for each other), and may outlive sort_task_run(). */
int64_t sort_records_length(const struct sort_records *r); /* total bytes; -1: not known */
/* 1..max bytes, 0 at the end, or an error code. */
ssize_t sort_records_read(struct sort_records *r, void *out, size_t max, struct error *err);
bool sort_records_wanted(const struct sort_records *r); /* until the task is stopped */
void sort_records_free(struct sort_records *r);
