/* Metadata is read in pieces of the extent that has it, of which some stay in memory; contents are
 * streamed from the store. */
#include "vdisc/client/image.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/failure.h"
#include "api/same_bytes.h"
#include "common/checksum.h"
#include "common/mem.h"
#include "vdisc/client/hosts.h"
#include "vdisc/reference.h"

#define PIECE (256u << 10) /* bytes of metadata that are fetched at once */
#define PIECES 64          /* kept; 16 MiB */
#define EMPTY UINT64_MAX

struct piece {
    uint64_t at; /* in the image, or EMPTY */
    uint8_t *bytes;
};

struct vdisc {
    struct dfc_client *client;
    char *bucket, *key;
    struct vdisc_table *table;
    uint64_t *starts; /* block of each extent, and the end */
    struct iso_reader reader;
    struct hosts *hosts;  /* loaded when the table is, if an address has a host */
    pthread_mutex_t lock; /* pieces, failure */
    struct piece pieces[PIECES];
    struct dfc_error failure; /* the last one that a reader's function could not pass on whole */
};

/* --- extents ---------------------------------------------------------------------------------- */

const struct vdisc_table *vdisc_table_of(const struct vdisc *v)
{
    return v->table;
}

const struct iso_reader *vdisc_reader(const struct vdisc *v)
{
    return &v->reader;
}

uint64_t vdisc_block_of(const struct vdisc *v, uint32_t extent)
{
    return v->starts[extent];
}

uint32_t vdisc_extent_of(const struct vdisc *v, uint32_t lba)
{
    return vdisc_table_extent(v->table, v->starts, lba);
}

static bool has_scheme(const char *address)
{
    return strstr(address, "://") != NULL && strcspn(address, "/") > strcspn(address, ":");
}

/* Images of other programs name objects by the address of a node. */
static int resolve(const struct vdisc *v, const char *address, struct reference *to,
                   struct error *e)
{
    _cleanup_free_ char *host = NULL;
    if (!has_scheme(address))
        return reference_resolve(v->bucket, v->key, address, to, e);
    int rc = reference_parse(address, to, &host, e);
    if (rc != 0 || host == NULL || (v->hosts != NULL && hosts_have(v->hosts, host)))
        return rc;
    reference_done(to);
    return error_set(e, E_UNSUPPORTED,
                     "the image refers to '%.200s': only objects of its own cluster are read",
                     address);
}

int vdisc_object(const struct vdisc *v, uint32_t extent, char **bucket, char **key,
                 struct dfc_error *err)
{
    struct reference to;
    struct error e = ERROR_INIT;
    if (resolve(v, v->table->extents[extent].address, &to, &e) != 0)
        return failure_common(err, e.code == E_IMAGE_DAMAGED ? DFC_CORRUPT : DFC_INVALID, &e);
    *bucket = to.bucket;
    *key = to.key;
    return DFC_OK;
}

/* On its way to a sink: how much it is and, if that is asked for, which bytes. */
struct passing {
    const struct dfc_sink *sink;
    uint64_t written;
    struct checksum *sum; /* or NULL */
};

static int pass(void *context, const void *data, size_t size)
{
    struct passing *p = context;
    p->written += size;
    if (p->sum != NULL)
        checksum_update(p->sum, data, size);
    return p->sink->write(p->sink->context, data, size);
}

static bool has_passed(const struct passing *p, const struct checksum_value *wanted)
{
    struct checksum_value got;
    checksum_final(p->sum, &got);
    return checksum_equal(&got, wanted);
}

static int fail_get(const struct vdisc_extent *e, const char *bucket, const char *key,
                    const struct dfc_error *told, struct dfc_error *err)
{
    if (told->result == DFC_PRECONDITION)
        return failure_set(err, DFC_PRECONDITION, E_IMAGE_STALE,
                           "object '%s/%s' has been replaced since the image was burned (its tag "
                           "was %s): burn the image again",
                           bucket, key, e->etag);
    const int code = error_from_name(told->code);
    if (told->result == DFC_NOT_FOUND)
        return failure_set(err, DFC_NOT_FOUND, code != 0 ? code : E_OBJECT_NOT_FOUND,
                           "object '%s/%s', which the image needs, cannot be found: put the same "
                           "bytes there, or burn the image again (%.300s)",
                           bucket, key, told->message);
    if (told->status == error_status(E_RANGE))
        return failure_set(err, DFC_CORRUPT, E_IMAGE_STALE,
                           "object '%s/%s' is shorter than the image says", bucket, key);
    if (err != NULL)
        *err = *told;
    return told->result;
}

