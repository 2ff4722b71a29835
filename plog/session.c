#include "plog/session.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

enum { TRIES = 32 }; /* of what another client can overtake */

void plog_names_add(struct plog_names *n, const char *name)
{
    if (n->count == n->room) {
        n->room = n->room > 0 ? n->room * 2 : 16;
        n->items = xrealloc(n->items, n->room * sizeof *n->items);
    }
    n->items[n->count++] = xstrdup(name);
}

void plog_names_done(struct plog_names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->items[i]);
    free(n->items);
    *n = (struct plog_names){.count = 0};
}

/* --- the head --------------------------------------------------------------------------------- */

int plog_head_read(const struct plog_store *st, const char *object, struct plog_head *head,
                   char etag[static PLOG_ETAG_MAX], struct error *err)
{
    _cleanup_buf_ struct buf body = BUF_INIT;
    int code = st->get(st->ctx, object, &body, etag, err);
    if (code == 0)
        code = plog_head_parse(buf_str(&body), body.len, head, err);
    if (code != 0)
        error_wrap(err, "'%s'", object);
    return code;
}

void plog_head_new(const struct plog_store *st, struct plog_head *head)
{
    head->created_ms = head->mtime_ms = st->now_ms(st->ctx);
    snprintf(head->id, sizeof head->id, "%016llx%016llx", (unsigned long long)st->random(st->ctx),
             (unsigned long long)st->random(st->ctx));
    head->epoch = head->size = head->bytes = head->merged = head->nonce = head->mark = 0;
}

int plog_head_put(const struct plog_store *st, const char *object, const struct plog_head *head,
                  const char *if_match, struct error *err)
{
    _cleanup_buf_ struct buf body = BUF_INIT;
    char etag[PLOG_ETAG_MAX];
    plog_head_print(head, &body);
    return st->put(st->ctx, object, body.data, body.len, if_match, etag, err);
}

static int create(const struct plog_store *st, const char *object, const struct plog_open *how,
                  struct plog_head *head, struct error *err)
{
    char etag[PLOG_ETAG_MAX], id[PLOG_ID_CHARS + 1];
    *head = (struct plog_head){.mode = how->mode, .uid = how->uid, .gid = how->gid};
    plog_head_new(st, head);
    memcpy(id, head->id, sizeof id);
    int code = plog_head_put(st, object, head, PLOG_ABSENT, err);
    if (code != E_PRECONDITION)
        return code;
    code = plog_head_read(st, object, head, etag, err); /* another one's, or ours: see store.h */
    if (code == 0 && how->exclusive && strcmp(head->id, id) != 0)
        code = error_set(err, E_EXISTS, "'%s' exists", object);
    return code;
}

int plog_session_open(const struct plog_store *st, const char *object, const struct plog_open *how,
                      struct plog_session *s, struct error *err)
{
    struct plog_head head;
    char etag[PLOG_ETAG_MAX];
    int code = E_NOT_FOUND;
    for (int i = 0; i < TRIES && code == E_NOT_FOUND; i++) { /* it may be removed in between */
        code = plog_head_read(st, object, &head, etag, err);
        if (code == 0 && how->create && how->exclusive)
            return error_set(err, E_EXISTS, "'%s' exists", object);
        if (code != E_NOT_FOUND || !how->create)
            break;
        code = create(st, object, how, &head, err);
    }
    if (code == 0 && how->id != NULL && strcmp(how->id, head.id) != 0)
        code = error_set(err, E_PRECONDITION, "'%s' has been replaced; open it again", object);
    if (code != 0)
        return code;
    *s = (struct plog_session){.object = object,
                               .session = st->random(st->ctx),
                               .writer = st->random(st->ctx),
                               .epoch = (uint32_t)head.epoch};
    memcpy(s->id, head.id, sizeof s->id);
    return 0;
}

/* --- the record ------------------------------------------------------------------------------- */

