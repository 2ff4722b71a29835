/* Idea: the part's note names a version.  The rest of it is asked for with If-Match, and the whole
 * is compared with the noted checksum.  What does not fit is fetched anew, once. */
#include "api/ctl/files/fetch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/ctl/files/part.h"
#include "common/checksum.h"
#include "common/cleanup.h"
#include "common/mem.h"

struct fetch {
    struct dfc_client *client;
    const struct dfc_get_options *options;
    struct landing *l;
    struct part part;
    struct checksum *sum; /* of the whole, where a part is continued; or NULL */
    uint64_t at;          /* bytes in the file */
};

static int fail_local(struct dfc_error *err, const struct error *e, int result)
{
    *err = (struct dfc_error){.result = result};
    snprintf(err->code, sizeof err->code, "%s", error_name(e->code));
    snprintf(err->message, sizeof err->message, "%s", e->message);
    return result;
}

/* ---- from the first byte on ---- */

static int version_known(void *context, const struct dfc_object_info *info)
{
    struct fetch *f = context;
    part_begin(&f->part, f->l, info);
    return 0;
}

static int fetch_anew(struct fetch *f, struct dfc_error *err)
{
    struct dfc_get_options options = *f->options;
    options.begin = version_known;
    options.begin_context = f;
    if (f->part.lock >= 0 && (ftruncate(f->l->fd, 0) != 0 || lseek(f->l->fd, 0, SEEK_SET) != 0)) {
        struct error e = ERROR_INIT;
        error_errno(&e, errno, "empty the part of '%s'", f->l->leaf);
        return fail_local(err, &e, DFC_LOCAL);
    }
    return dfc_get_fd(f->client, f->part.bucket, f->part.key, f->l->fd, &options, NULL, err);
}

/* ---- behind a part ---- */

static int write_on(void *context, const void *data, size_t size)
{
    struct fetch *f = context;
    const char *at = data;
    if (f->sum != NULL)
        checksum_update(f->sum, data, size);
    while (size > 0) {
        ssize_t n = write(f->l->fd, at, size);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0) {
            at += n;
            size -= (size_t)n;
            f->at += (uint64_t)n;
        }
    }
    return 0;
}

/* The bytes of the part, for the checksum of the whole; the file's position is behind them. */
static bool read_part(struct fetch *f)
{
    enum checksum_type type;
    enum { BLOCK = 1 << 20 };
    _cleanup_free_ char *block = xcalloc(1, BLOCK);
    ssize_t n;
    if (!f->options->no_verify && f->part.checksum[0] != '\0' &&
        checksum_from_name(f->part.checksum_type, &type, NULL) == 0 && type != CHECKSUM_NONE)
        f->sum = checksum_new(type);
    while ((n = read(f->l->fd, block, BLOCK)) > 0) {
        if (f->sum != NULL)
            checksum_update(f->sum, block, (size_t)n);
        f->at += (uint64_t)n;
    }
    return n == 0;
}

static int verify(struct fetch *f, struct dfc_error *err)
{
    struct checksum_value have, want;
    struct error e = ERROR_INIT;
    bool fits = f->at == f->part.size;
    if (fits && f->sum != NULL) {
        checksum_final(f->sum, &have);
        fits = checksum_parse(have.type, f->part.checksum, &want, NULL) == 0 &&
               checksum_equal(&have, &want);
    }
    if (fits)
        return DFC_OK;
    error_set(&e, E_CHECKSUM, "what was read is not the object that was begun");
    return fail_local(err, &e, DFC_CORRUPT);
}

/* Nothing is left to be read: is it still the version that the object has? */
static int compare_version(struct fetch *f, struct dfc_error *err)
{
    struct dfc_object_info *info = NULL;
    struct error e = ERROR_INIT;
    int rc = dfc_head(f->client, f->part.bucket, f->part.key, &info, err);
    if (rc != DFC_OK)
        return rc;
    bool same = strcmp(info->etag, f->part.etag) == 0;
    dfc_object_info_free(info);
    if (same)
        return DFC_OK;
    error_set(&e, E_PRECONDITION, "the object changed since it was begun");
    return fail_local(err, &e, DFC_PRECONDITION);
}

static int fetch_rest(struct fetch *f, struct dfc_error *err)
{
    const struct dfc_sink sink = {.write = write_on, .context = f};
    struct dfc_get_options options = *f->options;
    if (!read_part(f))
        return DFC_PRECONDITION;
    options.offset = (int64_t)f->at;
    options.if_match = f->part.etag;
    int rc = f->at < f->part.size
                 ? dfc_get_sink(f->client, f->part.bucket, f->part.key, &sink, &options, NULL, err)
                 : compare_version(f, err);
    return rc == DFC_OK ? verify(f, err) : rc;
}

/* ---- both ---- */

/* Another run may do better; what came so far is right. */
static bool worth_keeping(int rc)
{
    return rc == DFC_UNREACHABLE || rc == DFC_TIMED_OUT || rc == DFC_CANCELLED || rc == DFC_FAILED;
}

static int run(struct fetch *f, uint64_t *resumed, struct dfc_error *err)
{
    uint64_t have = 0;
    bool found = part_find(&f->part, f->l, &have);
    const char *wanted = f->options->if_match;
    if (found && have > 0 && (wanted == NULL || strcmp(wanted, f->part.etag) == 0)) {
        *resumed = have;
        int rc = fetch_rest(f, err);
        if (rc != DFC_PRECONDITION && rc != DFC_CORRUPT)
            return rc;
        *resumed = 0;
    }
    return fetch_anew(f, err);
}

int fetch_object(struct dfc_client *client, const char *bucket, const char *key, struct landing *l,
                 const struct dfc_get_options *options, uint64_t *resumed, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct fetch f = {.client = client, .options = options, .l = l};
    uint64_t had = 0;
    bool whole = options->offset == 0 && options->length == 0;
    int rc;
    if (l->temporary == NULL || !whole) {
        rc = dfc_get_fd(client, bucket, key, l->fd, options, NULL, err);
        if (rc == DFC_OK && landing_commit(l, &e) != 0)
            rc = fail_local(err, &e, DFC_LOCAL);
        return rc;
    }
    part_init(&f.part, bucket, key, l);
    rc = run(&f, &had, err);
    if (rc == DFC_OK) {
        part_end(&f.part, l);
        if (landing_commit(l, &e) != 0)
            rc = fail_local(err, &e, DFC_LOCAL);
    }
    if (rc != DFC_OK && !worth_keeping(rc))
        part_drop(&f.part, l);
    landing_done(l); /* before the lock is let go of */
    part_done(&f.part);
    checksum_free(f.sum);
    if (resumed != NULL)
        *resumed = had;
    return rc;
}
