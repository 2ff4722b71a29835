#include "target/node/own_stats.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/metrics.h"
#include "net/daemon_metrics.h"

enum { WINDOW_MS = 5000 };

/* Requests of one route. */
struct latency {
    const metric_t *seconds;
    struct metric_reading from; /* the window's begin */
    uint64_t p99_us;            /* of the last window */
};

struct own_stats {
    uint64_t window_ms; /* when the window began; 0: none has */
    struct latency get, put;
};

struct own_stats *own_stats_new(void)
{
    struct own_stats *s = xcalloc(1, sizeof *s);
    s->get.seconds = metric_get(M_http_request_seconds, "route=\"object_get\"");
    s->put.seconds = metric_get(M_http_request_seconds, "route=\"object_put\"");
    metric_read(s->get.seconds, &s->get.from);
    metric_read(s->put.seconds, &s->put.from);
    return s;
}

void own_stats_free(struct own_stats *s)
{
    free(s);
}

static void end_window(struct latency *l)
{
    struct metric_reading now;
    metric_read(l->seconds, &now);
    l->p99_us = metric_quantile(l->seconds, &l->from, &now, 0.99);
    l->from = now;
}

static void turn_window(struct own_stats *s, uint64_t now_ms)
{
    if (s->window_ms != 0 && now_ms - s->window_ms < WINDOW_MS)
        return;
    end_window(&s->get);
    end_window(&s->put);
    s->window_ms = now_ms;
}

void own_stats_read(struct own_stats *s, uint64_t now_ms, struct node_stats *out)
{
    turn_window(s, now_ms);
    daemon_metrics_measure();
    *out = (struct node_stats){
        .values = {
            [STAT_reads] = metric_sum(M_object_get_total, ""),
            [STAT_read_bytes] = metric_sum(M_object_get_bytes_total, ""),
            [STAT_writes] = metric_sum(M_object_put_total, ""),
            [STAT_write_bytes] = metric_sum(M_object_put_bytes_total, ""),
            [STAT_deletes] = metric_sum(M_object_delete_total, ""),
            [STAT_errors] = metric_sum(M_http_requests_total, "code=\"5xx\""),
            [STAT_cpu_us] = metric_sum(M_process_cpu_seconds_total, ""),
            [STAT_memory_bytes] = metric_sum(M_process_resident_memory_bytes, ""),
            [STAT_connections] = metric_sum(M_http_connections, ""),
            [STAT_queue] = metric_sum(M_mountpath_queue, ""),
            [STAT_read_p99_us] = s->get.p99_us,
            [STAT_write_p99_us] = s->put.p99_us,
        }};
}
