#include "mount/image/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/failure.h"
#include "common/buf.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "mount/image/image_parts.h"

#define OWN "user.dfc."
#define STATFS_BLOCK ISO_BLOCK
#define DOTS 2 /* "." and ".." have the first two places of a directory */

/* --- opening ---------------------------------------------------------------------------------- */

/* The reader takes codes of common/: EINTR and the like are passed as what they are not lost by. */
static int read_metadata(void *context, uint64_t offset, void *to, size_t len, struct error *err)
{
    struct image *im = context;
    const struct objects_read r = {.offset = offset, .size = len, .metadata = true};
    int rc = objects_read(&im->objects, &r, to);
    return rc == 0 ? 0 : error_errno(err, -rc, "read the image's header");
}

static int open_reader(struct image *im, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    const struct iso_source source = {
        .read = read_metadata, .context = im, .size = vdisc_table_size(vdisc_table_of(im->vdisc))};
    if (iso_reader_open(&im->reader, &source, &e) != 0)
        return failure_common(err, DFC_CORRUPT, &e);
    places_init(&im->places, &im->reader, PLACES_LIMIT);
    return DFC_OK;
}

int image_open(const struct image_options *options, struct dfc_client *client, struct image **out,
               struct dfc_error *err)
{
    struct image *im = xcalloc(1, sizeof *im);
    const struct objects_options objects = {.buffer_bytes = options->buffer_bytes,
                                            .readahead_bytes = options->readahead_bytes,
                                            .fetchers = options->fetchers,
                                            .cache_directories = options->cache_directories,
                                            .cache_bytes = options->cache_bytes,
                                            .cache_free_percent = options->cache_free_percent,
                                            .cache_idle_ms = options->cache_idle_ms,
                                            .group = options->group};
    im->options = *options;
    int rc = vdisc_open_table(client, options->bucket, options->key, &im->vdisc, err);
    if (rc != DFC_OK) {
        free(im);
        return rc;
    }
    rc = objects_open(&im->objects, &objects, im->vdisc, client, err);
    if (rc == DFC_OK)
        rc = open_reader(im, err);
    if (rc == DFC_OK) {
        *out = im;
        return DFC_OK;
    }
    objects_close(&im->objects);
    vdisc_close(im->vdisc);
    free(im);
    return rc;
}

void image_close(struct image *im)
{
    if (im == NULL)
        return;
    places_done(&im->places);
    objects_close(&im->objects);
    vdisc_close(im->vdisc);
    free(im);
}

/* --- nodes ------------------------------------------------------------------------------------ */

int image_error(const struct image *im, const struct error *e)
{
    if (e->code == E_NOT_FOUND)
        return -ENOENT;
    log_error("image cannot be read", lstr("bucket", im->options.bucket),
              lstr("image", im->options.key), lerr(e));
    return -EIO;
}

int image_entry_of(struct image *im, uint64_t node, struct iso_found *out)
{
    struct error e = ERROR_INIT;
    if (node == IMAGE_ROOT) {
        iso_reader_root(&im->reader, out);
        return 0;
    }
    return iso_reader_record(&im->reader, node, out, &e) == 0 ? 0 : image_error(im, &e);
}

void image_stat(uint64_t node, const struct iso_found *f, struct stat *st)
{
    static const mode_t kinds[] = {
        [ISO_FILE] = S_IFREG, [ISO_DIRECTORY] = S_IFDIR, [ISO_LINK] = S_IFLNK};
    const uint64_t size = f->kind == ISO_LINK ? strlen(f->target) : f->size;
    *st = (struct stat){
        .st_ino = node,
        .st_mode = kinds[f->kind] | (f->mode & 07777),
        .st_nlink = 1,
        .st_uid = f->uid,
        .st_gid = f->gid,
        .st_size = (off_t)size,
        .st_blksize = ENTITY_BLOCK,
        .st_blocks = (blkcnt_t)((size + 511) / 512),
        .st_atim = {.tv_sec = f->mtime_s},
        .st_mtim = {.tv_sec = f->mtime_s},
        .st_ctim = {.tv_sec = f->mtime_s},
    };
}

int image_lookup(struct image *im, uint64_t parent, const char *name, uint64_t *node,
                 struct stat *st)
{
    struct iso_found directory, found;
    struct error e = ERROR_INIT;
    int rc = image_entry_of(im, parent, &directory);
    if (rc != 0)
        return rc;
    if (directory.kind != ISO_DIRECTORY)
        return -ENOTDIR;
    if (places_find(&im->places, &directory, name, &found, &e) != 0)
        return image_error(im, &e);
    *node = found.record;
    image_stat(found.record, &found, st);
    return 0;
}

int image_getattr(struct image *im, uint64_t node, struct stat *st)
{
    struct iso_found f;
    int rc = image_entry_of(im, node, &f);
    if (rc == 0)
        image_stat(node, &f, st);
    return rc;
}

int image_readlink(struct image *im, uint64_t node, char **target)
{
    struct iso_found f;
    int rc = image_entry_of(im, node, &f);
    if (rc == 0 && f.kind != ISO_LINK)
        rc = -EINVAL;
    if (rc == 0)
        *target = xstrdup(f.target);
    return rc;
}

void image_statfs(const struct image *im, struct statvfs *out)
{
    *out = (struct statvfs){
        .f_bsize = STATFS_BLOCK,
        .f_frsize = STATFS_BLOCK,
        .f_blocks = vdisc_table_size(vdisc_table_of(im->vdisc)) / STATFS_BLOCK,
        .f_namemax = ISO_NAME_MAX,
    };
}

