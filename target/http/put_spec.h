/* From the headers of a PUT, a client's or another target's, to what is to be stored:
 *
 *   client   what it sends becomes a new version, under its conditions
 *   move     an object on its way from another owner: with its version, time and checksum, unless
 *            what is here is as new (rebalance.h, copies/compare.h, hidden.h)
 *   stage    what the acting owner of a name has other owners keep until its word (staged.h)
 *   copy     a job's: a new version, unless it has the bytes or was written since (copy_rule.h) */
#pragma once

#include <stdbool.h>

#include "common/error.h"

struct http_request;
struct object_call;
struct object_put;

bool put_has_conditions(const struct http_request *req);
bool put_is_move(const struct object_call *call);
bool put_is_stage(const struct object_call *call);
/* One of the two: what every owner has, rather than a write. */
bool put_is_copy(const struct object_call *call);
/* Begins what is to be stored: *put, or call->put.ec where it is kept in slices; call->put.fan and
 * call->put.condition where it goes to other owners, too.  E_INVALID names the header. */
int put_open(struct object_call *call, struct object_put **put, struct error *err);
