#include "target/copies/plan.h"

#include "target/format/attr_rank.h"

enum copies_outcome copies_judge(const enum copy_fate *fates, size_t count, size_t needs,
                                 bool maybe)
{
    size_t made = 0, refused = 0, unknown = 0;
    for (size_t i = 0; i < count; i++) {
        made += fates[i] == COPY_MADE;
        refused += fates[i] == COPY_REFUSED;
        unknown += fates[i] == COPY_UNKNOWN;
    }
    if (needs == COPIES_EACH ? refused + unknown == 0 : made >= needs)
        return COPIES_DONE;
    return maybe || made + unknown > 0 ? COPIES_IN_DOUBT : COPIES_FAILED;
}

/* Of one version, and whole: 0 where their contents are the same.  A manifest of slices says its
 * object's content elsewhere. */
static int compare_content(const struct object_held *a, const struct object_held *b)
{
    if (!a->visible || !b->visible || a->slices != 0 || b->slices != 0)
        return 0;
    return attr_content_compare(a->size, &a->checksum, b->size, &b->checksum);
}

/* Has `a` less than `b`?  Of the same version one that is damaged has; of two that are whole and
 * differ the one whose content does not stay; else the one with less rank, where both say theirs.
 */
static bool is_less(const struct object_held *a, const struct object_held *b)
{
    if (!a->found || !b->found)
        return b->found;
    int than = version_compare(&a->version, &b->version);
    if (than != 0 || a->damaged != b->damaged)
        return than < 0 || (than == 0 && a->damaged);
    int content = a->damaged ? 0 : compare_content(a, b);
    if (content != 0)
        return content < 0;
    return a->rank != 0 && a->rank < b->rank;
}

bool copies_has(const struct object_held *held, const struct object_held *wanted)
{
    return held->found && !held->damaged && !is_less(held, wanted);
}

bool copies_contradict(const struct object_held *a, const struct object_held *b)
{
    return a->found && b->found && !a->damaged && !b->damaged &&
           version_compare(&a->version, &b->version) == 0 && compare_content(a, b) != 0;
}

void copies_compare(const struct object_held *self, const struct object_held *others, size_t count,
                    struct copies_verdict *out, bool *lacks)
{
    const struct object_held *best = self;
    *out = (struct copies_verdict){.best = COPIES_SELF};
    for (size_t i = 0; i < count; i++) {
        if (is_less(best, &others[i])) {
            best = &others[i];
            out->best = (int)i;
        }
    }
    out->found = best->found;
    out->damaged = best->damaged;
    out->version = best->version;
    out->rank = best->rank;
    out->self_lacks = is_less(self, best);
    for (size_t i = 0; i < count; i++) {
        lacks[i] = is_less(&others[i], best);
        out->lacking += lacks[i];
    }
}
