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
#include "common/parse.h"
#include "mount/image/objects.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#define SCHEME "dfc://"
#define SUFFIX ".vdsc"
#define PIECE (1u << 20) /* bytes of a request that only warms the buffer */
#define BLOCK_MOST (32u << 20)
#define BUFFER_LEAST (8u << 20)

static struct {
    char *bucket, *key; /* key: NULL: the export's name */
    char *endpoint, *profile, *ca_file;
    bool insecure;
    uint64_t retries, parallel, readahead_bytes;
    char *cache_directories;
    uint64_t buffer_bytes, cache_bytes, cache_free_percent;
} settings = {
    .retries = 20,
    .parallel = 16,
    .readahead_bytes = 32u << 20,
    .buffer_bytes = 300u << 20,
    .cache_bytes = 100ull << 30,
    .cache_free_percent = 10,
};

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

static int config_url(const char *value)
{
    if (strncmp(value, SCHEME, strlen(SCHEME)) != 0 || value[strlen(SCHEME)] == '/' ||
        value[strlen(SCHEME)] == '\0') {
        nbdkit_error("url '%s' is not dfc://BUCKET/NAME.vdsc or dfc://BUCKET", value);
        return -1;
    }
    const char *bucket = value + strlen(SCHEME);
    const size_t len = strcspn(bucket, "/");
    free(settings.bucket);
    free(settings.key);
    settings.bucket = xstrndup(bucket, len);
    settings.key = bucket[len] == '/' && bucket[len + 1] != '\0' ? xstrdup(bucket + len + 1) : NULL;
    return 0;
}

static int config_text(const char *key, const char *value)
{
    static const struct {
        const char *key;
        char **to;
    } texts[] = {
        {"endpoint", &settings.endpoint},
        {"profile", &settings.profile},
        {"ca-file", &settings.ca_file},
        {"cache-dir", &settings.cache_directories},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(key, texts[i].key) != 0)
            continue;
        free(*texts[i].to);
        *texts[i].to = xstrdup(value);
        return 0;
    }
    return 1;
}

static int config_number(const char *key, const char *value)
{
    static const struct {
        const char *key;
        uint64_t *to;
        bool is_size;
        uint64_t least, most;
    } numbers[] = {
        {"retries", &settings.retries, false, 0, 1000},
        {"parallel", &settings.parallel, false, 1, 256},
        {"cache-free", &settings.cache_free_percent, false, 0, 99},
        {"buffer-size", &settings.buffer_bytes, true, BUFFER_LEAST, 1ull << 50},
        {"max-readahead", &settings.readahead_bytes, true, 0, 1ull << 40},
        {"cache-size", &settings.cache_bytes, true, 16u << 20, 1ull << 60},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct error e = ERROR_INIT;
        if (strcmp(key, numbers[i].key) != 0)
            continue;
        int rc = numbers[i].is_size ? parse_size(value, numbers[i].to, &e)
                                    : parse_u64(value, numbers[i].to, &e);
        if (rc == 0 && *numbers[i].to >= numbers[i].least && *numbers[i].to <= numbers[i].most)
            return 0;
        nbdkit_error("%s=%s: %s", key, value, rc != 0 ? e.message : "it is out of range");
        return -1;
    }
    nbdkit_error("there is no parameter '%s'", key);
    return -1;
}

static int plugin_config(const char *key, const char *value)
{
    if (strcmp(key, "url") == 0)
        return config_url(value);
    if (strcmp(key, "insecure") == 0) {
        int on = nbdkit_parse_bool(value);
        settings.insecure = on > 0;
        return on < 0 ? -1 : 0;
    }
    int rc = config_text(key, value);
    return rc <= 0 ? rc : config_number(key, value);
}

static int plugin_config_complete(void)
{
    if (settings.bucket != NULL)
        return 0;
    nbdkit_error("url=dfc://BUCKET/NAME.vdsc is missing");
    return -1;
}

#define CONFIG_HELP                                                                     \
    "url=dfc://BUCKET/NAME.vdsc   the image, or dfc://BUCKET: all of them (required)\n" \
    "endpoint=, profile=, ca-file=, insecure=, retries=, parallel=, buffer-size=,\n"    \
    "max-readahead=, cache-dir=, cache-size=, cache-free=   as the flags of dfcctl vdisc serve"

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
    const struct objects_options options = {.buffer_bytes = settings.buffer_bytes,
                                            .readahead_bytes = settings.readahead_bytes,
                                            .fetchers = (unsigned)settings.parallel,
                                            .cache_directories = settings.cache_directories,
                                            .cache_bytes = settings.cache_bytes,
                                            .cache_free_percent = settings.cache_free_percent,
                                            .cache_idle_ms = 3600u * 1000};
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
    const struct dfc_client_options options = {
        .endpoints = settings.endpoint,
        .attempts = (uint32_t)settings.retries + 1,
        .idle_connections = (uint32_t)settings.parallel + 4,
        .user_agent = "dfc-nbd/" DFC_VERSION,
        .cluster_key_file = "",
        .ca_file = settings.ca_file,
        .profile = settings.profile,
        .keep_token = true,
        .insecure = settings.insecure,
    };
    if (dfc_client_open(&options, &client, &err) != DFC_OK) {
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

static void plugin_unload(void)
{
    if (client != NULL)
        dfc_client_close(client);
    free(settings.bucket);
    free(settings.key);
    free(settings.endpoint);
    free(settings.profile);
    free(settings.ca_file);
    free(settings.cache_directories);
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
    .config = plugin_config,
    .config_complete = plugin_config_complete,
    .config_help = CONFIG_HELP,
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
