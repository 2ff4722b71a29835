#include "plog/testing/sim_actor.h"

#include <string.h>

#include "plog/flatten.h"

/* The planned segments, each begun and stored. */
static int put_segments(struct actor *a, const struct plog_store *st, struct sim *s)
{
    int code = 0;
    for (size_t i = 0; i < a->plan.count && code == 0; i++) {
        struct plog_segment segment = {.end = 0};
        struct plog_segment_name name;
        char text[PLOG_NAME_MAX], etag[PLOG_ETAG_MAX];
        code = plog_session_begin(st, &a->session, &name, NULL);
        for (uint8_t w = a->plan.first[i]; code == 0 && w < a->plan.first[i + 1]; w++) {
            struct sim_write *write = &s->writes[w];
            uint8_t bytes[CELLS];
            memset(bytes, w, sizeof bytes);
            plog_segment_write(&segment, bytes, write->length, write->offset);
            write->key =
                (struct key){name.epoch, name.writer, name.n, (uint32_t)(w - a->plan.first[i])};
        }
        if (code == 0) {
            plog_segment_seal(&segment, &name);
            plog_name_segment(text, a->session.id, &name);
            code = st->put(st->ctx, text, segment.bytes.data, segment.bytes.len, NULL, etag, NULL);
        }
        plog_segment_done(&segment);
    }
    return code;
}

uint8_t sim_shown_at(struct sim *s, struct actor *a, uint64_t cell)
{
    struct plog_extents e;
    uint8_t byte = 0;
    plog_map_paint(a->look.map, cell, cell + 1, &e);
    if (e.count > 0) {
        char name[PLOG_NAME_MAX];
        plog_name_segment(name, a->look.head.id,
                          &plog_map_segment(a->look.map, e.items[0].segment)->name);
        const struct sim_object *o = sim_store_find(&s->store, name);
        byte = o != NULL ? (uint8_t)o->body.data[e.items[0].physical] : 0;
    }
    plog_extents_done(&e);
    return byte;
}

static int flatten(struct actor *a, const struct plog_store *st, struct sim *s)
{
    uint8_t bytes[CELLS];
    char etag[PLOG_ETAG_MAX];
    int code = plog_flatten_begin(st, SIM_OBJECT, true, &a->look, NULL);
    if (code != 0)
        return code;
    const uint64_t size = plog_map_size(a->look.map);
    for (uint64_t i = 0; i < size; i++)
        bytes[i] = sim_shown_at(s, a, i);
    code = st->put(st->ctx, SIM_OBJECT, bytes, size, a->look.etag, etag, NULL);
    if (code == 0)
        code = plog_flatten_end(st, a->look.head.id, NULL);
    plog_look_done(&a->look);
    return code;
}

int sim_run(struct actor *a, struct sim *s)
{
    const struct plog_store st = sim_store_of(&a->program);
    const struct plog_open create = {.create = true};
    _cleanup_plog_watch_ struct plog_watch watch = {.count = 0};
    enum plog_merge_result merged;
    char id[PLOG_ID_CHARS + 1];
    a->session = a->before;
    switch (a->program.role) {
    case SIM_READ:
        return plog_look(&st, SIM_OBJECT, &a->look, NULL);
    case SIM_MERGE:
        return plog_merge(&st, SIM_OBJECT, &watch, s->store.now, a->lease_ms, &merged, NULL);
    case SIM_OTHER:
        return a->plan.count == 0 ? plog_head_replace(&st, SIM_OBJECT, NULL, id, NULL)
                                  : plog_unlink(&st, SIM_OBJECT, NULL);
    case SIM_FLATTEN:
        return flatten(a, &st, s);
    case SIM_SHARE:
        return plog_session_share(&st, &a->session, &a->token, NULL);
    case SIM_WRITE:
    case SIM_CLOSE:
        break;
    }
    if (!a->is_open && a->opens_token) {
        plog_session_open_token(&st, &s->token, &a->session);
        a->session.object = SIM_OBJECT;
        return 0;
    }
    if (!a->is_open)
        return plog_session_open(&st, SIM_OBJECT, &create, &a->session, NULL);
    const int code = put_segments(a, &st, s);
    if (code != 0)
        return code;
    return a->program.role == SIM_WRITE ? plog_session_sync(&st, &a->session, NULL)
                                        : plog_session_close(&st, &a->session, NULL);
}
