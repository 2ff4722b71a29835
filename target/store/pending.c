/* What was written here and then got to the bucket's backend (back.h) is pending no more: the mark
 * goes, and the backend's entity tag comes, and that it got there from here. */
#include <string.h>
#include <unistd.h>

#include "io/file.h"
#include "target/store/object_parts.h"

/* Without a tag that tells bytes apart, or without room for one, `validate` reads it again. */
static void add_pairs(struct attr *a, const char *etag, char meta[static ATTR_META_MAX])
{
    if (attr_is_tombstone(a))
        return;
    (void)attr_meta_extend(a, OBJECT_BACKEND_SENT, "1", meta);
    if (*etag != '\0')
        (void)attr_meta_extend(a, OBJECT_BACKEND_ETAG, etag, meta);
}

bool object_was_sent(const struct attr *a)
{
    return attr_meta_find(a, OBJECT_BACKEND_SENT) != NULL;
}

static int uploaded_locked(struct object_place *p, const struct version *version, const char *etag,
                           bool *done, struct error *err)
{
    struct stored cur;
    char meta[ATTR_META_MAX];
    int code = stored_read(p, &cur, err);
    if (code != 0 || !cur.exists || cur.damaged || !attr_is_pending(&cur.attr) ||
        version_compare(&cur.attr.version, version) != 0)
        return code;
    p->mp = cur.mp;
    struct attr a = cur.attr;
    a.flags &= ~(unsigned)ATTR_PENDING;
    add_pairs(&a, etag, meta);
    code = object_rewrite_attr(p, &a, err);
    *done = code == 0;
    return code;
}

/* Where it is by now: it may have been moved to another mountpath while it was uploaded. */
static int sync_it(struct object_store *s, uint64_t bucket_id, const char *name, struct error *err)
{
    struct object o;
    int code = object_open_held(s, bucket_id, name, &o, err);
    if (code != 0)
        return code == E_OBJECT_NOT_FOUND ? 0 : code;
    int errnum = file_sync(o.fd, "back.uploaded");
    close(o.fd);
    return errnum != 0 ? error_errno(err, errnum, "sync '%s'", name) : 0;
}

int object_uploaded(struct object_store *s, uint64_t bucket_id, const char *name,
                    const struct version *version, const char *etag, bool *done, struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    *done = false;
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code == 0) {
        object_lock(&p);
        code = uploaded_locked(&p, version, etag, done, err);
        object_unlock(&p);
    }
    if (code == 0 && *done)
        code = sync_it(s, bucket_id, name, err);
    return code;
}
