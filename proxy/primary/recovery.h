/* A primary whose directory was lost becomes the one of its cluster again, from the copies of the
 * documents that the nodes have kept.
 *
 *   nodes that were refused ──▶ their copies ──▶ the one to believe ──▶ shown, or adopted
 *   (proxy/primary/refused_nodes.h)                          (recovery_plan.h)
 *
 * To adopt: fence the commits, end being the primary, move the metastore's directory aside
 * (metastore.lost-…), begin upon the copy in a new one, in a new epoch.  After a crash in between
 * the directory is an empty one again, and the same call does it again.
 *
 * recovery_show() and recovery_run() block: not for a loop's thread or an HTTP thread. */
#pragma once

#include <jansson.h>

#include "proxy/primary/recovery_plan.h"

struct proxy;

/* May the first bucket be made?  Not where this primary has neither buckets nor targets, and nodes
 * of another cluster ask it to be let in: most likely it is theirs, and has lost its directory.
 * E_WRONG_CLUSTER, with what to do.  Any thread. */
int recovery_check_new(struct proxy *p, struct error *err);
/* How many nodes have been refused of late that have documents which this primary has not.  Any
 * thread. */
size_t recovery_refused(struct proxy *p);
/* What would be believed, as GET /v1/cluster/documents gives it. */
json_t *recovery_show(struct proxy *p, const struct recovery_wish *wish);
/* Adopts what recovery_show() shows, provided that it is (term, version), and that all its nodes
 * were heard or the wish names one (recovery_check_heard()). */
int recovery_run(struct proxy *p, const struct recovery_wish *wish, uint64_t term, uint64_t version,
                 struct error *err);
