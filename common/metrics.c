#include "common/metrics.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/mem.h"

enum metric_type {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_HISTOGRAM,
    METRIC_SIZES,
    METRIC_DEPTHS,
    METRIC_SECONDS
};

/* A histogram's bounds: 2^first, and 2^step times that, and so on; +Inf is one more. */
static const struct metric_scale {
    unsigned first, step, bounds;
    bool seconds; /* counted in us */
} scales[] = {
    [METRIC_COUNTER] = {0},
    [METRIC_GAUGE] = {0},
    [METRIC_HISTOGRAM] = {.first = 6, .step = 1, .bounds = 21, .seconds = true},
    [METRIC_SIZES] = {.first = 10, .step = 2, .bounds = 10},
    [METRIC_DEPTHS] = {.first = 0, .step = 1, .bounds = 11},
    [METRIC_SECONDS] = {.seconds = true},
};

static const struct metric_row {
    const char *name;
    const char *help;
    enum metric_type type;
} metric_rows[] = {
#define COUNTER(name, help) {#name, help, METRIC_COUNTER},
#define GAUGE(name, help) {#name, help, METRIC_GAUGE},
#define HISTOGRAM(name, help) {#name, help, METRIC_HISTOGRAM},
#define SIZES(name, help) {#name, help, METRIC_SIZES},
#define DEPTHS(name, help) {#name, help, METRIC_DEPTHS},
#define SECONDS(name, help) {#name, help, METRIC_SECONDS},
#include "common/metrics.def"
#undef COUNTER
#undef GAUGE
#undef HISTOGRAM
#undef SIZES
#undef DEPTHS
#undef SECONDS
};

static const char *const metric_type_names[] = {"counter",   "gauge",     "histogram",
                                                "histogram", "histogram", "counter"};

/* The values of one metric with one label set.  A struct has its own cache line, so that two
 * metrics that two threads count do not slow each other down. */
struct metric {
    _Alignas(64) _Atomic uint64_t value; /* counter; gauge as two's complement; a histogram's sum */
    struct metric *next;
    char *labels; /* "" or text */
    enum metric_type type;
    _Atomic uint64_t buckets[]; /* of a histogram: bounds + 1, each counting its own interval */
};

/* Metrics are found again by their handle and live as long as the process.  The lists only grow,
 * newest last; links are read and written under the lock. */
static pthread_mutex_t metrics_lock = PTHREAD_MUTEX_INITIALIZER;
static struct metric *metrics_heads[M_COUNT_];

static bool is_histogram(enum metric_type type)
{
    return scales[type].bounds > 0;
}

static struct metric *metric_new(enum metric_type type, const char *labels)
{
    size_t buckets = is_histogram(type) ? scales[type].bounds + 1 : 0;
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
    assert(m->type == METRIC_GAUGE || m->type == METRIC_SECONDS);
    atomic_store_explicit(&m->value, (uint64_t)value, memory_order_relaxed);
}

void metric_gauge_add(metric_t *m, int64_t delta)
{
    assert(m->type == METRIC_GAUGE);
    atomic_fetch_add_explicit(&m->value, (uint64_t)delta, memory_order_relaxed);
}

void metric_zero(enum metric_id id)
{
    assert(metric_rows[id].type == METRIC_GAUGE);
    pthread_mutex_lock(&metrics_lock);
    for (struct metric *m = metrics_heads[id]; m != NULL; m = m->next)
        atomic_store_explicit(&m->value, 0, memory_order_relaxed);
    pthread_mutex_unlock(&metrics_lock);
}

void metric_forget(enum metric_id id)
{
    assert(metric_rows[id].type == METRIC_GAUGE);
    pthread_mutex_lock(&metrics_lock);
    for (struct metric *m; (m = metrics_heads[id]) != NULL;) {
        metrics_heads[id] = m->next;
        free(m->labels);
        free(m);
    }
    pthread_mutex_unlock(&metrics_lock);
}

static uint64_t bound_at(const struct metric_scale *scale, unsigned i)
{
    return 1ull << (scale->first + scale->step * i);
}

/* The first bound that is not below the value. */
static unsigned bucket_of(const struct metric_scale *scale, uint64_t value)
{
    if (value <= 1ull << scale->first)
        return 0;
    unsigned log2_up = 64 - (unsigned)__builtin_clzll(value - 1);
    unsigned i = (log2_up - scale->first + scale->step - 1) / scale->step;
    return i < scale->bounds ? i : scale->bounds;
}

