/* The members of a group, as the cluster tells them: asked at an interval, by a thread.
 *
 * A member reports in the same call.  If the cluster does not answer, the last map stays.  Any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "mount/group/map.h"

struct dfc_client;
struct group_members;

/* How a member shows itself; texts are borrowed. */
struct group_self {
    const char *id, *boot, *url;
    uint32_t weight;
};

struct group_members_options {
    struct dfc_client *client; /* borrowed */
    const char *group;         /* borrowed */
    uint64_t interval_ms;
    const struct group_self *self; /* NULL: a reader.  Borrowed */
};

/* Asks once before it returns; a member must be taken.  E_NET, E_INVALID, E_EXISTS, E_UNAUTHORIZED:
 * the cluster's answer to a member.  Of a reader only a thread that cannot start is an error. */
int group_members_open(const struct group_members_options *options, struct group_members **out,
                       struct error *err);
/* A member says that it leaves, and asks nothing more; its last map stays.  A reader's call is
 * cancelled by its client's owner before.  By the thread that closes it; NULL is fine. */
void group_members_leave(struct group_members *m);
/* Leaves, if it has not.  Nobody looks at it any more; NULL is fine. */
void group_members_close(struct group_members *m);
DEFINE_CLEANUP(struct group_members, group_members_close);

/* With a reference, the caller's; NULL: nothing is known yet. */
struct group_map *group_members_map(struct group_members *m);
/* From now on the member reports that it owns nothing any more. */
void group_members_drain(struct group_members *m);
bool group_members_drains(struct group_members *m);