/* --- attributes ------------------------------------------------------------------------------- */

static char *object_of(const struct image *im, const struct iso_found *f)
{
    _cleanup_free_ char *bucket = NULL, *key = NULL;
    const uint32_t extent = f->kind == ISO_FILE ? vdisc_extent_of(im->vdisc, f->lba) : UINT32_MAX;
    if (extent == UINT32_MAX || vdisc_object(im->vdisc, extent, &bucket, &key, NULL) != DFC_OK)
        return NULL;
    return xprintf("dfc://%s/%s", bucket, key);
}

static char *stats(const struct image *im)
{
    struct buf text = BUF_INIT;
    metric_set(metric_get(M_mount_buffer_used_bytes, NULL), (int64_t)objects_used(&im->objects));
    metrics_text_used(&text);
    return buf_steal(&text);
}

/* NULL: the root has no such, or the supervisor has died. */
static char *root_value(const struct image *im, const char *name)
{
    if (strcmp(name, "object") == 0)
        return xprintf("dfc://%s/%s", im->options.bucket, im->options.key);
    if (strcmp(name, "pid") == 0)
        return xprintf("%d", (int)getpid());
    if (strcmp(name, "supervisor") == 0 && im->options.supervisor == getppid())
        return xprintf("%d", (int)im->options.supervisor);
    return strcmp(name, "stats") == 0 ? stats(im) : NULL;
}

static char *value_of(const struct image *im, uint64_t node, const struct iso_found *f,
                      const char *name)
{
    if (node == IMAGE_ROOT)
        return root_value(im, name);
    return strcmp(name, "object") == 0 ? object_of(im, f) : NULL;
}

int image_getxattr(struct image *im, uint64_t node, const char *name, char **value)
{
    struct iso_found f;
    if (strncmp(name, OWN, strlen(OWN)) != 0)
        return -ENODATA;
    int rc = image_entry_of(im, node, &f);
    if (rc != 0)
        return rc;
    *value = value_of(im, node, &f, name + strlen(OWN));
    return *value != NULL ? 0 : -ENODATA;
}

int image_listxattr(struct image *im, uint64_t node, char **names, size_t *size)
{
    static const char *const listed[] = {"object", "pid", "supervisor"};
    struct buf out = BUF_INIT;
    struct iso_found f;
    int rc = image_entry_of(im, node, &f);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++) {
        _cleanup_free_ char *value = value_of(im, node, &f, listed[i]);
        if (value == NULL)
            continue;
        buf_printf(&out, OWN "%s", listed[i]);
        buf_append(&out, "", 1);
    }
    *size = out.len;
    *names = buf_steal(&out);
    return 0;
}

/* --- directories ------------------------------------------------------------------------------ */

#define FULL 1

struct filling {
    uint64_t begin; /* of the directory, in the image */
    bool (*fill)(void *context, const struct image_entry *e);
    void *context;
};

static int fill_entry(void *context, const struct iso_found *f, struct error *err)
{
    const struct filling *l = context;
    struct image_entry e = {.name = f->name, .node = f->record, .next = f->next - l->begin + DOTS};
    (void)err;
    image_stat(f->record, f, &e.st);
    return l->fill(l->context, &e) ? 0 : FULL;
}

/* Of "..", the kernel knows the number better. */
static bool fill_dots(const struct filling *l, uint64_t node, uint64_t *offset)
{
    static const char *const names[DOTS] = {".", ".."};
    while (*offset < DOTS) {
        const struct image_entry e = {.name = names[*offset],
                                      .node = *offset == 0 ? node : IMAGE_ROOT,
                                      .next = *offset + 1,
                                      .st = {.st_mode = S_IFDIR, .st_ino = node}};
        if (!l->fill(l->context, &e))
            return false;
        ++*offset;
    }
    return true;
}

int image_readdir(struct image *im, uint64_t node, uint64_t offset,
                  bool (*fill)(void *context, const struct image_entry *e), void *context)
{
    struct iso_found directory;
    struct error e = ERROR_INIT;
    int rc = image_entry_of(im, node, &directory);
    if (rc != 0)
        return rc;
    struct filling l = {
        .begin = (uint64_t)directory.lba * ISO_BLOCK, .fill = fill, .context = context};
    if (directory.kind != ISO_DIRECTORY)
        return -ENOTDIR;
    if (!fill_dots(&l, node, &offset))
        return 0;
    rc = iso_reader_list_from(&im->reader, &directory, l.begin + offset - DOTS, fill_entry, &l, &e);
    return rc == 0 || rc == FULL ? 0 : image_error(im, &e);
}

/* --- files ------------------------------------------------------------------------------------ */

ssize_t image_read(struct image *im, uint64_t node, const struct image_read *r, void *to)
{
    struct iso_found f;
    int rc = image_entry_of(im, node, &f);
    if (rc != 0)
        return rc;
    if (f.kind != ISO_FILE)
        return -EISDIR;
    if (r->offset >= f.size)
        return 0;
    const uint64_t left = f.size - r->offset;
    const struct objects_read what = {.offset = (uint64_t)f.lba * ISO_BLOCK + r->offset,
                                      .size = left < r->size ? (size_t)left : r->size,
                                      .interrupted = r->interrupted,
                                      .context = r->context};
    rc = objects_read(&im->objects, &what, to);
    if (rc == 0)
        return (ssize_t)what.size;
    if (rc != -EINTR)
        log_error("file of the image cannot be read", lstr("file", f.name),
                  lstr("error", strerror(-rc)));
    return rc == -EINTR || rc == -EACCES ? rc : -EIO;
}
