#include "sort/task/window.h"

#include "common/mem.h"

void window_init(struct window *w, struct sort_context *c)
{
    *w = (struct window){
        .c = c,
        .records = xcalloc(RECORDS_MAX, sizeof *w->records),
        .refs = xcalloc(RECORDS_MAX, sizeof *w->refs),
        .streams = xcalloc(c->participants, sizeof *w->streams),
    };
}

void window_done(struct window *w)
{
    free(w->streams);
    free(w->refs);
    free(w->records);
}

static int read_records(struct window *w, struct decoder *order, uint64_t left, struct error *err)
{
    w->count = 0;
    while (w->count < left && w->count < RECORDS_MAX) {
        int rc = order_get_record(order, w->c->participants, &w->records[w->count], err);
        if (rc != 0)
            return rc;
        w->count++;
    }
    return 0;
}

/* Asks `source` for its part of the window, if it has one. */
static int stream_open(struct window *w, unsigned source, enum records_form form, struct error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct order_record *r = &w->records[i];
        if (r->source == source)
            w->refs[count++] = (struct record_ref){.shard = r->shard, .position = r->position};
    }
    if (count == 0)
        return 0;
    _cleanup_(buf_done)
    struct buf request = BUF_INIT;
    records_request(w->c->job, form, w->refs, count, &request);
    struct bpipe *pipe = NULL;
    int rc =
        w->c->env->fetch_records(w->c->env->ctx, source, request.data, request.len, &pipe, err);
    if (rc != 0)
        return error_wrap(err, "ask target '%s' for records", sort_target_name(w->c, source));
    w->streams[source] = link_reader(w->c->links, pipe);
    return 0;
}

int window_begin(struct window *w, struct decoder *order, uint64_t left, enum records_form form,
                 struct error *err)
{
    int rc = read_records(w, order, left, err);
    for (unsigned i = 0; rc == 0 && i < w->c->participants; i++) {
        if (i != w->c->self)
            rc = stream_open(w, i, form, err);
    }
    return rc;
}

struct source window_stream(const struct window *w, unsigned source)
{
    return source_link(w->streams[source]);
}

int window_stream_error(const struct window *w, unsigned source, struct error *err)
{
    return error_wrap(err, "records from target '%s'", sort_target_name(w->c, source));
}

void window_drop(struct window *w)
{
    for (unsigned i = 0; i < w->c->participants; i++) {
        link_free(w->streams[i]);
        w->streams[i] = NULL;
    }
}

int window_end(struct window *w, struct error *err)
{
    for (unsigned i = 0; i < w->c->participants; i++) {
        if (w->streams[i] == NULL)
            continue;
        char more;
        struct source stream = window_stream(w, i);
        ssize_t n = stream.read(stream.ctx, &more, 1, err);
        if (n < 0)
            return window_stream_error(w, i, err);
        if (n > 0)
            return error_set(err, E_LENGTH, "target '%s' sends more than it was asked for",
                             sort_target_name(w->c, i));
    }
    window_drop(w);
    return 0;
}
