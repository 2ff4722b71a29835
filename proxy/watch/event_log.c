#include "proxy/watch/event_log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"

static const struct {
    const char *name, *level;
} kinds[] = {
#define EVENT(kind, level, meaning) {#kind, #level},
#include "proxy/watch/event_kinds.def"
#undef EVENT
};

const char *event_kind_name(enum event_kind kind)
{
    return kinds[kind].name;
}

const char *event_kind_level(enum event_kind kind)
{
    return kinds[kind].level;
}

/* The event of number n is at n % keep. */
struct event_log {
    char *run;
    size_t keep;
    pthread_mutex_t lock; /* of what follows */
    uint64_t last;
    struct event *events;
};

struct event_log *event_log_new(const char *run, size_t keep)
{
    struct event_log *log = xcalloc(1, sizeof *log);
    log->run = xstrdup(run);
    log->keep = keep > 0 ? keep : 1;
    log->events = xcalloc(log->keep, sizeof log->events[0]);
    pthread_mutex_init(&log->lock, NULL);
    return log;
}

void event_log_free(struct event_log *log)
{
    if (log == NULL)
        return;
    pthread_mutex_destroy(&log->lock);
    free(log->events);
    free(log->run);
    free(log);
}

void event_log_add(struct event_log *log, const struct event *event)
{
    pthread_mutex_lock(&log->lock);
    uint64_t number = ++log->last;
    struct event *place = &log->events[number % log->keep];
    *place = *event;
    place->number = number;
    pthread_mutex_unlock(&log->lock);
}

uint64_t event_log_last(struct event_log *log)
{
    pthread_mutex_lock(&log->lock);
    uint64_t last = log->last;
    pthread_mutex_unlock(&log->lock);
    return last;
}

int event_log_cursor(const struct event_log *log, const char *text, struct event_cursor *out,
                     struct error *err)
{
    *out = (struct event_cursor){.latest = true};
    if (text == NULL || text[0] == '\0')
        return 0;
    const char *dot = strrchr(text, '.');
    uint64_t number = 0;
    if (dot == NULL || parse_u64(dot + 1, &number, NULL) != 0)
        return error_set(err, E_INVALID,
                         "parameter 'after': '%.64s' is no cursor: give 'next' of an earlier reply",
                         text);
    size_t len = (size_t)(dot - text);
    out->anew = strlen(log->run) != len || memcmp(log->run, text, len) != 0;
    out->latest = out->anew;
    out->number = out->anew ? 0 : number;
    return 0;
}

static json_t *event_json(const struct event *e)
{
    json_t *doc = json_pack("{s:I, s:I, s:s, s:s}", "number", (json_int_t)e->number, "at_ms",
                            (json_int_t)e->at_ms, "level", event_kind_level(e->kind), "kind",
                            event_kind_name(e->kind));
    const struct {
        const char *field, *value;
    } about[] = {{"node", e->node}, {"bucket", e->bucket}, {"job", e->job}};
    for (size_t i = 0; i < sizeof about / sizeof about[0]; i++) {
        if (about[i].value[0] != '\0')
            json_object_set_new(doc, about[i].field, json_string_escaped(about[i].value));
    }
    json_object_set_new(doc, "text", json_string_escaped(e->text));
    return doc;
}

static json_t *cursor_json(const struct event_log *log, uint64_t number)
{
    _cleanup_free_ char *text = xprintf("%s.%llu", log->run, (unsigned long long)number);
    return json_string(text);
}

json_t *event_log_page(struct event_log *log, struct event_cursor from, size_t limit)
{
    json_t *list = json_array();
    pthread_mutex_lock(&log->lock);
    uint64_t first = log->last > log->keep ? log->last - log->keep + 1 : 1;
    uint64_t number = from.number < log->last ? from.number : log->last;
    if (from.latest)
        number = log->last > limit + first - 1 ? log->last - limit : first - 1;
    uint64_t missed = number + 1 < first ? first - number - 1 : 0;
    number += missed;
    for (; number < log->last && json_array_size(list) < limit; number++)
        json_array_append_new(list, event_json(&log->events[(number + 1) % log->keep]));
    pthread_mutex_unlock(&log->lock);
    return json_pack("{s:o, s:o, s:b, s:I}", "events", list, "next", cursor_json(log, number),
                     "anew", (int)from.anew, "missed", (json_int_t)missed);
}
