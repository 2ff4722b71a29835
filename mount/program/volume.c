/* A mounted volume: engine, volume, bucket and files, each over the one before. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/dfc.h"
#include "common/clock.h"
#include "common/log.h"
#include "mount/bucket/change.h"
#include "mount/bucket/names.h"
#include "mount/bucket/store.h"
#include "mount/bucket/tree.h"
#include "mount/data/tiers.h"
#include "mount/fuse/session.h"
#include "mount/meta/engines.h"
#include "mount/program/client.h"
#include "mount/program/dumps.h"
#include "mount/program/options.h"
#include "mount/program/program.h"
#include "mount/program/serve.h"
#include "mount/volfs/volfs.h"

enum { METADATA_WAIT_MS = 60000, METADATA_PAUSE_MS = 1000 };

/* ---- the store ---- */

static int store_put(void *context, const char *key, const void *data, size_t size)
{
    static const struct write_condition absent = {.if_match = NULL};
    const struct write_store objects = tree_store(context);
    _cleanup_free_ char *etag = NULL;
    return objects.put(context, key, data, size, &absent, &etag);
}

static int store_remove(void *context, const char *key)
{
    return tree_delete(context, key);
}

/* ---- layers ---- */

static int serve_files(struct mounted *m, struct volfs *files)
{
    int rc = session_serve_volume(m->session, files, serve_ready, m);
    log_info("unmounted", lstr("directory", m->directory), li64("error", -rc));
    return rc == 0 ? PROGRAM_OK
                   : program_fail(PROGRAM_FAILED, "serve '%s': %s", m->directory, strerror(-rc));
}

static int serve_tree(struct mounted *m, struct tree *tree, struct group_reader *group,
                      struct volume *v)
{
    struct volfs *files;
    struct error err = ERROR_INIT;
    const struct options *o = m->options;
    const uint64_t fill_bytes = o->buffer_bytes / TIERS_FILL_SHARE;
    const struct volfs_options options = {
        .buffer_bytes = o->buffer_bytes - (m->cache_directories != NULL ? fill_bytes : 0),
        .readahead_bytes = o->readahead_bytes,
        .fetchers = (unsigned)o->parallel,
        .write_bytes = o->write_bytes,
        .uploads = (unsigned)o->uploads,
        .flush_ms = 5000,
        .clean_ms = 60000,
        .ledger = m->ledger,
        .cache =
            {
                .directories = m->cache_directories,
                .bytes = o->cache_bytes,
                .fill_bytes = fill_bytes,
                .free_percent = o->cache_free_percent,
                .idle_ms = o->cache_idle_ms,
            },
    };
    const struct volfs_store store = {
        .reads = {.context = tree, .fetch = tree_fetch},
        .group = group,
        .context = tree,
        .put = store_put,
        .remove = store_remove,
    };
    sigset_t all, before;
    /* libfuse waits for a signal in the first thread: others must not get it. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = volfs_open(&options, v, &store, &files, &err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return program_fail(PROGRAM_FAILED, "%s", err.message);
    int code = serve_files(m, files);
    volfs_close(files);
    return code;
}

static int open_group(struct mounted *m, struct tree *tree, struct group_reader **group,
                      struct error *err)
{
    const struct data_store bucket = {.context = tree, .fetch = tree_fetch};
    _cleanup_free_ char *scope = tree_scope(tree);
    struct group_reader_options options = serve_group(m);
    sigset_t all, before;
    options.client = tree->client;
    options.bucket = tree->bucket;
    options.scope = scope;
    if (options.group == NULL)
        return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = group_reader_open(&options, &bucket, group, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* The group's thread may be in a call, which is cancelled once all bytes are stored. */
static int serve_grouped(struct mounted *m, struct tree *tree, struct volume *v)
{
    struct group_reader *group = NULL;
    struct error err = ERROR_INIT;
    if (open_group(m, tree, &group, &err) != 0)
        return program_fail(PROGRAM_FAILED, "%s", err.message);
    int code = serve_tree(m, tree, group, v);
    dfc_client_cancel(tree->client);
    group_reader_close(group);
    return code;
}

static int serve_bucket(struct mounted *m, struct dfc_client *client, struct volume *v,
                        struct meta *meta)
{
    struct tree tree;
    struct dumps *dumps;
    struct dfc_error err;
    _cleanup_free_ char *bucket = NULL;
    _cleanup_free_ char *prefix = NULL;
    const char *url = volume_format(v)->bucket;
    if (!name_parse_url(url, &bucket, &prefix))
        return program_fail(PROGRAM_FAILED, "the volume's bucket '%s' is not dfc://BUCKET", url);
    int rc = tree_open(&tree, client, bucket, "", &err);
    if (rc != DFC_OK)
        return program_fail(client_exit_of(rc), "%s", err.message);
    int code = dumps_start(m, v, meta, bucket, &dumps);
    if (code == PROGRAM_OK)
        code = serve_grouped(m, &tree, v);
    dumps_end(dumps);
    tree_close(&tree);
    return code;
}

/* ---- metadata ---- */

static int open_once(struct mounted *m, struct meta **meta, struct volume **v, struct error *err)
{
    struct volume_env env;
    volume_env_init(&env);
    env.memory = m->calls;
    int rc = engines_open(m->options->url, false, meta, err);
    if (rc != 0)
        return rc;
    rc = volume_open(*meta, &env, v, err);
    if (rc != 0)
        meta_close(*meta);
    return rc;
}

/* A mount that begins fails at once.  Programs wait for one that goes on, as they wait for metadata
 * that are away: a minute. */
static int open_volume(struct mounted *m, struct meta **meta, struct volume **v, struct error *err)
{
    const uint64_t until_ms = clock_ms() + METADATA_WAIT_MS;
    int rc = open_once(m, meta, v, err);
    while (rc != 0 && rc != E_NOT_FOUND && rc != E_CORRUPT && session_has_served(m->session) &&
           clock_ms() < until_ms) {
        log_warn("the metadata are away: they are asked again", lerr(err));
        poll(NULL, 0, METADATA_PAUSE_MS);
        rc = open_once(m, meta, v, err);
    }
    return rc;
}

int serve_volume(struct mounted *m, struct dfc_client *client)
{
    struct meta *meta;
    struct volume *v;
    struct error err = ERROR_INIT;
    int rc = open_volume(m, &meta, &v, &err);
    if (rc != 0)
        return program_fail(client_exit_of_code(rc), "%s", err.message);
    int code = serve_bucket(m, client, v, meta);
    if (code != PROGRAM_OK && session_can_go_on(m->session))
        volume_leave(v); /* its locks are those of the process that follows */
    else
        volume_close(v);
    meta_close(meta);
    return code;
}
