/* The base of the jobs that only work: nothing has to be there before, nothing is made visible
 * after, and nothing is undone.  (A sort does more: target/sort/host.h.)
 *
 * A kind is one file: the struct of its state, which begins with a struct job_base or is one, and
 * one row.
 *
 *   struct rebalance_job {
 *       struct job_base base;
 *       uint64_t placed;
 *   };
 *   const struct xaction_ops rebalance_xaction =
 *       JOB_WORK("rebalance", .size = sizeof(struct rebalance_job), .done_word = "moved", …);
 *
 * The steps of a row get this state as `self`.  Another thread may call status() while
 * run() is running, and sets `stop`, which run() must heed. */
#pragma once

#include "cluster/documents/job.h"
#include "target/copies/object_copy.h"
#include "target/jobs/kinds.h"
#include "target/node/target.h"
#include "target/store/job_stop.h"
#include "target/store/job_tally.h"
#include "xaction/objects_spec.h"

struct job_base {
    struct target *target;
    struct job *job;
    const struct job_work *work;
    struct job_tally *tally;
    struct job_stop stop;
    struct objects_spec *spec;    /* of a job over objects: what its document asks for, … */
    struct objects_plan plan;     /* … and where */
    struct object_copier *copier; /* of a job that sends objects to other targets */
};

struct job_work {
    size_t size;           /* of the kind's state */
    const char *done_word; /* as job_tally_new() takes it; NULL: the job has no tally */
    bool over_objects;     /* the document is one of xaction/objects_spec.h */
    bool sends;            /* objects to other targets: it has a copier */
    /* Reads the rest of the document into a state that is all zero but for its base.  NULL: there
     * is none.  end() follows an error, too. */
    int (*begin)(void *self, struct error *err);
    int (*run)(void *self, struct error *err);
    json_t *(*status)(void *self); /* NULL: the tally's */
    void (*end)(void *self);       /* frees what begin() has made; NULL: nothing */
};

/* The row of a kind, with the fields of its struct job_work. */
/* clang-format off */
#define JOB_WORK(kind_name, ...)                                                               \
    {                                                                                          \
        .kind = (kind_name), .work = &(const struct job_work){__VA_ARGS__},                    \
        .open = job_base_open, .prepare = xaction_nothing, .run = job_base_run,                \
        .stop = job_base_stop, .commit = xaction_nothing, .undo = xaction_nothing,             \
        .status = job_base_status, .free = job_base_free                                       \
    }
/* clang-format on */

/* E_ABORTED where the job shall end. */
int job_base_check(const struct job_base *j, struct error *err);

/* After failure number `failures` in a row: may what has failed pass, and is it to be tried again?
 * True once it has waited for that, which the tally shows; false also where the job shall end. */
bool job_base_again(struct job_base *j, int code, const struct error *why, unsigned failures);

/* --- the steps of every kind: JOB_WORK() names them ------------------------------------------- */

int job_base_open(const struct xaction_ops *kind, void *host, const struct job *job, void **self,
                  struct error *err);
int job_base_run(void *self, struct error *err);
void job_base_stop(void *self);
json_t *job_base_status(void *self);
void job_base_free(void *self);
