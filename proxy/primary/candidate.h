/* A proxy whose metastore is shared: primary while it is elected, a follower
 * (proxy/primary/follower.h) while it is not.  A thread of its own makes the change, for it has to
 * wait: for documents, commits and calls that end. */
#pragma once

#include "common/error.h"

struct proxy;
struct candidate;

/* Takes part in elections; with electable=false it only looks for the primary. */
int candidate_start(struct proxy *p, struct candidate **out, struct error *err);
/* Ends being primary: commits that were begun end, and then the lease is given back.  From then on
 * this proxy stands in no election.  Blocks; again: nothing happens. */
void candidate_stop(struct candidate *c);
void candidate_free(struct candidate *c); /* after the metastore was closed, which may still call */
