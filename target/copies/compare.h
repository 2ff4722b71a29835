/* What a name stands for where this target, which acts for it, may lack something: all who may have
 * it are asked, the greatest version is brought here, and sent to each active owner that has less.
 *
 * Until all have it the name is marked as dirty here, so that nobody is answered from it.
 *
 * Who has no room for its bytes, or refuses them for good, is told what it stands for (hollow.h).
 * For an answer that is enough; COMPARE_FOR_ALL, which is the repair's, fails with what was said.
 *
 * Waits; in the name's turn (copies.h). */
#pragma once

#include "cluster/documents/state.h"
#include "common/error.h"
#include "target/store/object.h"

struct target;

/* In a bucket where a majority of the owners is enough for a write (cluster/placement/quorum.h): */
enum compare_mode {
    COMPARE_FOR_ANSWER, /* a majority is heard, and has it in the end */
    COMPARE_FOR_ALL,    /* each owner that the map does not pass over has it, or it is an error */
};

enum { COMPARED_ID_MAX = 64 }; /* a node's id is shorter (state.h) */

struct compared {
    struct version upto;     /* what the name stands for; none: nobody has anything */
    struct object_held lost; /* with an error: the same, whose bytes nobody has who can be asked */
    char holder[COMPARED_ID_MAX]; /* "", or who has the bytes, for which there is no room here */
};

/* E_NODE_UNREACHABLE: somebody who may have it could not be asked, or could not be sent it; or its
 * bytes may be where the map passes over (see *out).  E_STALE_MAP: the owners have changed; the
 * newer state was fetched.  E_CORRUPT: nobody has its bytes any more (see *out).  `out` may be
 * NULL. */
int copies_compare_all(struct target *t, const struct cluster_state *s, const struct bucket *b,
                       const char *name, enum compare_mode mode, struct compared *out,
                       struct error *err);
/* copies_compare_all() by that state; in the name's turn, and once more where owners have changed.
 */
int copies_compare_now(struct target *t, uint64_t bucket_id, const char *name,
                       enum compare_mode mode, struct compared *out, struct error *err);
