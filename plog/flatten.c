#include "plog/flatten.h"

#include <string.h>

#include "plog/session.h"

enum { TRIES = 32 }; /* of what another client can overtake */

static int busy(const char *object, struct error *err)
{
    return error_set(err, E_PLOG_BUSY,
                     "'%s' is open for writing, or a writer of it died: close it, or run "
                     "'dfcctl plog recover'",
                     object);
}

/* *etag is the version of the head that has the mark. */
static int put_mark(const struct plog_store *st, const char *object,
                    char etag[static PLOG_ETAG_MAX], struct error *err)
{
    struct plog_head head;
    char before[PLOG_ETAG_MAX];
    _cleanup_buf_ struct buf body = BUF_INIT;
    const int code = plog_head_read(st, object, &head, before, err);
    if (code != 0)
        return code;
    head.mark = st->random(st->ctx) >> 2 | 1;
    plog_head_print(&head, &body);
    return st->put(st->ctx, object, body.data, body.len, before, etag, err);
}

static int merge(const struct plog_store *st, const char *object, struct error *err)
{
    struct plog_watch watch = {.count = 0};
    enum plog_merge_result merged;
    const int code = plog_merge(st, object, &watch, 0, UINT64_MAX, &merged, err);
    plog_watch_done(&watch);
    return code == 0 && merged == PLOG_MERGED_BUSY ? busy(object, err) : code;
}

static int find_newest(const struct plog_store *st, const char *id, uint64_t *newest,
                       struct error *err)
{
    _cleanup_plog_names_ struct plog_names names = {.count = 0};
    char prefix[PLOG_NAME_MAX];
    uint64_t number;
    *newest = 0;
    plog_name(prefix, id, "m/");
    const int code = st->list(st->ctx, prefix, NULL, &names, err);
    for (size_t i = 0; i < names.count; i++) {
        if (plog_name_parse_merged(names.items[i], &number) && number > *newest)
            *newest = number;
    }
    return code;
}

/* Does the head of the look have the newest merged index?  A merge that has stored a newer one, and
 * not the head yet, has left a record; one that has stored the head has changed it.  Rarely the
 * answer is no without reason: a merge that lost has left its index, and one that had listed fewer
 * segments has removed the record. */
static int check_newest(const struct plog_store *st, const char *object, const struct plog_look *l,
                        struct error *err)
{
    _cleanup_plog_names_ struct plog_names records = {.count = 0};
    char prefix[PLOG_NAME_MAX], etag[PLOG_ETAG_MAX];
    struct plog_head now;
    uint64_t newest;
    int code = find_newest(st, l->head.id, &newest, err);
    if (code != 0 || newest <= l->head.merged)
        return code;
    plog_name(prefix, l->head.id, "o/");
    code = st->list(st->ctx, prefix, NULL, &records, err);
    if (code == 0 && records.count > 0)
        return busy(object, err);
    if (code == 0)
        code = plog_head_read(st, object, &now, etag, err);
    if (code != 0)
        return code;
    if (strcmp(etag, l->etag) != 0)
        return error_set(err, E_PRECONDITION, "'%s' changes all the time", object);
    return error_set(err, E_CORRUPT,
                     "'%s' is an old copy of a head, or a merge of it was cut off: it has merged "
                     "index %llu, and there is number %llu; use the name that was written, or "
                     "copy this one by 'dfcctl plog cp'",
                     object, (unsigned long long)l->head.merged, (unsigned long long)newest);
}

/* E_PRECONDITION: another client was faster, try again. */
static int begin_once(const struct plog_store *st, const char *object, bool is_typed,
                      struct plog_look *l, struct error *err)
{
    char etag[PLOG_ETAG_MAX];
    int code = is_typed ? merge(st, object, err) : 0;
    if (code == 0)
        code = put_mark(st, object, etag, err);
    if (code == 0)
        code = plog_look(st, object, l, err); /* lists the records, then reads the head */
    if (code != 0)
        return code;
    if (l->records > 0)
        code = busy(object, err);
    else if (strcmp(l->etag, etag) != 0)
        code = error_set(err, E_PRECONDITION, "'%s' changes all the time", object);
    else
        code = check_newest(st, object, l, err);
    if (code != 0)
        plog_look_done(l);
    return code;
}

int plog_flatten_begin(const struct plog_store *st, const char *object, bool is_typed,
                       struct plog_look *l, struct error *err)
{
    int code = E_PRECONDITION;
    for (int i = 0; i < TRIES && code == E_PRECONDITION; i++)
        code = begin_once(st, object, is_typed, l, err);
    return code;
}

int plog_flatten_failed(const struct plog_store *st, const char *object, const char *etag, int code,
                        struct error *err)
{
    struct error why = ERROR_INIT;
    struct plog_head head;
    char now[PLOG_ETAG_MAX];
    if (code != E_NOT_FOUND && code != E_PRECONDITION)
        return code;
    const int rc = code == E_NOT_FOUND ? plog_head_read(st, object, &head, now, &why) : 0;
    if (rc != 0 && rc != E_NOT_FOUND && rc != E_INVALID)
        return error_set(err, rc, "%s", why.message);
    if (code == E_NOT_FOUND && rc == 0 && strcmp(now, etag) == 0)
        return error_recode(err, E_CORRUPT, "the plog has lost a segment");
    return error_set(err, E_PRECONDITION,
                     "'%s' was written, replaced or removed meanwhile, and is not changed by this: "
                     "try again",
                     object);
}

int plog_flatten_end(const struct plog_store *st, const char *id, struct error *err)
{
    return plog_drop_container(st, id, err);
}
