/* Works off the marks of dirty.h: those a second old are asked about, many at once, from the
 * owner that acts for the names, who says which are settled and sees to the others
 * (copies_settle()); of names that this target acts for it does so itself.  So what a write in
 * doubt has left somewhere is brought to all owners soon after, and marks do not pile up.
 *
 *   POST /v1/settled   [{"bucket": 3, "name": "a", "version": "1.7.3", "rank": 5}, …]
 *                      ─▶ {"settled": [0, 2]}
 *
 * The same call asks an owner what it has (held), and the acting one to see to names (wanted), for
 * who compares many of them: antientropy.h; and tells an owner to check its copy (doubted); and
 * what would tell that a target has lost something (loss).
 *
 * A thread of its own. */
#pragma once

#include <stdbool.h>

#include "cluster/documents/state.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "net/http/server.h"

struct dirty_worker;
struct target;

enum dirty_question {
    DIRTY_IS_SETTLED, /* do all owners have this version, or more? */
    DIRTY_IS_HELD,    /* has this target? */
    DIRTY_WANTED,     /* none: all are to have what the greatest of them has */
    DIRTY_DOUBTED,    /* none: this target's copy is to be checked (read_repair.h) */
    DIRTY_LOSS,       /* none: dirty_ask_loss() */
};
struct dirty_name;

/* yes[i]: of the i-th name.  Waits; at most DIRTY_AT_ONCE names. */
enum { DIRTY_AT_ONCE = 500, DIRTY_BODY_MAX = DIRTY_AT_ONCE * 4096 /* of a call */ };
int dirty_ask(struct target *t, const struct cluster_state *s, const struct node *n,
              enum dirty_question question, const struct dirty_name *const *names, size_t count,
              bool *yes, struct error *err);

/* By its name in the call.  E_INVALID: there is none such. */
int dirty_question_parse(const char *text, enum dirty_question *out, struct error *err);

/* What is different when a target has lost something since (repair_walk.h): the steps of its floor
 * (floor.h), and a sum over its mountpaths of their ids and quarantine_stamp(), 0 where a
 * disk does not say. */
struct dirty_loss {
    uint64_t steps, quarantine;
};
int dirty_ask_loss(struct target *t, const struct cluster_state *s, const struct node *n,
                   struct dirty_loss *out, struct error *err);

/* Those who act for these names are told to bring what they stand for to all owners. */
void dirty_want(struct target *t, const struct dirty_name *names, size_t count);

int dirty_worker_new(struct target *t, struct dirty_worker **out, struct error *err);
void dirty_worker_free(struct dirty_worker *s); /* NULL is fine; after copies_stop() */

extern const struct http_route dirty_routes[];