static int put_record(const struct plog_store *st, struct plog_session *s, bool closed,
                      const char *if_match, char etag[static PLOG_ETAG_MAX], struct error *err)
{
    char name[PLOG_NAME_MAX];
    _cleanup_buf_ struct buf body = BUF_INIT;
    plog_name_record(name, s->id, s->session, closed);
    buf_printf(&body, "{\"object\":\"");
    buf_put_json_escaped(&body, s->object, strlen(s->object));
    buf_printf(&body, "\",\"refreshed\":%llu,\"nonce\":\"%016llx\"}",
               (unsigned long long)s->refreshed++, (unsigned long long)st->random(st->ctx));
    return st->put(st->ctx, name, body.data, body.len, if_match, etag, err);
}

/* The shared record is gone, and its owner may be, too: only the owner makes it again. */
static void leave_token(const struct plog_store *st, struct plog_session *s)
{
    s->by_token = false;
    s->session = st->random(st->ctx);
    s->etag[0] = '\0';
}

/* The version of the record in s->etag; "": there is none, and the session may make one. */
static int read_record(const struct plog_store *st, struct plog_session *s, struct error *err)
{
    char name[PLOG_NAME_MAX];
    _cleanup_buf_ struct buf body = BUF_INIT;
    plog_name_record(name, s->id, s->session, false);
    const int code = st->get(st->ctx, name, &body, s->etag, err);
    if (code == E_NOT_FOUND && s->by_token)
        leave_token(st, s);
    else if (code == E_NOT_FOUND)
        s->etag[0] = '\0';
    return error_forgive(err, code, E_NOT_FOUND);
}

/* The record is there, in a version that was stored after this call began. */
static int renew(const struct plog_store *st, struct plog_session *s, struct error *err)
{
    char before[PLOG_ETAG_MAX] = ""; /* that was read since the call began */
    int code = 0;
    if (s->by_token) { /* many others store it: what was its version is none any more */
        code = read_record(st, s, err);
        memcpy(before, s->etag, sizeof before);
    }
    for (int i = 0; i < TRIES && code == 0; i++) {
        char etag[PLOG_ETAG_MAX];
        code = put_record(st, s, false, s->etag[0] != '\0' ? s->etag : PLOG_ABSENT, etag, err);
        if (code == 0)
            memcpy(s->etag, etag, sizeof etag);
        if (code != E_PRECONDITION && code != E_NOT_FOUND)
            return code;
        /* A merge has removed it, or another session or an earlier try of ours has changed it. */
        code = read_record(st, s, err);
        if (code == 0 && before[0] != '\0' && s->etag[0] != '\0' && strcmp(s->etag, before) != 0)
            return 0;
        memcpy(before, s->etag, sizeof before);
    }
    return code != 0
               ? code
               : error_set(err, E_IN_DOUBT, "the record of '%s' changes all the time", s->object);
}

/* Not whether its record is known: a renewal that failed may have left it without one. */
bool plog_session_has_begun(const struct plog_session *s)
{
    return s->n > 0 || s->is_shared;
}

int plog_session_refresh(const struct plog_store *st, struct plog_session *s, struct error *err)
{
    return plog_session_has_begun(s) && !s->by_token && !s->is_closed ? renew(st, s, err) : 0;
}

/* --- tokens ----------------------------------------------------------------------------------- */

int plog_session_share(const struct plog_store *st, struct plog_session *s, struct plog_token *t,
                       struct error *err)
{
    if (strlen(s->object) > PLOG_TOKEN_OBJECT)
        return error_set(err, E_TOO_LARGE, "the name of '%s' is too long for a token", s->object);
    if (!s->by_token && s->etag[0] == '\0') {
        s->is_shared = true; /* also if the call fails, and the record was stored */
        const int code = renew(st, s, err);
        if (code != 0)
            return code;
    }
    s->is_shared = !s->by_token;
    *t = (struct plog_token){.session = s->session, .epoch = s->epoch};
    memcpy(t->id, s->id, sizeof t->id);
    snprintf(t->object, sizeof t->object, "%s", s->object);
    return 0;
}

void plog_session_open_token(const struct plog_store *st, const struct plog_token *t,
                             struct plog_session *s)
{
    *s = (struct plog_session){.object = t->object,
                               .session = t->session,
                               .writer = st->random(st->ctx),
                               .epoch = t->epoch,
                               .by_token = true};
    memcpy(s->id, t->id, sizeof s->id);
}

