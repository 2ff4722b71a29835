/* Several members of an archive in one reply, as a tar in the archive's order:
 *
 *   GET /v1/objects/B/O?members=tar&match=TEXT&mode=regexp
 *
 * A thread of the unpackers (unpackers.h) chooses names in the archive's index, and sends headers
 * and bytes: of a plain tar as they are, of anything else in one pass over the archive.  Members
 * keep their names.  The reply begins once the names are chosen: no match is 404, later damage cuts
 * it. */
#pragma once

#include "target/store/object.h"

struct member_match;
struct object_call;
struct reader;
struct shard;
struct unpackers;

/* Takes the call over, the open object and the choice; reader and index are shared.  `head` puts
 * the headers that any reply about the archive has. */
void member_tar_reply(struct unpackers *u, struct object_call *call, const struct object *o,
                      struct reader *reader, struct shard *shard, struct member_match *match,
                      void (*head)(const struct object_call *call, const struct attr *a));
