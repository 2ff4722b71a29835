/* Dataset images as block devices: a plugin of nbdkit, which speaks the NBD protocol.
 *
 *     url=dfc://BUCKET/NAME.vdsc    one image, which is opened at once
 *     url=dfc://BUCKET              every image of the bucket: the export's name is the object's
 *
 * Bytes come through the buffer and the disk cache of mount/image/.  An image that has users is
 * open once for all of them.  nbdkit forks before its connections come: threads begin later. */
#define NBDKIT_API_VERSION 2
#include <errno.h>
#include <nbdkit-plugin.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "api/dfc.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "mount/image/settings.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#define SUFFIX ".vdsc"
#define PIECE (1u << 20) /* bytes of a request that only warms the buffer */
#define BLOCK_MOST (32u << 20)

static struct image_settings settings;

/* An image that is open. */
struct disc {
    char *key;
    unsigned users;
    struct vdisc *vdisc;
    struct objects objects;
    struct disc *next;
};

static struct dfc_client *client;
static struct disc *discs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* discs */
static struct disc *kept;                                /* the image of a url that names one */

/* --- settings --------------------------------------------------------------------------------- */

static void plugin_load(void)
{
    settings = image_settings_default;
}

static int plugin_config(const char *key, const char *value)
{
    struct error e = ERROR_INIT;
    if (image_settings_take(&settings, key, value, &e) == 0)
        return 0;
    nbdkit_error("%s", e.message);
    return -1;
}

static int plugin_config_complete(void)
{
    if (settings.bucket != NULL)
        return 0;
    nbdkit_error("url=dfc://BUCKET/NAME.vdsc is missing");
    return -1;
}

/* --- images ----------------------------------------------------------------------------------- */

static void disc_free(struct disc *d)
{
    if (d->vdisc != NULL) {
        objects_close(&d->objects);
        vdisc_close(d->vdisc);
    }
    free(d->key);
    free(d);
}

static struct disc *disc_open(const char *key)
{
    struct dfc_error err = {0};
    const struct objects_options options = image_settings_objects(&settings);
    struct disc *d = xcalloc(1, sizeof *d);
    d->key = xstrdup(key);
    int rc = vdisc_open_table(client, settings.bucket, key, &d->vdisc, &err);
    if (rc == DFC_OK)
        rc = objects_open(&d->objects, &options, d->vdisc, client, &err);
    if (rc == DFC_OK)
        return d;
    nbdkit_error("open image 'dfc://%s/%s': %s", settings.bucket, key, err.message);
    nbdkit_set_error(rc == DFC_NOT_FOUND ? ENOENT : EIO);
    disc_free(d);
    return NULL;
}

/* nbdkit ends by signals to its first thread: threads of images must not get them. */
static struct disc *disc_open_quietly(const char *key)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    struct disc *d = disc_open(key);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return d;
}

static struct disc *disc_get(const char *key)
{
    pthread_mutex_lock(&lock);
    struct disc *d = discs;
    while (d != NULL && strcmp(d->key, key) != 0)
        d = d->next;
    if (d == NULL && (d = disc_open_quietly(key)) != NULL) {
        d->next = discs;
        discs = d;
    }
    if (d != NULL)
        d->users++;
    pthread_mutex_unlock(&lock);
    return d;
}

static void disc_put(struct disc *d)
{
    pthread_mutex_lock(&lock);
    const bool is_last = --d->users == 0;
    if (is_last) {
        struct disc **at = &discs;
        while (*at != d)
            at = &(*at)->next;
        *at = d->next;
    }
    pthread_mutex_unlock(&lock);
    if (is_last)
        disc_free(d);
}

/* --- the life of the server ------------------------------------------------------------------- */

static int plugin_after_fork(void)
{
    struct dfc_error err;
    if (image_settings_client(&settings, "dfc-nbd/" DFC_VERSION, &client, &err) != DFC_OK) {
        nbdkit_error("%s", err.message);
        return -1;
    }
    if (settings.key != NULL)
        kept = disc_get(settings.key);
    return settings.key == NULL || kept != NULL ? 0 : -1;
}

static void plugin_cleanup(void)
{
    if (client != NULL)
        dfc_client_cancel(client);
    if (kept != NULL)
        disc_put(kept);
    kept = NULL;
}

/* nbdkit ends without a wait for connections that are about to close.  Their images have threads:
 * this code stays in memory (-z nodelete), and so does the client. */
static void plugin_unload(void)
{
    if (client != NULL && discs == NULL)
        dfc_client_close(client);
    image_settings_done(&settings);
}

/* --- connections ------------------------------------------------------------------------------ */

static bool is_image(const char *name)
{
    const size_t len = strlen(name), suffix = strlen(SUFFIX);
    return len > suffix && strcmp(name + len - suffix, SUFFIX) == 0;
}

