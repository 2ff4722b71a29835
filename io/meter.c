#include "io/meter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/metrics.h"

static const struct {
    const char *name;
    bool moves; /* bytes */
} rows[METER_OPS] = {
    [METER_OPEN] = {"open", false},
    [METER_READ] = {"read", true},
    [METER_WRITE] = {"write", true},
    [METER_SYNC] = {"sync", false},
};

/* Everything at one moment. */
struct meter_mark {
    uint64_t at_ms;
    uint64_t sent_bytes;
    struct metric_reading seconds[METER_OPS], bytes[METER_OPS];
};

struct meter {
    atomic_uint refs;
    struct {
        metric_t *seconds, *bytes; /* bytes: NULL where it moves none */
    } ops[METER_OPS];
    metric_t *depth, *queue, *sent;
    pthread_mutex_t lock; /* of what follows */
    struct meter_mark older, newer;
};

const char *meter_op_name(enum meter_op op)
{
    return rows[op].name;
}

static void take_mark(const struct meter *m, uint64_t now_ms, struct meter_mark *out)
{
    *out = (struct meter_mark){.at_ms = now_ms, .sent_bytes = metric_value(m->sent)};
    for (size_t i = 0; i < METER_OPS; i++) {
        metric_read(m->ops[i].seconds, &out->seconds[i]);
        if (m->ops[i].bytes != NULL)
            metric_read(m->ops[i].bytes, &out->bytes[i]);
    }
}

static void meter_find_op(struct meter *m, const char *labels, enum meter_op op)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_printf(&text, "%s,op=\"%s\"", labels, rows[op].name);
    m->ops[op].seconds = metric_get(M_mountpath_io_seconds, buf_str(&text));
    if (rows[op].moves)
        m->ops[op].bytes = metric_get(M_mountpath_io_bytes, buf_str(&text));
}

struct meter *meter_new(const char *labels)
{
    struct meter *m = xcalloc(1, sizeof *m);
    atomic_init(&m->refs, 1);
    pthread_mutex_init(&m->lock, NULL);
    for (size_t i = 0; i < METER_OPS; i++)
        meter_find_op(m, labels, (enum meter_op)i);
    m->depth = metric_get(M_mountpath_queue_depth, labels);
    m->queue = metric_get(M_mountpath_queue, labels);
    m->sent = metric_get(M_mountpath_sent_bytes_total, labels);
    take_mark(m, clock_ms(), &m->older);
    m->newer = m->older;
    return m;
}

struct meter *meter_ref(struct meter *m)
{
    if (m != NULL)
        atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void meter_unref(struct meter *m)
{
    if (m == NULL || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* --- measuring -------------------------------------------------------------------------------- */

void meter_enter(struct meter *m)
{
    if (m == NULL)
        return;
    metric_gauge_add(m->queue, 1);
    int64_t depth = (int64_t)metric_value(m->queue);
    metric_observe(m->depth, depth > 0 ? (uint64_t)depth : 1);
}

void meter_leave(struct meter *m)
{
    if (m != NULL)
        metric_gauge_add(m->queue, -1);
}

void meter_count(struct meter *m, enum meter_op op, uint64_t began_us, uint64_t bytes)
{
    if (m == NULL)
        return;
    metric_observe_us(m->ops[op].seconds, clock_us() - began_us);
    if (m->ops[op].bytes != NULL)
        metric_observe(m->ops[op].bytes, bytes);
}

void meter_sent(struct meter *m, uint64_t bytes)
{
    if (m != NULL)
        metric_add(m->sent, bytes);
}

uint64_t meter_queue(const struct meter *m)
{
    int64_t now = m != NULL ? (int64_t)metric_value(m->queue) : 0;
    return now > 0 ? (uint64_t)now : 0;
}

/* --- looking ---------------------------------------------------------------------------------- */

void meter_look(struct meter *m, uint64_t now_ms)
{
    pthread_mutex_lock(&m->lock);
    if (now_ms - m->newer.at_ms >= METER_WINDOW_MS) {
        m->older = m->newer;
        take_mark(m, now_ms, &m->newer);
    }
    pthread_mutex_unlock(&m->lock);
}

void meter_load(struct meter *m, uint64_t now_ms, struct meter_load *out)
{
    struct meter_mark now;
    pthread_mutex_lock(&m->lock);
    take_mark(m, now_ms, &now);
    const struct meter_mark *from = &m->older;
    *out = (struct meter_load){.window_ms = now_ms - from->at_ms,
                               .queue = metric_value(m->queue),
                               .sent_bytes = now.sent_bytes - from->sent_bytes};
    for (size_t i = 0; i < METER_OPS; i++) {
        const struct metric_reading *a = &from->seconds[i], *b = &now.seconds[i];
        out->ops[i].count = b->count - a->count;
        out->ops[i].bytes = now.bytes[i].sum - from->bytes[i].sum;
        out->ops[i].p50_us = metric_quantile(m->ops[i].seconds, a, b, 0.50);
        out->ops[i].p99_us = metric_quantile(m->ops[i].seconds, a, b, 0.99);
    }
    pthread_mutex_unlock(&m->lock);
}