/* `what` of an object, if it has its tag or its bytes. */
static int get_object(struct vdisc *v, const struct vdisc_extent *e, const char *bucket,
                      const char *key, const struct dfc_get_options *what, struct passing *to,
                      struct dfc_error *err)
{
    const struct dfc_sink sink = {.write = pass, .context = to};
    struct dfc_get_options options = *what;
    struct dfc_error told = {0};
    options.if_match = e->etag[0] != '\0' ? e->etag : NULL;
    int rc = dfc_get_sink(v->client, bucket, key, &sink, &options, NULL, &told);
    _cleanup_free_ char *etag =
        rc == DFC_PRECONDITION
            ? same_bytes_etag(v->client, bucket, key, vdisc_extent_size(e), e->checksum)
            : NULL; /* as mounts do */
    options.if_match = etag;
    if (etag != NULL)
        rc = dfc_get_sink(v->client, bucket, key, &sink, &options, NULL, &told);
    return rc == DFC_OK ? DFC_OK : fail_get(e, bucket, key, &told, err);
}

/* `len` bytes of the object, from `offset` on.  The whole is compared with its checksum. */
static int copy_object(struct vdisc *v, uint32_t extent, uint64_t offset, uint64_t len,
                       const struct dfc_sink *sink, struct dfc_error *err)
{
    const struct vdisc_extent *e = &v->table->extents[extent];
    const struct dfc_get_options range = {.offset = (int64_t)offset, .length = len};
    struct checksum_value wanted;
    _cleanup_free_ char *bucket = NULL, *key = NULL;
    if (len == 0)
        return DFC_OK;
    int rc = vdisc_object(v, extent, &bucket, &key, err);
    if (rc != DFC_OK)
        return rc;
    const bool whole = len == vdisc_extent_size(e) && vdisc_extent_checksum(e, &wanted);
    _cleanup_(checksum_freep)
    struct checksum *sum = whole ? checksum_new(wanted.type) : NULL;
    struct passing to = {.sink = sink, .sum = sum};
    rc = get_object(v, e, bucket, key, &range, &to, err);
    if (rc != DFC_OK)
        return rc;
    if (to.written < len)
        return failure_set(err, DFC_CORRUPT, E_IMAGE_STALE,
                           "object '%s/%s' is shorter than the image says", bucket, key);
    if (!whole || has_passed(&to, &wanted))
        return DFC_OK;
    return failure_set(err, DFC_CORRUPT, E_CHECKSUM,
                       "the bytes of object '%s/%s' do not have the checksum that the image has: "
                       "burn the image again",
                       bucket, key);
}

static int put_zeros(uint64_t len, const struct dfc_sink *sink, struct dfc_error *err)
{
    static const uint8_t zeros[ISO_BLOCK];
    for (uint64_t left = len; left > 0;) {
        size_t n = left < sizeof zeros ? (size_t)left : sizeof zeros;
        if (sink->write(sink->context, zeros, n) != 0)
            return failure_set(err, DFC_LOCAL, E_IO, "the image cannot be written");
        left -= n;
    }
    return DFC_OK;
}

int vdisc_check(struct vdisc *v, uint32_t extent, const struct dfc_sink *sink,
                struct dfc_error *err)
{
    static const struct dfc_get_options whole;
    const struct vdisc_extent *e = &v->table->extents[extent];
    _cleanup_free_ char *bucket = NULL, *key = NULL;
    struct passing to = {.sink = sink};
    int rc = vdisc_object(v, extent, &bucket, &key, err);
    if (rc == DFC_OK)
        rc = get_object(v, e, bucket, key, &whole, &to, err);
    if (rc == DFC_OK && to.written != vdisc_extent_size(e))
        return failure_set(err, DFC_CORRUPT, E_IMAGE_STALE,
                           "object '%s/%s' has %llu bytes, and had %llu when the image was burned",
                           bucket, key, (unsigned long long)to.written,
                           (unsigned long long)vdisc_extent_size(e));
    return rc;
}