static int plugin_list_exports(int readonly, int is_tls, struct nbdkit_exports *exports)
{
    struct dfc_error err = {0};
    const struct dfc_entry *entry;
    struct dfc_list *list;
    (void)readonly;
    (void)is_tls;
    if (settings.key != NULL)
        return nbdkit_add_export(exports, "", settings.key);
    int rc = dfc_list_open(client, settings.bucket, NULL, &list, &err);
    if (rc == DFC_OK) {
        while ((rc = dfc_list_next(list, &entry, &err)) > 0) {
            if (is_image(entry->name) && nbdkit_add_export(exports, entry->name, NULL) != 0)
                break;
        }
        dfc_list_close(list);
    }
    if (rc < 0)
        nbdkit_error("list bucket '%s': %s", settings.bucket, err.message);
    return rc == 0 ? 0 : -1;
}

static const char *plugin_default_export(int readonly, int is_tls)
{
    (void)readonly;
    (void)is_tls;
    return settings.key != NULL ? "" : NULL;
}

static void *plugin_open(int readonly)
{
    const char *name = settings.key != NULL ? settings.key : nbdkit_export_name();
    (void)readonly;
    if (name != NULL && name[0] != '\0')
        return disc_get(name);
    nbdkit_error("name an export: an object of bucket '%s'", settings.bucket);
    nbdkit_set_error(ENOENT);
    return NULL;
}

static void plugin_close(void *handle)
{
    disc_put(handle);
}

static int64_t plugin_get_size(void *handle)
{
    const struct disc *d = handle;
    return (int64_t)vdisc_table_size(vdisc_table_of(d->vdisc));
}

static int plugin_can_multi_conn(void *handle)
{
    (void)handle;
    return 1; /* nothing changes */
}

static int plugin_can_cache(void *handle)
{
    (void)handle;
    return NBDKIT_CACHE_NATIVE;
}

static int plugin_block_size(void *handle, uint32_t *least, uint32_t *preferred, uint32_t *most)
{
    (void)handle;
    *least = 1;
    *preferred = 4096;
    *most = BLOCK_MOST;
    return 0;
}

static int plugin_pread(void *handle, void *to, uint32_t count, uint64_t offset, uint32_t flags)
{
    struct disc *d = handle;
    const struct objects_read r = {.offset = offset, .size = count};
    (void)flags;
    int rc = objects_read(&d->objects, &r, to);
    if (rc == 0)
        return 0;
    nbdkit_error("read %u bytes at %llu of '%s': %s", count, (unsigned long long)offset, d->key,
                 strerror(-rc));
    nbdkit_set_error(EIO);
    return -1;
}

/* What the client will read comes into the buffer. */
static int plugin_cache(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
    _cleanup_free_ char *piece = xmalloc(PIECE);
    int rc = 0;
    while (rc == 0 && count > 0) {
        const uint32_t here = count < PIECE ? count : PIECE;
        rc = plugin_pread(handle, piece, here, offset, flags);
        offset += here;
        count -= here;
    }
    return rc;
}

/* Padding is zero; whatever the objects have is data. */
static int plugin_extents(void *handle, uint32_t count, uint64_t offset, uint32_t flags,
                          struct nbdkit_extents *extents)
{
    const struct disc *d = handle;
    const struct vdisc_table *t = vdisc_table_of(d->vdisc);
    uint32_t extent = vdisc_extent_of(d->vdisc, (uint32_t)(offset / ISO_BLOCK));
    int rc = 0;
    for (; rc == 0 && extent < t->count; extent++) {
        const uint64_t begin = vdisc_block_of(d->vdisc, extent) * ISO_BLOCK;
        const uint64_t size = vdisc_extent_size(&t->extents[extent]);
        if (begin >= offset + count)
            break;
        rc = size > 0 ? nbdkit_add_extent(extents, begin, size, 0) : 0;
        if (rc == 0 && t->extents[extent].padding > 0)
            rc = nbdkit_add_extent(extents, begin + size, t->extents[extent].padding,
                                   NBDKIT_EXTENT_ZERO);
        if ((flags & NBDKIT_FLAG_REQ_ONE) != 0 && begin + size > offset)
            break;
    }
    return rc;
}

static struct nbdkit_plugin plugin = {
    .name = "dfc-vdisc",
    .version = DFC_VERSION,
    .longname = "dataset images of a dfc cluster",
    .description = "Serves dataset images (vdisc), read-only.",
    .load = plugin_load,
    .config = plugin_config,
    .config_complete = plugin_config_complete,
    .config_help = IMAGE_SETTINGS_HELP,
    .magic_config_key = "url",
    .after_fork = plugin_after_fork,
    .cleanup = plugin_cleanup,
    .unload = plugin_unload,
    .list_exports = plugin_list_exports,
    .default_export = plugin_default_export,
    .open = plugin_open,
    .close = plugin_close,
    .get_size = plugin_get_size,
    .can_multi_conn = plugin_can_multi_conn,
    .can_cache = plugin_can_cache,
    .block_size = plugin_block_size,
    .pread = plugin_pread,
    .cache = plugin_cache,
    .extents = plugin_extents,
};

/* The macro defines a function of another linkage. */
struct nbdkit_plugin *plugin_init(void);
NBDKIT_REGISTER_PLUGIN(plugin)
