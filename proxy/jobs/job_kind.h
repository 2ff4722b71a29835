/* What the primary knows of a kind of job.  A kind is one row of xaction/kinds.def and one file,
 * <shown>_job.c, which fills in this struct.  What a kind leaves out is what most kinds do.
 *
 * A standing job is one that the primary begins by itself, because the documents ask for it:
 *
 *   fence changes ─▶ stands for the kind's delay ─▶ next(): a job ─▶ finished ─▶ next(): a command
 *                                                     └ the fence moves: fits() ends it, and
 *                                                       another one follows
 *
 * All functions are pure but for the ids, which are drawn at random. */
#pragma once

#include "cluster/command/command.h"
#include "cluster/documents/job.h"
#include "cluster/documents/state.h"

struct objects_plan;
struct objects_spec;

enum job_load {
    JOB_COUNTS, /* one of those of which only so many run at once */
    JOB_FREE,   /* runs whatever else does: others may wait for it */
    JOB_BESIDE, /* may take weeks, and holds no other job up */
};

/* What a standing job's settle time counts from anew whenever it changes. */
struct standing_fence {
    uint64_t numbers[3];
};

struct standing_now {
    uint64_t stood_ms; /* for how long the fence has been the same */
    int64_t wall_ms;
    /* The generation of the roster that a target wants to have resilvered; 0: none. */
    uint64_t (*unsettled)(void *ctx, const char *target);
    void *ctx;
};

/* Of jobs over objects of one bucket: POST /v1/buckets/{bucket} with the kind as the action. */
struct objects_rule {
    enum { OBJECTS_OWN, OBJECTS_CACHED, OBJECTS_ANY } from; /* of buckets without, with a backend */
    const char *instead; /* of OBJECTS_OWN: what serves for a bucket with a backend */
    bool listed;         /* a prefix means what the backend lists */
    bool all;            /* what is missing was wanted */
    bool once;           /* what was done does not show when it is done again */
    bool removes;        /* none of a bucket that is write_once, or a ring */
    bool fills;          /* stores objects in the bucket: none of a ring */
    bool lenient;        /* objects that fail do not fail the job where others are done */
    /* Checks the request and takes its description.  NULL: it is as xaction/objects_spec.h says. */
    int (*check)(json_t *value, char **description, struct error *err);
    /* What xaction/objects_spec.h cannot judge of it; NULL: nothing. */
    int (*check_spec)(const struct objects_spec *spec, struct error *err);
    /* Makes the job's plan out of what all have; its spec is there, and may be completed.  NULL: as
     * xaction/objects_spec.h. */
    int (*plan)(const struct cluster_state *s, const struct objects_plan *plan, struct job *job,
                struct error *err);
};

struct job_kind {
    const char *name; /* of its row */

    /* --- how it starts ------------------------------------------------------------------------ */

    const struct objects_rule *objects; /* NULL: it is not over objects of a bucket */
    /* A job ready to be committed, by its name (POST /v1/jobs) or because it is due.  E_JOB_STATE
     * while there is a standing one; the kind's own errors.  NULL: as job_make() does. */
    int (*make)(const struct cluster_state *s, int64_t wall_ms, struct job **out,
                struct error *err);
    /* What becomes of the request's "value".  NULL: the kind takes none. */
    int (*spec)(json_t *value, json_t **spec, struct error *err);

    /* --- while it runs, and at its end -------------------------------------------------------- */

    enum job_load load;
    bool outlasts_members; /* goes on where a target joins or leaves */
    /* Does it still fit the documents?  E_ABORTED, E_STALE_MAP.  NULL: always. */
    int (*fits)(const struct job *job, const struct cluster_state *s, struct error *err);
    /* How many of its targets can it do without?  NULL: none. */
    size_t (*spares)(const struct job *job, const struct cluster_state *s);
    /* All targets have done their part: is that what was asked for?  NULL: it is. */
    int (*judge)(const struct job *job, const json_t *reports, struct error *err);

    /* --- a standing job ----------------------------------------------------------------------- */

    bool periodic; /* it begins once an interval (periodic_job.h) */
    /* NULL: it waits for nothing to stand. */
    struct standing_fence (*fence)(const struct cluster_state *s);
    /* What is next?  *cmd: a command to be committed, whose job, if it has one, is the caller's to
     * unref; or false.  NULL: it is no standing job. */
    bool (*next)(const struct cluster_state *s, const struct standing_now *now,
                 struct command *cmd);
};

enum { JOB_KINDS_MAX = 64 };

/* The n-th row of kinds.def; NULL after the last. */
const struct job_kind *job_kind_at(size_t n);
/* NULL where no kind has this name. */
const struct job_kind *job_kind_find(const char *name);

#define KIND(name, shown, label, resumes, again, bare, undone, summary) \
    extern const struct job_kind shown##_kind;
#include "xaction/kinds.def"
#undef KIND