/* What [offset, offset + len) has of one extent, and of its padding. */
static int copy_extent(struct vdisc *v, uint32_t extent, uint64_t offset, uint64_t len,
                       const struct dfc_sink *sink, struct dfc_error *err)
{
    const uint64_t size = vdisc_extent_size(&v->table->extents[extent]);
    const uint64_t object = offset < size ? size - offset : 0;
    const uint64_t bytes = object < len ? object : len;
    int rc = copy_object(v, extent, offset, bytes, sink, err);
    return rc == DFC_OK ? put_zeros(len - bytes, sink, err) : rc;
}

int vdisc_copy(struct vdisc *v, uint64_t offset, uint64_t len, const struct dfc_sink *sink,
               struct dfc_error *err)
{
    const uint64_t end = v->starts[v->table->count] * ISO_BLOCK;
    if (offset > end || len > end - offset)
        return failure_set(err, DFC_CORRUPT, E_IMAGE_DAMAGED,
                           "the image is damaged: a file is behind its end");
    int rc = DFC_OK;
    while (rc == DFC_OK && len > 0) {
        uint32_t extent = vdisc_extent_of(v, (uint32_t)(offset / ISO_BLOCK));
        const uint64_t next = v->starts[extent + 1] * ISO_BLOCK;
        const uint64_t here = next - offset < len ? next - offset : len;
        rc = copy_extent(v, extent, offset - v->starts[extent] * ISO_BLOCK, here, sink, err);
        offset += here;
        len -= here;
    }
    return rc;
}

int vdisc_copy_file(struct vdisc *v, uint32_t lba, uint64_t size, const struct dfc_sink *sink,
                    struct dfc_error *err)
{
    const struct vdisc_member *m = size > 0 ? vdisc_table_member(v->table, lba) : NULL;
    if (m == NULL)
        return vdisc_copy(v, (uint64_t)lba * ISO_BLOCK, size, sink, err);
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(CHECKSUM_SHA256);
    struct passing to = {.sink = sink, .sum = sum};
    const struct dfc_sink passing = {.write = pass, .context = &to};
    struct checksum_value wanted = {.type = CHECKSUM_SHA256};
    memcpy(wanted.bytes, m->sha256, sizeof m->sha256);
    int rc = vdisc_copy(v, (uint64_t)lba * ISO_BLOCK, size, &passing, err);
    if (rc != DFC_OK || has_passed(&to, &wanted))
        return rc;
    return failure_set(err, DFC_CORRUPT, E_CHECKSUM,
                       "the bytes of the file do not have the checksum that the image has: burn "
                       "the image again");
}

/* --- metadata --------------------------------------------------------------------------------- */

struct memory {
    uint8_t *at;
    size_t left;
};

static int memory_write(void *context, const void *data, size_t size)
{
    struct memory *m = context;
    if (size > m->left)
        return -1;
    memcpy(m->at, data, size);
    m->at += size;
    m->left -= size;
    return 0;
}

/* With the lock held. */
static int load_piece(struct vdisc *v, uint64_t at, size_t len, struct piece *p)
{
    if (p->bytes == NULL)
        p->bytes = xmalloc(PIECE);
    struct memory m = {.at = p->bytes, .left = len};
    const struct dfc_sink sink = {.write = memory_write, .context = &m};
    p->at = EMPTY;
    int rc = vdisc_copy(v, at, len, &sink, &v->failure);
    if (rc == DFC_OK)
        p->at = at;
    return rc;
}

