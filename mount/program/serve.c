/* What a process of the supervisor does: client, bucket, and the kernel's calls. */
#include "mount/program/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/client.h"
#include "cache/cache.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "mount/fuse/session.h"
#include "mount/meta/engines.h"
#include "mount/program/client.h"
#include "mount/program/options.h"
#include "mount/program/program.h"
#include "mount/vfs/vfs.h"

#define START_TRIES 5 /* as dfcctl, until the mount is there */

/* Standard input, output and errors are the caller's: a pipe there ends when the caller returns.
 * So is the directory.  Errors go to the log from then on. */
static int leave_caller(const struct mounted *m)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(m->log >= 0 ? m->log : null, STDERR_FILENO) < 0 || chdir("/") != 0)
        return program_fail(PROGRAM_FAILED, "leave the terminal: %s", strerror(errno));
    close(null);
    return PROGRAM_OK;
}

void serve_started(void *context)
{
    const struct mounted *m = context;
    if (m->ready >= 0)
        leave_caller(m);
}

void serve_ready(void *context)
{
    struct mounted *m = context;
    client_attempts(m->client, client_tries(m->options));
    if (m->ready >= 0) {
        const char code = PROGRAM_OK;
        if (leave_caller(m) != PROGRAM_OK || write(m->ready, &code, 1) != 1)
            raise(SIGTERM); /* the caller was killed */
        close(m->ready);
    }
    _cleanup_free_ char *shown = engines_shown(m->options->url);
    log_info("mounted", lstr("url", shown), lstr("directory", m->directory));
}

struct group_reader_options serve_group(const struct mounted *m)
{
    const struct options *o = m->options;
    return (struct group_reader_options){
        .group = o->cache_group,
        .key_file = m->group_key_file,
        .refresh_ms = o->group_refresh_ms,
        .connect_ms = o->group_connect_ms,
        .wait_ms = o->group_wait_ms,
    };
}

static int serve_vfs(struct mounted *m, struct vfs *v)
{
    int rc = session_serve(m->session, v, serve_ready, m);
    log_info("unmounted", lstr("directory", m->directory), li64("error", -rc));
    return rc == 0 ? PROGRAM_OK
                   : program_fail(PROGRAM_FAILED, "serve '%s': %s", m->directory, strerror(-rc));
}

static int serve_client(struct mounted *m, struct dfc_client *client)
{
    struct dfc_error err;
    struct vfs *v;
    sigset_t all, before;
    const struct options *o = m->options;
    const struct vfs_options options = {
        .bucket = m->bucket,
        .prefix = m->prefix,
        .buffer_bytes = o->buffer_bytes,
        .readahead_bytes = o->readahead_bytes,
        .fetchers = (unsigned)o->parallel,
        .uid = (uid_t)o->uid,
        .gid = (gid_t)o->gid,
        .file_mode = (mode_t)o->file_mode,
        .directory_mode = (mode_t)o->directory_mode,
        .cache_directories = m->cache_directories,
        .cache_bytes = o->cache_bytes,
        .cache_free_percent = o->cache_free_percent,
        .cache_idle_ms = o->cache_idle_ms,
        .group = serve_group(m),
        .writable = o->writable,
        .writing =
            {
                .bytes = o->write_bytes,
                .part_bytes = o->part_bytes,
                .wait_ms = o->write_wait_ms,
                .senders = (unsigned)o->parallel,
            },
        .opened_s = m->opened_s,
        .ledger = m->ledger,
        .supervisor = m->supervisor,
    };
    /* libfuse waits for a signal in the first thread: others must not get it. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = vfs_open(&options, client, &v, &err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != DFC_OK)
        return program_fail(client_exit_of(rc), "%s", err.message);
    int code = serve_vfs(m, v);
    dfc_client_cancel(client);
    vfs_close(v);
    return code;
}

/* Also by a process before. */
static bool has_served(const struct mounted *m)
{
    return m->disk != NULL ? disk_has_served(m->disk) : session_has_served(m->session);
}

/* A disk that failed since the mount began does not end it. */
static void drop_failed_caches(struct mounted *m)
{
    if (m->cache_directories != NULL && has_served(m))
        m->cache_directories = cache_usable(m->cache_directories); /* until the process ends */
}

int serve(struct mounted *m)
{
    struct dfc_client *client;
    drop_failed_caches(m);
    int code = client_open(m->options, m->ca_file, SERVE_THREADS, &client);
    if (code != PROGRAM_OK)
        return code;
    m->client = client;
    if (!has_served(m) && !options_given(m->options, "retries"))
        client_attempts(client, START_TRIES);
    code = m->disk != NULL     ? serve_disk(m, client)
           : m->image          ? serve_image(m, client)
           : m->plogs          ? serve_plogs(m, client)
           : m->bucket != NULL ? serve_client(m, client)
                               : serve_volume(m, client);
    dfc_client_close(client);
    return code;
}
