#include "proxy/jobs/standing_jobs.h"

#include <assert.h>
#include <string.h>

#include "proxy/jobs/rebalance_job.h"
#include "proxy/jobs/repair_job.h"
#include "proxy/jobs/resilver_job.h"
#include "proxy/jobs/scrub_job.h"
#include "proxy/jobs/trim_copies_job.h"

static const struct standing_job *const table[] = {
    &resilver_job, &rebalance_job, &repair_job, &trim_copies_job, &scrub_job,
};
enum { ROWS = sizeof table / sizeof *table };
static_assert((int)ROWS <= (int)STANDING_JOBS_MAX, "a clock for each row");

const struct standing_job *standing_job_at(size_t n)
{
    return n < ROWS ? table[n] : NULL;
}

const struct standing_job *standing_job_find(const char *kind)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(table[i]->kind, kind) == 0)
            return table[i];
    }
    return NULL;
}

void standing_look(struct standing_clocks *c, const struct cluster_state *s, uint64_t now_ms)
{
    for (size_t i = 0; i < ROWS; i++) {
        struct standing_fence now = {{0}};
        if (table[i]->fence != NULL)
            now = table[i]->fence(s);
        if (c->rows[i].seen && memcmp(&c->rows[i].fence, &now, sizeof now) == 0)
            continue;
        c->rows[i].seen = true;
        c->rows[i].fence = now;
        c->rows[i].since_ms = now_ms;
    }
}

const struct standing_job *standing_next(const struct standing_clocks *c,
                                         const struct cluster_state *s, uint64_t now_ms,
                                         struct standing_now *now, struct command *cmd)
{
    for (size_t i = 0; i < ROWS; i++) {
        now->stood_ms = c->rows[i].seen ? now_ms - c->rows[i].since_ms : 0;
        if (table[i]->next(s, now, cmd))
            return table[i];
    }
    return NULL;
}