/* A piece begins and ends with its extent, too: contents are not fetched with metadata. */
static int read_piece(struct vdisc *v, uint64_t offset, uint8_t *to, size_t len, struct error *err)
{
    const uint32_t extent = vdisc_extent_of(v, (uint32_t)(offset / ISO_BLOCK));
    const uint64_t begin = v->starts[extent] * ISO_BLOCK, end = v->starts[extent + 1] * ISO_BLOCK;
    const uint64_t at = offset - (offset - begin) % PIECE;
    struct piece *p = &v->pieces[(extent + (at - begin) / PIECE) % PIECES];
    const size_t whole = end - at < PIECE ? (size_t)(end - at) : PIECE;
    if (p->at != at && load_piece(v, at, whole, p) != DFC_OK)
        return error_set(err, error_from_name(v->failure.code), "%s", v->failure.message);
    memcpy(to, p->bytes + (offset - at), len);
    return 0;
}

static int read_block(void *context, uint64_t offset, void *to, size_t len, struct error *err)
{
    struct vdisc *v = context;
    if (offset + len > v->starts[v->table->count] * ISO_BLOCK)
        return error_set(err, E_IMAGE_DAMAGED, "the image is damaged: it ends within a block");
    pthread_mutex_lock(&v->lock);
    int rc = read_piece(v, offset, to, len, err);
    pthread_mutex_unlock(&v->lock);
    return rc;
}

int vdisc_failure(const struct vdisc *v, const struct error *e, struct dfc_error *err)
{
    const bool of_store =
        v->failure.result != DFC_OK && strcmp(v->failure.message, e->message) == 0;
    if (of_store) {
        *err = v->failure;
        return v->failure.result;
    }
    return failure_common(err, e->code == E_NOT_FOUND ? DFC_NOT_FOUND : DFC_CORRUPT, e);
}

/* --- opening ---------------------------------------------------------------------------------- */

static int read_table(struct vdisc *v, struct dfc_error *err)
{
    void *bytes = NULL;
    size_t size = 0;
    struct error e = ERROR_INIT;
    int rc = dfc_get_memory(v->client, v->bucket, v->key, NULL, &bytes, &size, NULL, err);
    if (rc != DFC_OK)
        return rc;
    rc = vdisc_table_read(bytes, size, 0, &v->table, &e);
    dfc_free(bytes);
    if (rc != 0) {
        error_wrap(&e, "'%s/%s'", v->bucket, v->key);
        return failure_common(err, DFC_CORRUPT, &e);
    }
    return DFC_OK;
}

int vdisc_open_table(struct dfc_client *c, const char *bucket, const char *key, struct vdisc **out,
                     struct dfc_error *err)
{
    _cleanup_(vdisc_closep)
    struct vdisc *v = xcalloc(1, sizeof *v);
    v->client = c;
    v->bucket = xstrdup(bucket);
    v->key = xstrdup(key);
    pthread_mutex_init(&v->lock, NULL);
    for (size_t i = 0; i < PIECES; i++)
        v->pieces[i].at = EMPTY;
    int rc = read_table(v, err);
    if (rc != DFC_OK)
        return rc;
    v->starts = vdisc_table_starts(v->table);
    for (uint32_t i = 0; i < v->table->count && v->hosts == NULL && rc == DFC_OK; i++) {
        if (has_scheme(v->table->extents[i].address))
            rc = hosts_load(c, &v->hosts, err);
    }
    if (rc == DFC_OK)
        *out = steal(v);
    return rc;
}

int vdisc_open(struct dfc_client *c, const char *bucket, const char *key, struct vdisc **out,
               struct dfc_error *err)
{
    _cleanup_(vdisc_closep)
    struct vdisc *v = NULL;
    struct error e = ERROR_INIT;
    int rc = vdisc_open_table(c, bucket, key, &v, err);
    if (rc != DFC_OK)
        return rc;
    const struct iso_source source = {
        .read = read_block, .context = v, .size = vdisc_table_size(v->table)};
    if (iso_reader_open(&v->reader, &source, &e) != 0)
        return vdisc_failure(v, &e, err);
    *out = steal(v);
    return DFC_OK;
}

void vdisc_close(struct vdisc *v)
{
    if (v == NULL)
        return;
    for (size_t i = 0; i < PIECES; i++)
        free(v->pieces[i].bytes);
    pthread_mutex_destroy(&v->lock);
    vdisc_table_free(v->table);
    hosts_free(v->hosts);
    free(v->starts);
    free(v->bucket);
    free(v->key);
    free(v);
}
