#include "common/metrics.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/mem.h"

/* A histogram's bounds are 2^6 us (64 us) to 2^26 us (67 s), and one more for +Inf. */
enum { FIRST_BOUND = 6, LAST_BOUND = 26, BOUNDS = LAST_BOUND - FIRST_BOUND + 1 };

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

static const struct metric_row {
    const char *name;
    const char *help;
    enum metric_type type;
} metric_rows[] = {
#define COUNTER(name, help) {#name, help, METRIC_COUNTER},
#define GAUGE(name, help) {#name, help, METRIC_GAUGE},
#define HISTOGRAM(name, help) {#name, help, METRIC_HISTOGRAM},
#include "common/metrics.def"
#undef COUNTER
#undef GAUGE
#undef HISTOGRAM
};

static const char *const metric_type_names[] = {"counter", "gauge", "histogram"};

/* The values of one metric with one label set.  A struct has its own cache line, so that two
 * metrics that two threads count do not slow each other down. */
struct metric {
    _Alignas(64) _Atomic uint64_t value; /* counter; gauge as two's complement; sum of us */
    struct metric *next;
    char *labels; /* "" or text */
    enum metric_type type;
    _Atomic uint64_t buckets[]; /* of a histogram: BOUNDS + 1, each counting its own interval */
};

/* Metrics are found again by their handle and live as long as the process.  The lists only grow,
 * newest last; links are read and written under the lock. */
static pthread_mutex_t metrics_lock = PTHREAD_MUTEX_INITIALIZER;
static struct metric *metrics_heads[M_COUNT_];

static struct metric *metric_new(enum metric_type type, const char *labels)
{
    size_t buckets = type == METRIC_HISTOGRAM ? BOUNDS + 1 : 0;
    size_t size = sizeof(struct metric) + buckets * sizeof(_Atomic uint64_t);
    size = (size + 63) / 64 * 64;
    struct metric *m = aligned_alloc(64, size);
    if (m == NULL)
        abort();
    memset(m, 0, size);
    m->labels = xstrdup(labels);
    m->type = type;
    return m;
}

metric_t *metric_get(enum metric_id id, const char *labels)
{
    const char *wanted = labels != NULL ? labels : "";
    pthread_mutex_lock(&metrics_lock);
    struct metric **link = &metrics_heads[id];
    while (*link != NULL && strcmp((*link)->labels, wanted) != 0)
        link = &(*link)->next;
    if (*link == NULL)
        *link = metric_new(metric_rows[id].type, wanted);
    struct metric *found = *link;
    pthread_mutex_unlock(&metrics_lock);
    return found;
}

void metric_add(metric_t *m, uint64_t n)
{
    assert(m->type == METRIC_COUNTER);
    atomic_fetch_add_explicit(&m->value, n, memory_order_relaxed);
}

void metric_set(metric_t *m, int64_t value)
{
    assert(m->type == METRIC_GAUGE);
    atomic_store_explicit(&m->value, (uint64_t)value, memory_order_relaxed);
}

void metric_gauge_add(metric_t *m, int64_t delta)
{
    assert(m->type == METRIC_GAUGE);
    atomic_fetch_add_explicit(&m->value, (uint64_t)delta, memory_order_relaxed);
}

/* The first bound that is not below us. */
static unsigned bucket_of(uint64_t us)
{
    if (us <= 1u << FIRST_BOUND)
        return 0;
    unsigned log2_up = 64 - (unsigned)__builtin_clzll(us - 1);
    return log2_up <= LAST_BOUND ? log2_up - FIRST_BOUND : BOUNDS;
}

void metric_observe_us(metric_t *m, uint64_t us)
{
    assert(m->type == METRIC_HISTOGRAM);
    atomic_fetch_add_explicit(&m->buckets[bucket_of(us)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->value, us, memory_order_relaxed);
}

uint64_t metric_value(const metric_t *m)
{
    return atomic_load_explicit(&m->value, memory_order_relaxed);
}

static void put_seconds(struct buf *out, uint64_t us)
{
    buf_printf(out, "%llu.%06llu", (unsigned long long)(us / 1000000),
               (unsigned long long)(us % 1000000));
}

static void put_labels(struct buf *out, const char *labels)
{
    if (labels[0] != '\0')
        buf_printf(out, "{%s}", labels);
}

static void put_bucket(struct buf *out, const char *name, const char *labels, unsigned i,
                       uint64_t cumulated)
{
    buf_printf(out, "dfc_%s_bucket{%s%sle=\"", name, labels, labels[0] != '\0' ? "," : "");
    if (i < BOUNDS)
        put_seconds(out, 1ull << (FIRST_BOUND + i));
    else
        buf_puts(out, "+Inf");
    buf_printf(out, "\"} %llu\n", (unsigned long long)cumulated);
}

/* The count is taken as the sum of the buckets, so that it agrees with +Inf while others count. */
static void put_histogram(struct buf *out, const char *name, const struct metric *m)
{
    uint64_t cumulated = 0;
    for (unsigned i = 0; i <= BOUNDS; i++) {
        cumulated += atomic_load_explicit(&m->buckets[i], memory_order_relaxed);
        put_bucket(out, name, m->labels, i, cumulated);
    }
    buf_printf(out, "dfc_%s_sum", name);
    put_labels(out, m->labels);
    buf_putc(out, ' ');
    put_seconds(out, metric_value(m));
    buf_printf(out, "\ndfc_%s_count", name);
    put_labels(out, m->labels);
    buf_printf(out, " %llu\n", (unsigned long long)cumulated);
}

static void put_scalar(struct buf *out, const char *name, const struct metric *m)
{
    uint64_t value = metric_value(m);
    buf_printf(out, "dfc_%s", name);
    put_labels(out, m->labels);
    if (m->type == METRIC_GAUGE)
        buf_printf(out, " %lld\n", (long long)value);
    else
        buf_printf(out, " %llu\n", (unsigned long long)value);
}

static void put_metric(struct buf *out, const struct metric_row *row, const struct metric *first)
{
    buf_printf(out, "# HELP dfc_%s %s\n", row->name, row->help);
    buf_printf(out, "# TYPE dfc_%s %s\n", row->name, metric_type_names[row->type]);
    for (const struct metric *m = first; m != NULL; m = m->next) {
        if (row->type == METRIC_HISTOGRAM)
            put_histogram(out, row->name, m);
        else
            put_scalar(out, row->name, m);
    }
}

void metrics_text(struct buf *out)
{
    pthread_mutex_lock(&metrics_lock);
    for (int id = 0; id < M_COUNT_; id++)
        put_metric(out, &metric_rows[id], metrics_heads[id]);
    pthread_mutex_unlock(&metrics_lock);
}
