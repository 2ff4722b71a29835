/* The output of a sort on one target: hidden objects of the output bucket, from their making to the
 * job's end.
 *
 * Of several copies the one that is made here is followed by all others (hidden.h) before it counts
 * as finished; what is taken back here is taken back there before.
 *
 * Any thread; one at a time between begin and finish or discard of one output. */
#pragma once

#include "sort/base/env.h"
#include "target/sort/part.h"

struct sort_outputs {
    const struct sort_part *part;
    /* Of each target the run that the outputs that stand here were sent to, by its number; and who
     * has begun another one since. */
    char **boots;
    bool *restarted;
};

void sort_outputs_done(struct sort_outputs *o);
/* An attempt begins: takes note of who has restarted since the last one. */
void sort_outputs_again(struct sort_outputs *o);

/* As struct sort_env says. */
unsigned sort_outputs_owner(const struct sort_outputs *o, const char *name);
int sort_outputs_check(const struct sort_outputs *o, const char *name, struct error *err);
int sort_outputs_begin(const struct sort_outputs *o, const char *name, uint64_t size,
                       struct sort_output **out, struct error *err);
int sort_outputs_finish(const struct sort_outputs *o, struct sort_output *out, struct error *err);
bool sort_outputs_stand(const struct sort_outputs *o, const char *name);
int sort_outputs_prune(struct sort_outputs *o, bool (*wanted)(void *arg, const char *name),
                       void *arg, struct error *err);

/* What is left to the system's leisure is on the disks. */
int sort_outputs_settle(const struct sort_outputs *o, struct error *err);
/* The job's end here: all of its outputs are visible, or gone; then its directory goes. */
int sort_outputs_commit(const struct sort_outputs *o, struct error *err);
int sort_outputs_undo(const struct sort_outputs *o, struct error *err);
