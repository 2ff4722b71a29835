/* Metrics in Prometheus' text format.  Rows of metrics.def:
 *
 *     COUNTER(name, "help")   GAUGE(name, "help")   HISTOGRAM(name, "help")
 *
 * every metric may carry label sets, each given as ready text (`route="object_get",code="200"`),
 * registered once and then updated by handle without locks:
 *
 *     static metric_t *puts;  puts = metric_get(M_http_requests_total, "route=\"put\"");
 *     metric_add(puts, 1);
 *
 * Histograms count durations in microseconds into powers of two from 64 us to 67 s (2^6 to 2^26 us)
 * and are shown in seconds.  Everything is prefixed "dfc_".  A handle lives as long as the process;
 * label sets are never dropped, so that what stands in them must come from a small set (routes,
 * mountpaths), never from users (names of objects).  The update functions may be called in any
 * thread and are told apart by the row's type; mixing them up is a bug and aborts. */
#pragma once

#include <stdint.h>

#include "common/buf.h"

enum metric_id {
#define COUNTER(name, help) M_##name,
#define GAUGE(name, help) M_##name,
#define HISTOGRAM(name, help) M_##name,
#include "common/metrics.def"
#undef COUNTER
#undef GAUGE
#undef HISTOGRAM
    M_COUNT_,
};

typedef struct metric metric_t;

metric_t *metric_get(enum metric_id id, const char *labels); /* labels NULL or text; thread-safe */
void metric_add(metric_t *m, uint64_t n);
void metric_set(metric_t *m, int64_t value);
void metric_gauge_add(metric_t *m, int64_t delta);
void metric_observe_us(metric_t *m, uint64_t us);
uint64_t metric_value(const metric_t *m); /* counter or gauge; for tests */
void metrics_text(struct buf *out);       /* the whole exposition */
