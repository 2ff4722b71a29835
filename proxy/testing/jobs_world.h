/* Three fake targets and a fake metastore for the driver of jobs; time and delivery are the test's.
 * Every callback is put into a queue, as a loop would. */
#pragma once

#include "proxy/jobs/jobs.h"

enum { TARGETS = 3, EVENTS_MAX = 256 };

struct event {
    jobs_answer_fn *answered;
    void (*committed)(void *arg, const struct error *err);
    void *arg;
    json_t *report;
    struct error err;
};

struct world {
    const struct cluster_state *state;
    struct jobs_driver *driver;
    enum xaction_state targets[TARGETS];
    uint64_t attempts[TARGETS]; /* that they are at */
    bool deaf[TARGETS];         /* gets nothing, answers nothing */
    const char *fails[TARGETS]; /* with this code */
    size_t tells;               /* bytes of a warning in each report */
    bool forgetful;             /* reports have no status */
    bool commits_slowly;        /* a commit order does not get to its end */
    unsigned sent[TARGETS];     /* messages to it */
    unsigned commits_refused;   /* the next so many commits fail */
    size_t job_bytes_max;       /* the metastore takes no longer document; 0: any */
    unsigned commit_orders_before_decision;
    int64_t now_ms;
    struct event events[EVENTS_MAX];
    size_t event_count;
};

extern const char *world_unfit; /* why the job's plan is no good any more; NULL: it is good */
extern size_t world_spared;     /* so many targets can be done without */
extern unsigned world_steps;    /* decisions that the driver has made */

/* For cmocka: *state is a world. */
int world_setup(void **state);
int world_teardown(void **state);

void world_apply(struct world *w, const struct command *cmd);
void world_add_target(struct world *w, size_t i);
void world_set_node(struct world *w, const char *id, enum node_state state);
void world_add_job(struct world *w, const char *id); /* of all targets */
/* Runs every callback of the queue, and those that they queue. */
void world_deliver(struct world *w);
/* n ticks of the driver, each with all that follows. */
void world_ticks(struct world *w, int n);
const struct job *world_job(const struct world *w, const char *id);