/* --- phases ----------------------------------------------------------------------------------- */

/* The epoch of a new phase: greater than that of every segment that there is, and of the last
 * phase. */
static int find_epoch(const struct plog_store *st, struct plog_session *s, struct error *err)
{
    char prefix[PLOG_NAME_MAX], after[PLOG_NAME_MAX];
    _cleanup_plog_names_ struct plog_names names = {.count = 0};
    struct plog_segment_name last;
    uint64_t epoch = (uint64_t)s->epoch + 1;
    if (epoch < UINT32_MAX) {
        plog_name(prefix, s->id, "s/");
        plog_name_epoch(after, s->id, (uint32_t)epoch);
        const int code = st->list(st->ctx, prefix, after, &names, err);
        if (code != 0)
            return code;
    }
    if (names.count > 0) {
        if (!plog_name_parse_segment(names.items[names.count - 1], &last))
            return error_set(err, E_CORRUPT, "'%s' is no name of a segment",
                             names.items[names.count - 1]);
        epoch = (uint64_t)last.epoch + 1;
    }
    if (epoch >= UINT32_MAX)
        return error_set(err, E_TOO_LARGE, "'%s' has no epochs left; copy it", s->object);
    s->epoch = (uint32_t)epoch;
    return 0;
}

int plog_session_begin(const struct plog_store *st, struct plog_session *s,
                       struct plog_segment_name *name, struct error *err)
{
    int code = s->etag[0] == '\0' && !s->by_token ? renew(st, s, err) : 0;
    if (code == 0 && !s->in_phase)
        code = find_epoch(st, s, err);
    if (code != 0)
        return code;
    s->in_phase = true;
    *name = (struct plog_segment_name){.epoch = s->epoch, .writer = s->writer, .n = s->n++};
    return 0;
}

/* Segments of a plog that has no head any more are seen by no one. */
static int check_head(const struct plog_store *st, const struct plog_session *s, struct error *err)
{
    struct plog_head head;
    char etag[PLOG_ETAG_MAX];
    int code = 0;
    for (int i = 0; i < TRIES; i++) {
        code = plog_head_read(st, s->object, &head, etag, err);
        if (code == E_NOT_FOUND || code == E_INVALID || (code == 0 && strcmp(head.id, s->id) != 0))
            return error_set(err, E_PRECONDITION,
                             "'%s' has been removed or replaced; open it again", s->object);
        if (code != 0 || head.mark == 0)
            return code;
        head.mark = 0; /* a flattening that has not seen this session's record must fail */
        code = plog_head_put(st, s->object, &head, etag, err);
        if (code != 0 && code != E_PRECONDITION && code != E_NOT_FOUND)
            return code;
    }
    return error_set(err, E_IN_DOUBT, "the head '%s' changes all the time", s->object);
}

int plog_session_sync(const struct plog_store *st, struct plog_session *s, struct error *err)
{
    if (!s->in_phase)
        return 0;
    int code = renew(st, s, err);
    if (code == 0)
        code = check_head(st, s, err);
    if (code == 0)
        s->in_phase = false;
    return code;
}

/* The owner lists the segments after it has stored its record `.c`.  A merge leaves this record as
 * long as the shared one is left (merge.c). */
static int close_by_token(const struct plog_store *st, struct plog_session *s, struct error *err)
{
    char name[PLOG_NAME_MAX], etag[PLOG_ETAG_MAX];
    _cleanup_buf_ struct buf body = BUF_INIT;
    plog_name_record(name, s->id, s->session, true);
    const int code = st->get(st->ctx, name, &body, etag, err);
    s->must_merge = code == 0;
    s->is_closed = code == 0 || code == E_NOT_FOUND;
    return error_forgive(err, code, E_NOT_FOUND);
}

int plog_session_close(const struct plog_store *st, struct plog_session *s, struct error *err)
{
    char etag[PLOG_ETAG_MAX];
    int code = 0;
    if (!plog_session_has_begun(s) || s->is_closed)
        return 0;
    if (s->by_token)
        code = plog_session_sync(st, s, err); /* it may need a record of its own */
    if (code == 0 && s->by_token)
        return close_by_token(st, s, err);
    if (code == 0)
        code = put_record(st, s, true, NULL, etag, err);
    if (code == 0 && s->in_phase)
        code = check_head(st, s, err);
    s->is_closed = s->must_merge = code == 0;
    return code;
}

