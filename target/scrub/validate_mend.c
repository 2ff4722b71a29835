#include "target/scrub/validate_mend.h"

#include "common/log.h"
#include "target/store/quarantine.h"

/* What a newer release wrote is not ours to judge. */
enum mend { MEND_NOTHING, MEND_QUARANTINE, MEND_INDEX, MEND_REPAIR };

static const enum mend mends[VALIDATE_FINDINGS_COUNT] = {
    [VALIDATE_file_missing] = MEND_REPAIR,         [VALIDATE_not_indexed] = MEND_INDEX,
    [VALIDATE_index_differs] = MEND_INDEX,         [VALIDATE_attribute_damaged] = MEND_QUARANTINE,
    [VALIDATE_size_differs] = MEND_QUARANTINE,     [VALIDATE_misplaced] = MEND_QUARANTINE,
    [VALIDATE_checksum_differs] = MEND_QUARANTINE, [VALIDATE_quarantined] = MEND_REPAIR,
    [VALIDATE_unreadable] = MEND_REPAIR,
};

void walk_want_repair(const struct walk *w, const char *name)
{
    if (*name == '\0')
        return;
    w->scrub->repair_wanted(w->config->ctx, w->bucket_id, name);
    validate_part_mended(w->part, VALIDATE_MEND_repairs_wanted);
}

static void move_aside(const struct walk *w, const struct sick *s)
{
    bool taken;
    struct error err = ERROR_INIT;
    const struct quarantine q = {.mp = w->mp,
                                 .path = s->path,
                                 .inode = s->inode,
                                 .attr = s->attr,
                                 .job_id = w->scrub->job_id,
                                 .bucket_id = w->bucket_id,
                                 .name = s->name,
                                 .what = validate_finding_name(s->what),
                                 .detail = s->why};
    if (quarantine_take(&q, &taken, &err) != 0) {
        log_error("damaged file not moved aside", lstr("path", s->path), lerr(&err));
        validate_part_mended(w->part, VALIDATE_MEND_failed);
    } else if (taken) {
        metric_add(metric_get(M_quarantined_total, NULL), 1);
        validate_part_mended(w->part, VALIDATE_MEND_quarantined);
    }
}

static void mend_index(const struct walk *w, const char *name)
{
    _cleanup_place_ struct object_place p = {0};
    /* Where HRW would put it does not matter: it lies here. */
    (void)object_place_set(&p, w->config->store, w->bucket_id, name, NULL);
    p.mp = w->mp;
    object_restore_index(&p);
    bool well = index_check(w->mp->index, NULL) == 0;
    validate_part_mended(w->part, well ? VALIDATE_MEND_indexed : VALIDATE_MEND_failed);
}

/* Under the name's lock, where there is a name. */
void walk_mend(const struct walk *w, const struct sick *s)
{
    if (w->scrub == NULL)
        return;
    if (mends[s->what] == MEND_QUARANTINE)
        move_aside(w, s);
    if (mends[s->what] == MEND_INDEX)
        mend_index(w, s->name);
    else if (mends[s->what] == MEND_REPAIR || s->attr != NULL)
        walk_want_repair(w,
                         s->name); /* of the others the walk of the names says whose place it is */
}

bool walk_mends_index(enum validate_finding what)
{
    return mends[what] == MEND_INDEX;
}
