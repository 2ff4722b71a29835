/* Metrics in Prometheus' text format.  Rows of metrics.def:
 *
 *     COUNTER(name, "help")   GAUGE(name, "help")   HISTOGRAM(name, "help")
 *     SIZES(name, "help")     DEPTHS(name, "help")     SECONDS(name, "help")
 *
 * every metric may carry label sets, each given as ready text (`route="object_get",code="200"`),
 * registered once and then updated by handle without locks:
 *
 *     static metric_t *puts;  puts = metric_get(M_http_requests_total, "route=\"put\"");
 *     metric_add(puts, 1);
 *
 * Three rows are histograms.  HISTOGRAM counts durations in microseconds into powers of two from 64
 * us to 67 s (2^6 to 2^26 us), and is shown in seconds; SIZES counts bytes into powers of four from
 * 1 KiB to 256 MiB; DEPTHS counts lengths of queues into powers of two from 1 to 1024. SECONDS is a
 * sum of microseconds, shown in seconds, that is set and not added to. Everything is prefixed
 * "dfc_", but for process_…, which have the same names for every program.  A handle lives as long
 * as the process; label sets are never dropped, so that what stands in them must come from a small
 * set (routes, mountpaths), never from users (names of objects).  The update functions may be
 * called in any thread and are told apart by the row's type; mixing them up is a bug and aborts. */
#pragma once

#include <stdint.h>

#include "common/buf.h"

enum metric_id {
#define COUNTER(name, help) M_##name,
#define GAUGE(name, help) M_##name,
#define HISTOGRAM(name, help) M_##name,
#define SIZES(name, help) M_##name,
#define DEPTHS(name, help) M_##name,
#define SECONDS(name, help) M_##name,
#include "common/metrics.def"
#undef COUNTER
#undef GAUGE
#undef HISTOGRAM
#undef SIZES
#undef DEPTHS
#undef SECONDS
    M_COUNT_,
};

typedef struct metric metric_t;

metric_t *metric_get(enum metric_id id, const char *labels); /* labels NULL or text; thread-safe */
void metric_add(metric_t *m, uint64_t n);
void metric_set(metric_t *m, int64_t value); /* of GAUGE and SECONDS */
void metric_gauge_add(metric_t *m, int64_t delta);
void metric_observe_us(metric_t *m, uint64_t us);
void metric_observe(metric_t *m, uint64_t value); /* of SIZES and DEPTHS */
void metric_zero(enum metric_id id);              /* a gauge, with all label sets that it has had */
/* Drops all label sets of a gauge, of whose handles none is kept: the caller sees to that. */
void metric_forget(enum metric_id id);
uint64_t metric_value(const metric_t *m); /* counter or gauge; for tests */

/* What a histogram has counted so far: the difference of two readings is what came between them. */
enum { METRIC_BUCKETS_MAX = 22 };
struct metric_reading {
    uint64_t sum, count;
    uint64_t buckets[METRIC_BUCKETS_MAX];
};
void metric_read(const metric_t *m, struct metric_reading *out);
/* The value that `part` (0 to 1) of what came between is not above, as far as buckets tell: within
 * one it is assumed to be spread evenly; above the last bound it is the last bound.  0 for nothing.
 */
uint64_t metric_quantile(const metric_t *m, const struct metric_reading *from,
                         const struct metric_reading *to, double part);
/* The sum over all label sets that have this text in them; "" for all. */
uint64_t metric_sum(enum metric_id id, const char *labels_part);
void metrics_text(struct buf *out);      /* the whole exposition */
void metrics_text_used(struct buf *out); /* of metrics that this process has used */
void metrics_markdown(struct buf *out);  /* table for docs/ */
