#include "vdisc/client/burn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/failure.h"
#include "common/mem.h"
#include "common/parse.h"
#include "vdisc/client/burn_parts.h"
#include "vdisc/client/collect.h"
#include "vdisc/client/each.h"
#include "vdisc/client/hosts.h"
#include "vdisc/csv.h"
#include "vdisc/iso_write.h"

DEFINE_CLEANUP(struct dfc_object_info, dfc_object_info_free);

#define HEADER_PATIENCE_MS (10u * 60 * 1000) /* while a target reads a header that is there */

/* --- the list --------------------------------------------------------------------------------- */

static int check_host(void *context, const char *text, const struct reference *to, const char *host,
                      struct error *err)
{
    struct burn *b = context;
    (void)to;
    if (host == NULL)
        return 0;
    if (b->hosts == NULL && hosts_load(b->client, &b->hosts, &b->failure) != DFC_OK)
        return error_set(err, E_NET, "%s", b->failure.message);
    if (hosts_have(b->hosts, host))
        return 0;
    return error_set(err, E_INVALID,
                     "'%.200s': '%s' is not a node of this cluster: an image refers to objects of "
                     "its own cluster alone",
                     text, host);
}

struct burn *burn_new(struct dfc_client *c, const struct burn_options *options)
{
    struct burn *b = xcalloc(1, sizeof *b);
    b->client = c;
    b->options = options;
    b->plan = plan_new();
    b->list = (struct burn_list){
        .plan = b->plan, .rows_max = options->plan.entries_max, .check = check_host, .ctx = b};
    b->csv = csv_new(burn_list_row, &b->list);
    return b;
}

void burn_free(struct burn *b)
{
    uint32_t count = 0;
    if (b == NULL)
        return;
    struct plan_object *objects = plan_objects(b->plan, &count);
    for (uint32_t i = 0; i < count; i++) {
        free((char *)objects[i].etag);
        free((char *)objects[i].pin);
    }
    for (uint32_t i = 0; i < b->learnt_count; i++)
        free((char *)b->learnt[i].etag);
    free((char *)b->header.etag);
    free((char *)b->header.pin);
    csv_free(b->csv);
    plan_free(b->plan);
    burn_sendings_done(&b->sendings);
    older_free(b->from);
    older_free(b->base);
    vdisc_close(b->from_image);
    vdisc_close(b->base_image);
    hosts_free(b->hosts);
    lease_end(&b->lease);
    free(b->header_key);
    free(b->order);
    free(b);
}

/* What common/ said, of the list; or what the store said meanwhile. */
static int fail(const struct burn *b, const struct error *e, struct dfc_error *err)
{
    if (b->failure.result != DFC_OK) {
        *err = b->failure;
        return b->failure.result;
    }
    return failure_common(err, DFC_INVALID, e);
}

int burn_feed(struct burn *b, const void *bytes, size_t len, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    return csv_feed(b->csv, bytes, len, &e) == 0 ? DFC_OK : fail(b, &e, err);
}

/* --- the objects ------------------------------------------------------------------------------ */

int burn_changed(const struct plan_object *o, const char *what, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    burn_rules_changed(o, what, &e);
    return failure_common(err, DFC_CONFLICT, &e);
}

/* Of a failure that says so. */
int burn_missing(const struct plan_object *o, struct dfc_error *err)
{
    const struct dfc_error was = *err;
    struct error e = ERROR_INIT;
    burn_rules_missing(o, was.message, &e);
    return failure_common(err, DFC_NOT_FOUND, &e);
}

int burn_check_size(const struct plan_object *o, const struct dfc_object_info *info,
                    struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    return burn_rules_size(o, info->size, &e) == 0 ? DFC_OK : failure_common(err, DFC_CONFLICT, &e);
}

static int ask_object(struct burn *b, const struct plan_object *o, struct dfc_object_info **info,
                      struct dfc_error *err)
{
    const struct sending *s = burn_sending(b, o);
    int rc = dfc_head(b->client, o->bucket, o->key, info, err);
    if (rc != DFC_NOT_FOUND)
        return rc;
    if (s != NULL && strcmp(err->code, error_name(E_OBJECT_NOT_FOUND)) == 0)
        return burn_send(b, s, info, err);
    return burn_missing(o, err);
}

static int check_object(void *context, uint32_t number, struct dfc_error *err)
{
    struct burn *b = context;
    uint32_t count;
    struct plan_object *o = &plan_objects(b->plan, &count)[b->order[number]];
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    int rc = lease_renew(&b->lease, err);
    if (rc != DFC_OK)
        return rc;
    rc = ask_object(b, o, &info, err);
    if (rc != DFC_OK)
        return rc;
    const struct burn_found found = {.size = info->size,
                                     .etag = info->etag,
                                     .checksum_type = info->checksum_type,
                                     .checksum = info->checksum};
    struct error e = ERROR_INIT;
    return burn_rules_take(o, &found, &e) == 0 ? DFC_OK : failure_common(err, DFC_CONFLICT, &e);
}

