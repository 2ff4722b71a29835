#include "proxy/jobs/standing_jobs.h"

#include <string.h>

void standing_look(struct standing_clocks *c, const struct cluster_state *s, uint64_t now_ms)
{
    const struct job_kind *k;
    for (size_t i = 0; (k = job_kind_at(i)) != NULL; i++) {
        struct standing_fence now = {{0}};
        if (k->fence != NULL)
            now = k->fence(s);
        if (c->rows[i].seen && memcmp(&c->rows[i].fence, &now, sizeof now) == 0)
            continue;
        c->rows[i].seen = true;
        c->rows[i].fence = now;
        c->rows[i].since_ms = now_ms;
    }
}

const struct job_kind *standing_next(const struct standing_clocks *c, const struct cluster_state *s,
                                     uint64_t now_ms, struct standing_now *now, struct command *cmd)
{
    const struct job_kind *k;
    for (size_t i = 0; (k = job_kind_at(i)) != NULL; i++) {
        now->stood_ms = c->rows[i].seen ? now_ms - c->rows[i].since_ms : 0;
        if (k->next != NULL && k->next(s, now, cmd))
            return k;
    }
    return NULL;
}
