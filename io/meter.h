/* What is measured of one disk: how long its operations take, how many bytes they move, how many
 * are under way.  One table in /metrics (mountpath_io_seconds, mountpath_io_bytes,
 * mountpath_queue_depth, mountpath_queue, mountpath_sent_bytes_total), and, for people, the last
 * half to whole minute as rates and quantiles.
 *
 *   meter_enter()   something that has to do with the disk is asked for: it is in the queue
 *   meter_count()   one operation has ended
 *   meter_leave()   and what was asked for is through
 *
 * An operation costs two looks at the clock and some relaxed additions; there is no lock but in
 * meter_look() and meter_load().  Any thread may call anything.  A NULL meter measures nothing. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum meter_op { METER_OPEN, METER_READ, METER_WRITE, METER_SYNC, METER_OPS };

struct meter;

/* `labels` as mountpath_labels() makes them. */
struct meter *meter_new(const char *labels);
struct meter *meter_ref(struct meter *m);
void meter_unref(struct meter *m);

void meter_enter(struct meter *m);
void meter_leave(struct meter *m);
/* `began_us` is of clock_us(); `bytes` counts for reads and writes. */
void meter_count(struct meter *m, enum meter_op op, uint64_t began_us, uint64_t bytes);
void meter_sent(struct meter *m, uint64_t bytes);

/* What is under way now; 0 of NULL.  Quick. */
uint64_t meter_queue(const struct meter *m);

const char *meter_op_name(enum meter_op op);

/* Of the time since the last look but one, which lies METER_WINDOW_MS to twice that back where
 * somebody looks often enough. */
enum { METER_WINDOW_MS = 30000 };
struct meter_load {
    uint64_t window_ms;
    uint64_t queue; /* now */
    uint64_t sent_bytes;
    struct {
        uint64_t count, bytes, p50_us, p99_us;
    } ops[METER_OPS];
};
void meter_look(struct meter *m, uint64_t now_ms);
void meter_load(struct meter *m, uint64_t now_ms, struct meter_load *out);
