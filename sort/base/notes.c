#include "sort/base/notes.h"

#include <stdarg.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonx.h"

void notes_init(struct notes *n)
{
    *n = (struct notes){0};
    pthread_mutex_init(&n->lock, NULL);
}

void notes_done(struct notes *n)
{
    for (size_t i = 0; i < NOTES_MAX; i++)
        free(n->texts[i]);
    pthread_mutex_destroy(&n->lock);
}

void notes_add(struct notes *n, const char *fmt, ...)
{
    pthread_mutex_lock(&n->lock);
    if (n->count < NOTES_MAX) {
        struct buf text = BUF_INIT;
        va_list ap;
        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        n->texts[n->count] = buf_steal(&text);
    }
    n->count++;
    pthread_mutex_unlock(&n->lock);
}

uint64_t notes_count(struct notes *n)
{
    pthread_mutex_lock(&n->lock);
    uint64_t count = n->count;
    pthread_mutex_unlock(&n->lock);
    return count;
}

void notes_cut(struct notes *n, uint64_t count)
{
    pthread_mutex_lock(&n->lock);
    for (uint64_t i = count; i < n->count && i < NOTES_MAX; i++) {
        free(n->texts[i]);
        n->texts[i] = NULL;
    }
    n->count = count < n->count ? count : n->count;
    pthread_mutex_unlock(&n->lock);
}

json_t *notes_json(struct notes *n)
{
    json_t *list = json_array();
    pthread_mutex_lock(&n->lock);
    for (uint64_t i = 0; i < n->count && i < NOTES_MAX; i++)
        json_array_append_new(list, json_string_escaped(n->texts[i]));
    if (n->count > NOTES_MAX) {
        char more[64];
        snprintf(more, sizeof more, "and %llu more warnings",
                 (unsigned long long)(n->count - NOTES_MAX));
        json_array_append_new(list, json_string(more));
    }
    pthread_mutex_unlock(&n->lock);
    return list;
}
