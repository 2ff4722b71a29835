#include "plog/attributes.h"

enum { TRIES = 32 }; /* of what another client can overtake */

static bool is_overtaken(int code)
{
    return code == E_PRECONDITION || code == E_NOT_FOUND;
}

int plog_attributes(const struct plog_store *st, const char *object, const struct plog_change *c,
                    struct error *err)
{
    struct plog_head head;
    char etag[PLOG_ETAG_MAX];
    int code = 0;
    for (int i = 0; i < TRIES; i++) {
        code = plog_head_read(st, object, &head, etag, err);
        if (code != 0)
            return code;
        head.mode = c->sets_mode ? c->mode : head.mode;
        head.uid = c->sets_uid ? c->uid : head.uid;
        head.gid = c->sets_gid ? c->gid : head.gid;
        head.mtime_ms = c->sets_mtime ? c->mtime_ms : head.mtime_ms;
        code = plog_head_put(st, object, &head, etag, err);
        if (!is_overtaken(code))
            return code;
    }
    return code;
}

int plog_replace_object(const struct plog_store *st, const char *object,
                        const struct plog_open *how, struct error *err)
{
    struct plog_head head;
    char etag[PLOG_ETAG_MAX];
    int code = 0;
    for (int i = 0; i < TRIES; i++) {
        code = plog_head_read(st, object, &head, etag, err);
        if (code == E_NOT_FOUND || code == 0)
            return 0;
        if (code != E_INVALID)
            return code;
        head = (struct plog_head){.mode = how->mode, .uid = how->uid, .gid = how->gid};
        plog_head_new(st, &head);
        code = plog_head_put(st, object, &head, etag, err);
        if (!is_overtaken(code))
            return code;
    }
    return code;
}