static void observe(metric_t *m, uint64_t value)
{
    unsigned bucket = bucket_of(&scales[m->type], value);
    atomic_fetch_add_explicit(&m->buckets[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->value, value, memory_order_relaxed);
}

void metric_observe_us(metric_t *m, uint64_t us)
{
    assert(m->type == METRIC_HISTOGRAM);
    observe(m, us);
}

void metric_observe(metric_t *m, uint64_t value)
{
    assert(m->type == METRIC_SIZES || m->type == METRIC_DEPTHS);
    observe(m, value);
}

uint64_t metric_value(const metric_t *m)
{
    return atomic_load_explicit(&m->value, memory_order_relaxed);
}

uint64_t metric_sum(enum metric_id id, const char *labels_part)
{
    uint64_t sum = 0;
    pthread_mutex_lock(&metrics_lock);
    for (const struct metric *m = metrics_heads[id]; m != NULL; m = m->next) {
        if (strstr(m->labels, labels_part) != NULL)
            sum += metric_value(m);
    }
    pthread_mutex_unlock(&metrics_lock);
    return sum;
}

/* --- readings --------------------------------------------------------------------------------- */

_Static_assert(METRIC_BUCKETS_MAX >= 22, "a bucket for each bound of a duration, and one more");

void metric_read(const metric_t *m, struct metric_reading *out)
{
    *out = (struct metric_reading){.sum = metric_value(m)};
    for (unsigned i = 0; i <= scales[m->type].bounds; i++) {
        out->buckets[i] = atomic_load_explicit(&m->buckets[i], memory_order_relaxed);
        out->count += out->buckets[i];
    }
}

uint64_t metric_quantile(const metric_t *m, const struct metric_reading *from,
                         const struct metric_reading *to, double part)
{
    const struct metric_scale *scale = &scales[m->type];
    double rank = part * (double)(to->count - from->count), below = 0;
    for (unsigned i = 0; i < scale->bounds; i++) {
        double here = (double)(to->buckets[i] - from->buckets[i]);
        if (here > 0 && below + here >= rank) {
            double low = i > 0 ? (double)bound_at(scale, i - 1) : 0;
            return (uint64_t)(low + ((double)bound_at(scale, i) - low) * (rank - below) / here);
        }
        below += here;
    }
    return to->count > from->count ? bound_at(scale, scale->bounds - 1) : 0;
}

/* --- text ------------------------------------------------------------------------------------- */

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

/* What a name is shown with in front. */
static const char *prefix_of(const char *name)
{
    return strncmp(name, "process_", strlen("process_")) == 0 ? "" : "dfc_";
}

static void put_value(struct buf *out, const struct metric *m, uint64_t value)
{
    if (scales[m->type].seconds)
        put_seconds(out, value);
    else
        buf_printf(out, "%llu", (unsigned long long)value);
}

static void put_bucket(struct buf *out, const char *name, const struct metric *m, unsigned i,
                       uint64_t cumulated)
{
    const struct metric_scale *scale = &scales[m->type];
    buf_printf(out, "dfc_%s_bucket{%s%sle=\"", name, m->labels, m->labels[0] != '\0' ? "," : "");
    if (i < scale->bounds)
        put_value(out, m, bound_at(scale, i));
    else
        buf_puts(out, "+Inf");
    buf_printf(out, "\"} %llu\n", (unsigned long long)cumulated);
}

/* The count is taken as the sum of the buckets, so that it agrees with +Inf while others count. */
static void put_histogram(struct buf *out, const char *name, const struct metric *m)
{
    uint64_t cumulated = 0;
    for (unsigned i = 0; i <= scales[m->type].bounds; i++) {
        cumulated += atomic_load_explicit(&m->buckets[i], memory_order_relaxed);
        put_bucket(out, name, m, i, cumulated);
    }
    buf_printf(out, "dfc_%s_sum", name);
    put_labels(out, m->labels);
    buf_putc(out, ' ');
    put_value(out, m, metric_value(m));
    buf_printf(out, "\ndfc_%s_count", name);
    put_labels(out, m->labels);
    buf_printf(out, " %llu\n", (unsigned long long)cumulated);
}

static void put_scalar(struct buf *out, const char *name, const struct metric *m)
{
    uint64_t value = metric_value(m);
    buf_printf(out, "%s%s", prefix_of(name), name);
    put_labels(out, m->labels);
    buf_putc(out, ' ');
    if (m->type == METRIC_GAUGE)
        buf_printf(out, "%lld", (long long)value);
    else
        put_value(out, m, value);
    buf_putc(out, '\n');
}

static void put_metric(struct buf *out, const struct metric_row *row, const struct metric *first)
{
    const char *prefix = prefix_of(row->name);
    buf_printf(out, "# HELP %s%s %s\n", prefix, row->name, row->help);
    buf_printf(out, "# TYPE %s%s %s\n", prefix, row->name, metric_type_names[row->type]);
    for (const struct metric *m = first; m != NULL; m = m->next) {
        if (is_histogram(row->type))
            put_histogram(out, row->name, m);
        else
            put_scalar(out, row->name, m);
    }
}

static void put_metrics(struct buf *out, bool unused)
{
    pthread_mutex_lock(&metrics_lock);
    for (int id = 0; id < M_COUNT_; id++) {
        if (unused || metrics_heads[id] != NULL)
            put_metric(out, &metric_rows[id], metrics_heads[id]);
    }
    pthread_mutex_unlock(&metrics_lock);
}

void metrics_text(struct buf *out)
{
    put_metrics(out, true);
}

void metrics_text_used(struct buf *out)
{
    put_metrics(out, false);
}

void metrics_markdown(struct buf *out)
{
    buf_puts(out, "| metric | type | meaning |\n|---|---|---|\n");
    for (int id = 0; id < M_COUNT_; id++) {
        const struct metric_row *row = &metric_rows[id];
        buf_printf(out, "| `%s%s` | %s |", prefix_of(row->name), row->name,
                   metric_type_names[row->type]);
        buf_put_cell(out, row->help, "");
        buf_putc(out, '\n');
    }
}
