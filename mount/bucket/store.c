/* The functions of struct write_store: puts, and uploads in parts.
 *
 * libdfc does not repeat a put with a condition whose end is in doubt.  Here the object is looked
 * at then: it has the bytes, or it is as before and the put is repeated, or it is another's. */
#include "mount/bucket/store.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/backoff.h"
#include "common/checksum.h"
#include "common/clock.h"
#include "common/mem.h"
#include "mount/bucket/errors.h"
#include "mount/bucket/tree.h"

#define PUT_TRIES 8
/* A completion may copy the bytes: it is waited for as long as this pace takes, as dfcctl does. */
#define COMPLETE_LEAST_MS 60000u
#define COMPLETE_PART_MS 64u
#define COMPLETE_PAUSE_MS 200

static const struct backoff pauses = {.first_ms = 100, .max_ms = 2000};

struct put {
    struct tree *tree;
    const char *key;
    const void *data;
    size_t size;
    const struct write_condition *condition;
};

static struct dfc_put_options options_of(const struct write_condition *c)
{
    return (struct dfc_put_options){.if_absent = c->if_match == NULL, .if_match = c->if_match};
}

static bool put_is_what(const struct put *p, const struct dfc_object_info *info)
{
    struct checksum_value sum;
    char hex[2 * CHECKSUM_MAX + 1];
    if (info->size != p->size || strcmp(info->checksum_type, checksum_name(CHECKSUM_XXH3)) != 0)
        return false;
    struct checksum *c = checksum_new(CHECKSUM_XXH3);
    checksum_update(c, p->data != NULL ? p->data : "", p->size);
    checksum_final(c, &sum);
    checksum_free(c);
    checksum_hex(&sum, hex);
    return strcmp(hex, info->checksum) == 0;
}

/* After a put whose end is not known: 1 and the tag if it was done, 0 if the object is as before,
 * -errno. */
static int put_look(const struct put *p, char **etag)
{
    struct dfc_object_info *info;
    const char *before = p->condition->if_match;
    int rc = tree_head(p->tree, p->key, &info);
    if (rc == -ENOENT)
        return before == NULL ? 0 : -ESTALE;
    if (rc != 0)
        return rc;
    if (before != NULL && strcmp(info->etag, before) == 0) {
        rc = 0;
    } else if (put_is_what(p, info)) {
        rc = 1;
        *etag = xstrdup(info->etag);
    } else {
        rc = -ESTALE;
    }
    dfc_object_info_free(info);
    return rc;
}

static bool is_in_doubt(const struct dfc_error *err)
{
    return err->result == DFC_UNREACHABLE || err->result == DFC_TIMED_OUT;
}

static int store_put(void *context, const char *key, const void *data, size_t size,
                     const struct write_condition *condition, char **etag)
{
    struct dfc_error err;
    struct dfc_object_info *info;
    const struct put p = {context, key, data, size, condition};
    const struct dfc_put_options options = options_of(condition);
    int rc = 0;
    for (unsigned tries = 1;; tries++) {
        if (dfc_put_memory(p.tree->client, p.tree->bucket, key, data, size, &options, &info,
                           &err) == DFC_OK) {
            *etag = xstrdup(info->etag);
            dfc_object_info_free(info);
            return 0;
        }
        /* What the first try did may meet the second one's condition. */
        bool is_first_met = tries > 1 && err.result == DFC_PRECONDITION;
        if ((!is_in_doubt(&err) && !is_first_met) || tries == PUT_TRIES)
            return errors_told(key, &err);
        rc = put_look(&p, etag);
        if (rc != 0)
            return rc > 0 ? 0 : rc;
        poll(NULL, 0, (int)backoff_ms(&pauses, tries));
    }
}

static int store_begin(void *context, const char *key, char **upload)
{
    struct dfc_error err;
    struct tree *t = context;
    return dfc_upload_begin(t->client, t->bucket, key, NULL, upload, &err) == DFC_OK
               ? 0
               : errors_told(key, &err);
}

/* The bytes of a part, which can be read again. */
struct part_source {
    const char *data;
    size_t size, at;
};

static ptrdiff_t part_read(void *context, void *to, size_t room)
{
    struct part_source *s = context;
    size_t n = s->size - s->at < room ? s->size - s->at : room;
    memcpy(to, s->data + s->at, n);
    s->at += n;
    return (ptrdiff_t)n;
}

static int part_rewind(void *context)
{
    struct part_source *s = context;
    s->at = 0;
    return 0;
}

static int store_part(void *context, const char *key, const char *upload, uint32_t number,
                      const void *data, size_t size, char **tag)
{
    struct dfc_error err;
    struct tree *t = context;
    struct part_source bytes = {.data = data, .size = size};
    const struct dfc_source source = {part_read, part_rewind, &bytes, (int64_t)size};
    return dfc_upload_part(t->client, t->bucket, key, upload, number, &source, NULL, tag, &err) ==
                   DFC_OK
               ? 0
               : errors_told(key, &err);
}

static unsigned parts_in(const char *list)
{
    unsigned count = 0;
    for (const char *at = strchr(list, '{'); at != NULL; at = strchr(at + 1, '{'))
        count++;
    return count;
}

/* The same completion again is answered when the first one has ended. */
static int store_complete(void *context, const char *key, const char *upload, const char *parts,
                          const struct write_condition *condition, char **etag)
{
    struct dfc_error err;
    struct dfc_object_info *info;
    struct tree *t = context;
    const struct dfc_put_options options = options_of(condition);
    const uint64_t until_ms = clock_ms() + COMPLETE_LEAST_MS + parts_in(parts) * COMPLETE_PART_MS;
    for (;;) {
        if (dfc_upload_complete(t->client, t->bucket, key, upload, parts, &options, &info, &err) ==
            DFC_OK) {
            *etag = xstrdup(info->etag);
            dfc_object_info_free(info);
            return 0;
        }
        bool is_at_work =
            err.result == DFC_TIMED_OUT || strcmp(err.code, error_name(E_NOT_READY)) == 0;
        if (!is_at_work || clock_ms() > until_ms)
            return errors_told(key, &err);
        poll(NULL, 0, COMPLETE_PAUSE_MS);
    }
}

/* The cluster sweeps what a failed abort leaves. */
static void store_abort(void *context, const char *key, const char *upload)
{
    struct dfc_error err;
    struct tree *t = context;
    if (dfc_upload_abort(t->client, t->bucket, key, upload, &err) != DFC_OK)
        errors_told(key, &err);
}

struct write_store tree_store(struct tree *t)
{
    return (struct write_store){
        .context = t,
        .put = store_put,
        .begin = store_begin,
        .part = store_part,
        .complete = store_complete,
        .abort = store_abort,
    };
}
