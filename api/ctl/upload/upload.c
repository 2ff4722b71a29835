#include "api/ctl/upload/upload.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/ctl/interrupt.h"
#include "api/ctl/upload/upload_parts.h"
#include "api/ctl/upload/upload_state.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct dfc_object_info, dfc_object_info_free);

/* A completion may copy the bytes.  It is waited for as long as this pace takes. */
#define COMPLETE_BYTES_PER_MS 1024u
#define COMPLETE_LEAST_MS 60000u
#define COMPLETE_PAUSE_MS 500u

struct upload {
    const struct upload_order *order;
    struct upload_state state;
    struct upload_parts parts;
    struct dfc_object_info *info; /* of the object, once it is stored */
    bool useless;                 /* no other run can go on */
    bool refused;                 /* the cluster takes no upload in parts of this object */
};

static bool has_code(const struct dfc_error *err, int code)
{
    return strcmp(err->code, error_name(code)) == 0;
}

static int64_t modified_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* ---- before the first part ---- */

/* The completion asks again; this saves sending bytes that it would refuse. */
static int check_condition(const struct upload_order *o, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct dfc_error unknown;
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    const char *if_match = o->options->if_match;
    if (!o->options->if_absent && if_match == NULL)
        return DFC_OK;
    int rc = dfc_head(o->client, o->bucket, o->key, &info, &unknown);
    bool is_other = if_match != NULL && strcmp(if_match, "*") != 0 && rc == DFC_OK &&
                    strstr(if_match, info->etag) == NULL;
    if (o->options->if_absent && rc == DFC_OK)
        error_set(&e, E_PRECONDITION, "the object exists");
    else if (is_other)
        error_set(&e, E_PRECONDITION, "the object has the entity tag %s", info->etag);
    else
        return DFC_OK;
    return upload_fail(err, DFC_PRECONDITION, &e);
}

static void abort_quietly(const struct upload_order *o, const char *upload)
{
    struct dfc_error err; /* the cluster sweeps what the abort leaves */
    if (upload != NULL)
        dfc_upload_abort(o->client, o->bucket, o->key, upload, &err);
}

static int begin(struct upload *u, struct dfc_error *err)
{
    const struct upload_order *o = u->order;
    char *id = NULL;
    upload_parts_forget(&u->parts);
    int rc = dfc_upload_begin(o->client, o->bucket, o->key, o->options, &id, err);
    u->refused = rc == DFC_INVALID || (rc != DFC_OK && has_code(err, E_ROUTE));
    if (rc != DFC_OK)
        return rc;
    free(u->state.upload);
    u->parts.upload = u->state.upload = id;
    upload_state_keep(&u->state);
    return DFC_OK;
}

/* ---- the end ---- */

static int check_unchanged(struct upload *u, struct dfc_error *err)
{
    struct stat st;
    struct error e = ERROR_INIT;
    if (fstat(u->parts.fd, &st) == 0 && (uint64_t)st.st_size == u->state.size &&
        modified_ns(&st) == u->state.modified_ns)
        return DFC_OK;
    u->useless = true;
    error_set(&e, E_IO, "'%s' changed while it was sent: repeat the command", u->order->path);
    return upload_fail(err, DFC_LOCAL, &e);
}

/* The same completion again is answered when the first one has ended. */
static int complete(struct upload *u, struct dfc_error *err)
{
    const struct upload_order *o = u->order;
    _cleanup_free_ char *list = upload_parts_list(&u->parts);
    uint64_t until = clock_ms() + COMPLETE_LEAST_MS + u->state.size / COMPLETE_BYTES_PER_MS;
    int rc;
    do {
        rc = dfc_upload_complete(o->client, o->bucket, o->key, u->state.upload, list, o->options,
                                 &u->info, err);
    } while ((rc == DFC_TIMED_OUT || (rc != DFC_OK && has_code(err, E_NOT_READY))) &&
             clock_ms() < until && interrupt_pause(COMPLETE_PAUSE_MS));
    return rc;
}

/* The reply to a completion does not tell all.  A client without the right to read gets no more. */
static void complete_info(struct upload *u)
{
    struct dfc_error err;
    struct dfc_object_info *shown;
    if (dfc_head(u->order->client, u->order->bucket, u->order->key, &shown, &err) != DFC_OK)
        return;
    if (strcmp(shown->etag, u->info->etag) == 0) {
        struct dfc_object_info *told = u->info;
        u->info = shown;
        shown = told;
    }
    dfc_object_info_free(shown);
}

/* An earlier run may have ended between the completion and its reply.  Then the completion is
 * answered once more; the object may be another one by now. */
static bool was_completed(struct upload *u)
{
    struct dfc_error err;
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *now = NULL;
    const struct upload_order *o = u->order;
    if (upload_parts_read(&u->parts, &err) != DFC_OK || complete(u, &err) != DFC_OK)
        return false;
    if (dfc_head(o->client, o->bucket, o->key, &now, &err) == DFC_OK &&
        strcmp(now->etag, u->info->etag) == 0) {
        u->parts.resumed = u->state.size;
        return true;
    }
    dfc_object_info_free(steal(u->info));
    return false;
}

