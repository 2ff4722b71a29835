/* The last events of the cluster, as far as this process has seen them.  In memory: a restart
 * begins anew.
 *
 *     event_log_add(log, &event)                  the oldest one makes room
 *     event_log_page(log, cursor, limit)          those later than the cursor
 *
 * A cursor is "RUN.NUMBER": the run of the process that gave it, and its last event.  Without one,
 * and with that of another run, a reader gets the latest events.  Any thread. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

enum event_kind {
#define EVENT(kind, level, meaning) EVENT_##kind,
#include "proxy/watch/event_kinds.def"
#undef EVENT
    EVENT_KINDS,
};

enum { EVENT_WORD_MAX = 64, EVENT_TEXT_MAX = 240 };

struct event {
    uint64_t number; /* from 1; event_log_add() gives it */
    int64_t at_ms;   /* wall clock of this proxy */
    enum event_kind kind;
    char node[EVENT_WORD_MAX]; /* what it is about; "": none */
    char bucket[EVENT_WORD_MAX];
    char job[EVENT_WORD_MAX];
    char text[EVENT_TEXT_MAX]; /* a sentence; a longer one is cut */
};

const char *event_kind_name(enum event_kind kind);
const char *event_kind_level(enum event_kind kind);

struct event_log;

struct event_log *event_log_new(const char *run, size_t keep);
void event_log_free(struct event_log *log); /* NULL is fine */
DEFINE_CLEANUP(struct event_log, event_log_free);
void event_log_add(struct event_log *log, const struct event *event);
uint64_t event_log_last(struct event_log *log); /* number of the last event; 0: none */

/* Where a reader is.  E_INVALID: `text` is no cursor; NULL and "" are none. */
struct event_cursor {
    uint64_t number;
    bool latest; /* none, or that of another run … */
    bool anew;   /* … which it is */
};
int event_log_cursor(const struct event_log *log, const char *text, struct event_cursor *out,
                     struct error *err);
/* At most `limit` events, the oldest first: the next ones after the cursor, or the latest.
 *
 *     {"events": [{"number", "at_ms", "level", "kind", "node", "bucket", "job", "text"}],
 *      "next": cursor, "anew": the cursor was of another run, "missed": events that made room} */
json_t *event_log_page(struct event_log *log, struct event_cursor from, size_t limit);
