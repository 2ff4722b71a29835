#include "sort/task/context.h"

#include "common/metrics.h"

void sort_count(const char *phase, uint64_t records, uint64_t bytes)
{
    char label[32];
    snprintf(label, sizeof label, "phase=\"%s\"", phase);
    metric_add(metric_get(M_sort_records_total, label), records);
    metric_add(metric_get(M_sort_bytes_total, label), bytes);
}

void sort_damage_note(const struct sort_context *c, int code, const struct error *why)
{
    if (code != E_CHECKSUM && code != E_SHARD_CORRUPT)
        return;
    pthread_mutex_lock(&c->damage->lock);
    if (c->damage->first.code == 0)
        c->damage->first = *why;
    pthread_mutex_unlock(&c->damage->lock);
    links_stop(c->links, why);
}

int sort_damage_check(const struct sort_context *c, struct error *err)
{
    pthread_mutex_lock(&c->damage->lock);
    const struct error first = c->damage->first;
    pthread_mutex_unlock(&c->damage->lock);
    return first.code != 0 ? error_set(err, first.code, "%s", first.message) : 0;
}