/* ---- all of it ---- */

static bool is_gone(int rc, const struct dfc_error *err)
{
    return rc == DFC_NOT_FOUND && has_code(err, E_NOT_FOUND);
}

/* Where the parts cannot be had, another upload is begun.  *stored: there is nothing to send. */
static int go_on(struct upload *u, bool *stored, struct dfc_error *err)
{
    abort_quietly(u->order, u->state.stale);
    if (u->state.upload == NULL)
        return begin(u, err);
    u->parts.upload = u->state.upload;
    int rc = upload_parts_ask(&u->parts, err);
    if (is_gone(rc, err) || (rc != DFC_OK && has_code(err, E_NOT_READY)))
        *stored = was_completed(u);
    bool is_lost = rc == DFC_NOT_FOUND || rc == DFC_INVALID ||
                   (rc != DFC_OK && has_code(err, E_NODE_UNREACHABLE));
    if (*stored)
        return DFC_OK;
    return is_lost ? begin(u, err) : rc;
}

static int send_and_complete(struct upload *u, struct dfc_error *err)
{
    int rc = upload_parts_send(&u->parts, err);
    if (rc == DFC_OK)
        rc = check_unchanged(u, err);
    return rc == DFC_OK ? complete(u, err) : rc;
}

static int run(struct upload *u, struct dfc_error *err)
{
    bool stored = false;
    int rc = check_condition(u->order, err);
    if (rc == DFC_OK)
        rc = go_on(u, &stored, err);
    if (rc != DFC_OK || stored)
        return rc;
    rc = send_and_complete(u, err);
    if (!is_gone(rc, err))
        return rc;
    rc = begin(u, err); /* somebody aborted the upload, or it expired */
    return rc == DFC_OK ? send_and_complete(u, err) : rc;
}

static bool is_useful(const struct upload *u, int rc)
{
    return !u->useless && u->state.path != NULL && rc != DFC_PRECONDITION && rc != DFC_INVALID &&
           rc != DFC_NOT_FOUND;
}

static int run_and_tidy(struct upload *u, struct dfc_error *err)
{
    int rc = run(u, err);
    if (rc != DFC_OK && is_useful(u, rc))
        return rc;
    if (rc != DFC_OK)
        abort_quietly(u->order, u->state.upload);
    else
        complete_info(u);
    upload_state_drop(&u->state);
    return rc;
}

/* ---- the file ---- */

/* What of the order decides over the object besides its bytes. */
static char *about(const struct dfc_put_options *o)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "%s\n", o->content_type != NULL ? o->content_type : "");
    for (size_t i = 0; i < o->meta_count; i++)
        buf_printf(&text, "%s=%s\n", o->meta[i].name, o->meta[i].value);
    return buf_steal(&text);
}

static void upload_open(struct upload *u, const struct upload_order *o, int fd,
                        const struct stat *st)
{
    uint64_t size = (uint64_t)st->st_size;
    *u = (struct upload){.order = o,
                         .state = {.bucket = o->bucket,
                                   .key = o->key,
                                   .size = size,
                                   .part_size = upload_part_size(size, o->part_size),
                                   .modified_ns = modified_ns(st),
                                   .about = about(o->options)}};
    upload_state_open(&u->state, o->path);
    upload_parts_init(&u->parts, o, fd, size, u->state.part_size);
    if (o->progress->alone)
        progress_total(o->progress->all, size, 1);
}

static void upload_close(struct upload *u)
{
    dfc_object_info_free(u->info);
    upload_parts_done(&u->parts);
    upload_state_done(&u->state);
}

static int send_whole(const struct upload_order *o, struct dfc_object_info **info,
                      struct dfc_error *err)
{
    struct dfc_put_options options = *o->options;
    options.progress = progress_part_moved;
    options.progress_context = o->progress;
    return dfc_put_file(o->client, o->bucket, o->key, o->path, &options, info, err);
}

/* A pipe must not be opened twice. */
static bool is_large(const struct upload_order *o)
{
    struct stat st;
    return o->part_size > 0 && stat(o->path, &st) == 0 && S_ISREG(st.st_mode) &&
           (uint64_t)st.st_size > o->part_size;
}

int upload_file(const struct upload_order *o, uint64_t *resumed, struct dfc_object_info **info,
                struct dfc_error *err)
{
    struct stat st;
    struct upload u;
    _cleanup_close_ int fd = is_large(o) ? open(o->path, O_RDONLY | O_CLOEXEC) : -1;
    *resumed = 0;
    if (fd < 0 || fstat(fd, &st) != 0 || (uint64_t)st.st_size <= o->part_size)
        return send_whole(o, info, err);
    upload_open(&u, o, fd, &st);
    int rc = run_and_tidy(&u, err);
    bool refused = u.refused;
    *resumed = u.parts.resumed;
    *info = steal(u.info);
    upload_close(&u);
    return refused ? send_whole(o, info, err) : rc;
}
