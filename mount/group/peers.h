/* Calls to members of a cache group.
 *
 * Calls are signed with the group's key, and a member proves that it has that key and the id that
 * the map gives it.  No call is waited for long: a connection takes connect_ms, and a member that
 * says nothing for wait_ms is given up.  One that fails rests (rest.h).  Bytes that do not have the
 * sum that came with them are no answer.  Any thread. */
#pragma once

#include <stdint.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "mount/group/map.h"
#include "mount/group/request.h"

struct auth;
struct group_peers;

struct group_peers_options {
    struct auth *auth;   /* borrowed; without a key calls are not signed */
    uint64_t connect_ms; /* for a connection */
    uint64_t wait_ms;    /* for the next byte */
};

int group_peers_new(const struct group_peers_options *options, struct group_peers **out,
                    struct error *err);
void group_peers_free(struct group_peers *p); /* no call is running; NULL is fine */
DEFINE_CLEANUP(struct group_peers, group_peers_free);

/* 0 and the bytes, appended to `out`; GROUP_CHECK and GROUP_WARM bring none.  E_NOT_FOUND: the
 * member does not have them (GROUP_CACHED, GROUP_CHECK).  E_NOT_READY: it rests, and was not asked.
 * Else why the member is no help. */
int group_peers_ask(struct group_peers *p, const struct group_member *member,
                    const struct group_request *r, struct buf *out, struct error *err);