static int check_objects(struct burn *b, struct dfc_error *err)
{
    uint32_t count = 0;
    struct plan_object *objects = plan_objects(b->plan, &count);
    if (!b->options->no_check) {
        b->order = burn_rules_order(objects, count);
        return each_number(count, b->options->threads, check_object, b, err);
    }
    for (uint32_t i = 0; i < count; i++)
        burn_rules_trust(&objects[i]);
    return DFC_OK;
}

/* --- collections ------------------------------------------------------------------------------ */

/* Objects of this bucket are used that a collection removes if no image refers to them. */
static int keep_from_collection(struct burn *b, const char *bucket, struct dfc_error *err)
{
    const struct burn_options *o = b->options;
    int rc = DFC_OK;
    if (b->lease.client == NULL)
        rc = lease_take(&b->lease, b->client, o->bucket, o->key, err);
    return rc == DFC_OK ? lease_refuse_collection(b->client, bucket, err) : rc;
}

static int keep_contents(struct burn *b, struct dfc_error *err)
{
    uint32_t count = 0, kept = 0;
    const struct plan_object *objects = plan_objects(b->plan, &count);
    const char **buckets = xcalloc((size_t)count + 1, sizeof *buckets);
    int rc = DFC_OK;
    for (uint32_t i = 0; rc == DFC_OK && i < count; i++) {
        uint32_t k = 0;
        if (!collect_is_ours(objects[i].key))
            continue;
        while (k < kept && strcmp(buckets[k], objects[i].bucket) != 0)
            k++;
        if (k == kept) {
            buckets[kept++] = objects[i].bucket;
            rc = keep_from_collection(b, objects[i].bucket, err);
        }
    }
    free(buckets);
    return rc;
}

/* --- the header ------------------------------------------------------------------------------- */

struct header_file {
    int fd;
    struct checksum *sum;
};

