/* From the headers of a PUT, a client's or another target's, to what is to be stored:
 *
 *   client   what it sends becomes a new version, under its conditions
 *   job      a new version, unless it has the bytes or was written since (copy_rule.h)
 *   stage    what the leader of a name has other owners keep until its word (staged.h)
 *   move     an object on its way from another owner, with or without its bytes (copies/moved.c) */
#pragma once

#include "target/node/call.h"

struct write_parts;

/* What another target sends, by its header Dfc-Copy. */
enum put_kind put_kind_of_peer(const struct http_request *req);
/* May a PUT have these headers?  What an upload in parts asks when it begins. */
int put_check_headers(struct object_call *call, struct error *err);
/* Begins what is to be stored, by the call's path.  E_INVALID names the header. */
int put_open(struct object_call *call, struct write_parts *out, struct error *err);
