#include "api/ctl/sync/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "api/ctl/copy_object.h"
#include "api/ctl/files/fetch.h"
#include "api/ctl/files/landing.h"
#include "api/ctl/upload/upload.h"
#include "api/failure.h"
#include "common/checksum.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/utf8.h"

static char *key_of(const struct sync_end *end, const char *name)
{
    return xprintf("%s%s", end->name.key, name);
}

/* ---- comparing ---- */

static int read_checksum(int fd, struct checksum *sum)
{
    enum { BLOCK = 256 << 10 };
    _cleanup_free_ char *block = xcalloc(1, BLOCK);
    ssize_t n;
    while ((n = read(fd, block, BLOCK)) > 0)
        checksum_update(sum, block, (size_t)n);
    return n == 0 ? 0 : -1;
}

int sync_read_file(const struct sync_end *files, const char *name, const struct sync_entry *object,
                   bool *same, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct checksum_value have, want;
    enum checksum_type type = CHECKSUM_NONE;
    _cleanup_free_ char *path = xprintf("%s/%s", files->path, name);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (checksum_from_name(object->checksum_type, &type, &e) != 0)
        return failure_common(err, DFC_LOCAL, &e);
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(type);
    if (fd < 0 || read_checksum(fd, sum) != 0) {
        error_errno(&e, errno, "read '%s'", path);
        return failure_common(err, DFC_LOCAL, &e);
    }
    checksum_final(sum, &have);
    *same =
        checksum_parse(type, object->checksum, &want, NULL) == 0 && checksum_equal(&have, &want);
    return DFC_OK;
}

/* ---- sending ---- */

static int fetch(struct dfc_client *client, const struct sync_end *from, const struct sync_end *to,
                 const struct sync_entry *entry, const struct dfc_get_options *options,
                 struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    _cleanup_free_ char *key = key_of(from, entry->name);
    _cleanup_(landing_done)
    struct landing l = LANDING_INIT;
    if (name_check_local(entry->name, &e) != 0 ||
        landing_open_below(&l, to->root, entry->name, &e) != 0)
        return failure_common(err, DFC_LOCAL, &e);
    l.modified_ms = entry->modified_ms;
    return fetch_object(client, from->name.bucket, key, &l, options, NULL, err);
}

static int store(struct dfc_client *client, const struct sync_end *from, const struct sync_end *to,
                 const struct sync_entry *entry, struct progress_part *part, struct dfc_error *err)
{
    _cleanup_free_ char *path = xprintf("%s/%s", from->path, entry->name);
    _cleanup_free_ char *key = key_of(to, entry->name);
    if (!utf8_valid(key, strlen(key)))
        return failure_set(err, DFC_LOCAL, E_NAME, "the name is not UTF-8");
    static const struct dfc_put_options options;
    const struct upload_order order = {.client = client,
                                       .path = path,
                                       .bucket = to->name.bucket,
                                       .key = key,
                                       .options = &options,
                                       .progress = part,
                                       .part_size = from->part_size,
                                       .parallel = 1};
    struct dfc_object_info *info = NULL;
    uint64_t resumed;
    int rc = upload_file(&order, &resumed, &info, err);
    dfc_object_info_free(info);
    return rc;
}

int sync_send(struct dfc_client *client, const struct sync_end *from, const struct sync_end *to,
              const struct sync_entry *entry, struct progress_part *part, struct dfc_error *err)
{
    const struct dfc_get_options get = {.progress = progress_part_moved, .progress_context = part};
    if (to->path != NULL)
        return fetch(client, from, to, entry, &get, err);
    if (from->path != NULL)
        return store(client, from, to, entry, part, err);
    uint64_t bytes;
    _cleanup_free_ char *key = key_of(from, entry->name);
    _cleanup_free_ char *new_key = key_of(to, entry->name);
    const struct object_name source = {from->name.bucket, key};
    const struct object_name copy = {to->name.bucket, new_key};
    return copy_object(client, &source, &copy, progress_part_moved, part, &bytes, err);
}

/* ---- removing ---- */

int sync_remove(struct dfc_client *client, const struct sync_end *to, const char *name,
                struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    if (to->path != NULL)
        return landing_remove_below(to->root, name, &e) == 0 ? DFC_OK
                                                             : failure_common(err, DFC_LOCAL, &e);
    _cleanup_free_ char *key = key_of(to, name);
    int rc = dfc_delete(client, to->name.bucket, key, err);
    return rc == DFC_NOT_FOUND ? DFC_OK : rc;
}