static int put_header_bytes(void *context, const void *bytes, size_t len, struct error *err)
{
    const struct header_file *h = context;
    checksum_update(h->sum, bytes, len);
    for (const char *at = bytes; len > 0;) {
        ssize_t n = write(h->fd, at, len);
        if (n < 0)
            return error_errno(err, errno, "write the image's header to a temporary file");
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static int open_temporary(struct dfc_error *err)
{
    const char *tmp = getenv("TMPDIR");
    _cleanup_free_ char *path =
        xprintf("%s/vdisc-XXXXXX", tmp != NULL && tmp[0] != '\0' ? tmp : "/var/tmp");
    int fd = mkostemp(path, 02000000 /* O_CLOEXEC */);
    if (fd < 0) {
        failure_errno(err, errno, "make a temporary file '%s'", path);
        return -1;
    }
    unlink(path);
    return fd;
}

/* It is of another burn, or of one that did not end. */
static int look_at_header(struct burn *b, struct dfc_object_info **info, struct dfc_error *err)
{
    const char *bucket = b->options->bucket;
    const struct dfc_digest_options options = {.idle_timeout_ms = HEADER_PATIENCE_MS};
    struct error e = ERROR_INIT;
    int rc = keep_from_collection(b, bucket, err);
    if (rc == DFC_OK)
        rc = dfc_digest(b->client, bucket, b->header_key, checksum_name(CHECKSUM_SHA256), &options,
                        info, err);
    if (rc != DFC_OK || burn_rules_check_header(bucket, b->header_key, (*info)->checksum,
                                                b->header_sha256, &e) == 0)
        return rc;
    return failure_common(err, DFC_CONFLICT, &e);
}

static int send_header(struct burn *b, int fd, struct dfc_error *err)
{
    const struct burn_options *o = b->options;
    const struct dfc_put_options absent = {.if_absent = true};
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    int rc = dfc_put_fd(b->client, o->bucket, b->header_key, fd, &absent, &info, err);
    if (rc == DFC_PRECONDITION)
        rc = look_at_header(b, &info, err);
    else if (rc == DFC_OK && info == NULL)
        rc = dfc_head(b->client, o->bucket, b->header_key, &info, err);
    if (rc == DFC_OK)
        b->header.etag = xstrdup(info->etag);
    return rc;
}

static int put_header(struct burn *b, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct checksum_value sum;
    _cleanup_close_ int fd = open_temporary(err);
    if (fd < 0)
        return DFC_LOCAL;
    _cleanup_(checksum_freep)
    struct checksum *running = checksum_new(CHECKSUM_SHA256);
    struct header_file h = {.fd = fd, .sum = running};
    if (iso_write(plan_layout(b->plan), &b->options->volume, put_header_bytes, &h, &e) != 0)
        return failure_common(err, DFC_LOCAL, &e);
    if (lseek(fd, 0, SEEK_SET) != 0)
        return failure_errno(err, errno, "read the image's header");
    checksum_final(running, &sum);
    memcpy(b->header_sha256, sum.bytes, TABLE_ID);
    b->header.pin = burn_rules_pin(&sum);
    b->header_key = burn_rules_header_name(b->options->key, &sum);
    b->header.key = b->header_key;
    b->header.bucket = b->options->bucket;
    return send_header(b, fd, err);
}

/* --- the table -------------------------------------------------------------------------------- */

static int fail_exists(const struct burn_options *o, struct dfc_error *err)
{
    return failure_set(err, DFC_CONFLICT, E_OBJECT_EXISTS,
                       "object '%s/%s' exists: an image is not overwritten; take another name, or "
                       "remove it first",
                       o->bucket, o->key);
}

static int check_name_is_free(const struct burn *b, struct dfc_error *err)
{
    const struct burn_options *o = b->options;
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    int rc = dfc_head(b->client, o->bucket, o->key, &info, err);
    if (rc == DFC_OK)
        return fail_exists(o, err);
    return rc == DFC_NOT_FOUND && strcmp(err->code, error_name(E_OBJECT_NOT_FOUND)) == 0 ? DFC_OK
                                                                                         : rc;
}

static int put_table(struct burn *b, struct burn_result *r, struct dfc_error *err)
{
    const struct burn_options *o = b->options;
    const struct dfc_put_options absent = {.if_absent = true};
    uint8_t id[TABLE_ID];
    struct error e = ERROR_INIT;
    _cleanup_buf_ struct buf bytes = BUF_INIT;
    if (plan_table(b->plan, o->bucket, o->key, &b->header, b->header_sha256, id, &bytes, &e) != 0)
        return failure_common(err, DFC_INVALID, &e);
    format_hex(id, TABLE_ID, r->image_id);
    r->table_bytes = bytes.len;
    int rc = lease_check(&b->lease, err);
    if (rc == DFC_OK)
        rc =
            dfc_put_memory(b->client, o->bucket, o->key, bytes.data, bytes.len, &absent, NULL, err);
    return rc == DFC_PRECONDITION ? fail_exists(o, err) : rc;
}

static void describe(const struct burn *b, struct burn_result *r)
{
    const struct iso_layout *l = plan_layout(b->plan);
    uint64_t bytes = 0;
    *r = (struct burn_result){.entries = plan_rows(b->plan),
                              .files = l->tree->file_count,
                              .extents = l->extent_count + 1,
                              .image_bytes = (uint64_t)l->blocks * ISO_BLOCK,
                              .header_bytes = (uint64_t)l->header_blocks * ISO_BLOCK,
                              .many_sections = l->many_sections,
                              .far_parents = l->far_parents};
    for (uint32_t i = 0; i < l->tree->file_count; i++)
        bytes += l->tree->nodes[l->tree->files[i]].size;
    r->shared_bytes = bytes - l->content_bytes;
}

static int close_plan(struct burn *b, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    int rc = b->options->digest ? check_name_is_free(b, err) : DFC_OK;
    if (rc == DFC_OK && b->options->digest)
        rc = burn_digest(b, err);
    if (rc == DFC_OK && (plan_close(b->plan, &b->options->plan, &e) != 0 ||
                         burn_rules_not_empty(b->plan, b->options->allow_empty, &e) != 0))
        return fail(b, &e, err);
    return rc;
}

static int plan(struct burn *b, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    if (iso_volume_check(&b->options->volume, &e) != 0 || csv_end(b->csv, &e) != 0 ||
        burn_rules_not_empty(b->plan, b->options->allow_empty, &e) != 0)
        return fail(b, &e, err);
    return close_plan(b, err);
}

int burn_finish(struct burn *b, struct burn_result *result, struct dfc_error *err)
{
    int rc = plan(b, err);
    if (rc == DFC_OK)
        rc = check_name_is_free(b, err);
    if (rc != DFC_OK)
        return rc;
    describe(b, result);
    rc = keep_contents(b, err);
    if (rc == DFC_OK)
        rc = check_objects(b, err);
    if (rc == DFC_OK)
        rc = put_header(b, err);
    result->sent_objects = atomic_load(&b->sent_objects);
    result->sent_bytes = atomic_load(&b->sent_bytes);
    return rc == DFC_OK ? put_table(b, result, err) : rc;
}
