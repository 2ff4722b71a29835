#include "proxy/watch/node_events.h"

#include <stddef.h>
#include <stdio.h>

#include "cluster/members/membership.h"
#include "proxy/watch/event_log.h"

/* A number of the keepalive, and what it means that it grows or falls.  EVENT_KINDS: no event. */
static const struct row {
    size_t at;
    enum event_kind more, less;
    const char *text;
} rows[] = {
    {offsetof(struct keepalive, mountpaths_missing), EVENT_disk_missing, EVENT_disk_back,
     "mountpaths that are disabled or missing"},
    {offsetof(struct keepalive, mountpaths_out), EVENT_disk_full, EVENT_disk_room,
     "mountpaths that refuse writes"},
    {offsetof(struct keepalive, quarantined), EVENT_damage, EVENT_KINDS, "files in quarantine"},
    {offsetof(struct keepalive, lost), EVENT_lost, EVENT_KINDS, "lost objects"},
    {offsetof(struct keepalive, backends_failing), EVENT_backend_failing, EVENT_backend_back,
     "buckets whose backends do not answer"},
};

static uint64_t number(const struct keepalive *k, const struct row *r)
{
    return *(const uint64_t *)(const void *)((const char *)k + r->at);
}

void node_events(const char *id, const struct keepalive *before, const struct keepalive *now,
                 int64_t wall_ms, struct event_log *log)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t a = number(before, &rows[i]), b = number(now, &rows[i]);
        struct event e = {.kind = b > a ? rows[i].more : rows[i].less, .at_ms = wall_ms};
        if (a == b || e.kind == EVENT_KINDS)
            continue;
        snprintf(e.node, sizeof e.node, "%s", id);
        snprintf(e.text, sizeof e.text, "target '%s': %llu %s, before %llu", id,
                 (unsigned long long)b, rows[i].text, (unsigned long long)a);
        event_log_add(log, &e);
    }
}