/* --- heads that go ---------------------------------------------------------------------------- */

int plog_drop_container(const struct plog_store *st, const char *id, struct error *err)
{
    char prefix[PLOG_NAME_MAX];
    _cleanup_plog_names_ struct plog_names names = {.count = 0};
    plog_name(prefix, id, "");
    int code = st->list(st->ctx, prefix, NULL, &names, err), rc = code;
    for (size_t i = names.count; i > 0 && rc != E_CANCELLED; i--) { /* segments before records */
        struct error *first = code == 0 ? err : NULL;
        rc = st->remove(st->ctx, names.items[i - 1], NULL, first);
        rc = error_forgive(first, rc, E_NOT_FOUND);
        code = code == 0 ? rc : code;
    }
    if (code != 0)
        error_wrap(err, "objects below '%s' are left; 'dfcctl plog gc BUCKET' removes them later",
                   prefix);
    return code;
}

/* Without a merged index and segments. */
static int is_empty(const struct plog_store *st, const struct plog_head *head, bool *out,
                    struct error *err)
{
    char prefix[PLOG_NAME_MAX];
    _cleanup_plog_names_ struct plog_names segments = {.count = 0};
    plog_name(prefix, head->id, "s/");
    const int code = head->merged == 0 ? st->list(st->ctx, prefix, NULL, &segments, err) : 0;
    *out = code == 0 && head->merged == 0 && segments.count == 0;
    return code;
}

static int need_id(const struct plog_head *head, const char *id, const char *object,
                   struct error *err)
{
    return id == NULL || strcmp(id, head->id) == 0
               ? 0
               : error_set(err, E_PRECONDITION, "'%s' has been replaced; open it again", object);
}

int plog_head_replace(const struct plog_store *st, const char *object, const char *only,
                      char now[static PLOG_ID_CHARS + 1], struct error *err)
{
    struct plog_head head;
    char etag[PLOG_ETAG_MAX], prefix[PLOG_NAME_MAX], id[PLOG_ID_CHARS + 1];
    _cleanup_plog_names_ struct plog_names records = {.count = 0};
    bool has_nothing = false;
    int code = plog_head_read(st, object, &head, etag, err);
    if (code == 0)
        code = need_id(&head, only, object, err);
    if (code != 0)
        return code;
    memcpy(now, head.id, sizeof head.id);
    plog_name(prefix, head.id, "o/");
    code = st->list(st->ctx, prefix, NULL, &records, err);
    if (code == 0 && records.count > 0)
        code = error_set(err, E_PRECONDITION, "'%s' is open elsewhere", object);
    if (code == 0) /* a new head would end the sessions of others that have opened it so far */
        code = is_empty(st, &head, &has_nothing, err);
    if (code != 0 || has_nothing)
        return code;
    memcpy(id, head.id, sizeof id);
    plog_head_new(st, &head);
    code = plog_head_put(st, object, &head, etag, err);
    if (code != 0)
        return code;
    memcpy(now, head.id, sizeof head.id);
    /* The file is empty, whatever is left of the old container. */
    struct error why = ERROR_INIT;
    code = plog_drop_container(st, id, &why);
    return code == E_CANCELLED ? error_set(err, code, "%s", why.message) : 0;
}

int plog_unlink(const struct plog_store *st, const char *object, struct error *err)
{
    struct plog_head head;
    char etag[PLOG_ETAG_MAX];
    int code = plog_head_read(st, object, &head, etag, err);
    for (int i = 0; code == 0 && i < TRIES; i++) {
        code = st->remove(st->ctx, object, etag, err);
        if (code == E_NOT_FOUND) /* by a try of ours; or it has moved, and has its container */
            return error_forgive(err, code, E_NOT_FOUND);
        if (code != E_PRECONDITION)
            break;
        code = plog_head_read(st, object, &head, etag, err); /* a merge was faster */
    }
    return code == 0 ? plog_drop_container(st, head.id, err) : code;
}
