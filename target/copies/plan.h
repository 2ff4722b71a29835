/* What the acting owner of a name decides from what the others have said.  Pure.
 *
 * A write: each of the others was told to commit it.
 *
 *   all have it (or were passed over by the map since)    the acting owner makes it its own: done
 *   (or, where that is enough: as many as it `needs` for a majority, which no map passes over)
 *   nobody has it, and nobody may have it                 a failure that is certain
 *   else                                                  in doubt: what somebody has may win yet
 *
 * A comparison: what each has of the name.  The greatest version is what the name stands for, also
 * where all who have it are damaged; of one version and one content the greatest rank
 * (attr_rank.h); whoever has less, or has it damaged, is sent it, the others before the acting
 * owner, so that nobody sees it before all have it.
 *
 * Two contents of one version: one is damaged.  What has a checksum is greater than what has none,
 * and shows damage when it is sent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "target/store/object.h"

enum copy_fate {
    COPY_PASSED_OVER, /* the map calls it unreachable by now */
    COPY_MADE,        /* it has this write, or a later one */
    COPY_REFUSED,     /* it has it not, and never will */
    COPY_UNKNOWN,
};

enum copies_outcome { COPIES_DONE, COPIES_FAILED, COPIES_IN_DOUBT };

/* needs: how many of the others must have it; COPIES_EACH: each that the map does not pass over. */
enum { COPIES_EACH = 0 };
/* maybe: one of whom that is not its fate any more (it was passed over) may have it. */
enum copies_outcome copies_judge(const enum copy_fate *fates, size_t count, size_t needs,
                                 bool maybe);

enum { COPIES_SELF = -1 };

struct copies_verdict {
    bool found;   /* anybody has anything */
    bool damaged; /* whoever has the greatest has not its bytes */
    int best;     /* who has the greatest: COPIES_SELF where it is as good as any, or an index */
    struct version version;
    uint64_t rank;  /* of the greatest (attr_rank.h) */
    size_t lacking; /* of the others, how many have less … */
    bool self_lacks;
};

/* lacks[i]: the others' i-th has to be sent it. */
void copies_compare(const struct object_held *self, const struct object_held *others, size_t count,
                    struct copies_verdict *out, bool *lacks);

/* Has it what is `wanted`, whole, or what stays where the two meet? */
bool copies_has(const struct object_held *held, const struct object_held *wanted);

/* Are they whole copies of one version whose lengths or checksums differ? */
bool copies_contradict(const struct object_held *a, const struct object_held *b);
