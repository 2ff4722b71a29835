/* A mounted bucket of plogs. */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "api/dfc.h"
#include "common/log.h"
#include "mount/fuse/session.h"
#include "mount/plogs/plogs.h"
#include "mount/program/options.h"
#include "mount/program/client.h"
#include "mount/program/program.h"
#include "mount/program/serve.h"

enum { INFLIGHT_MAX = 64 };

int serve_plogs(struct mounted *m, struct dfc_client *client)
{
    struct plogs *p;
    struct dfc_error err;
    sigset_t all, before;
    const struct options *o = m->options;
    const struct plogs_options options = {
        .bucket = m->bucket,
        .prefix = m->prefix,
        .uid = (uid_t)o->uid,
        .gid = (gid_t)o->gid,
        .directory_mode = (mode_t)o->directory_mode,
        .read_only = o->read_only,
        .segment_bytes = o->segment_bytes,
        .inflight = (unsigned)(o->uploads < INFLIGHT_MAX ? o->uploads : INFLIGHT_MAX),
        .memory_bytes = o->write_bytes,
        .refresh_ms = o->refresh_ms,
        .buffer_bytes = o->buffer_bytes,
        .readahead_bytes = o->readahead_bytes,
        .fetchers = (unsigned)o->parallel,
        .cache_directories = m->cache_directories,
        .cache_bytes = o->cache_bytes,
        .cache_free_percent = o->cache_free_percent,
        .cache_idle_ms = o->cache_idle_ms,
        .supervisor = m->supervisor,
    };
    /* libfuse waits for a signal in the first thread: others must not get it. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = plogs_open(&options, client, &p, &err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != DFC_OK)
        return program_fail(client_exit_of(rc), "%s", err.message);
    rc = session_serve_plogs(m->session, p, serve_ready, m);
    const int closed = plogs_close(p);
    log_info("unmounted", lstr("directory", m->directory), li64("error", -rc));
    if (closed != 0)
        return program_fail(PROGRAM_FAILED, "close the files of '%s': %s", m->directory,
                            strerror(-closed));
    return rc == 0 ? PROGRAM_OK
                   : program_fail(PROGRAM_FAILED, "serve '%s': %s", m->directory, strerror(-rc));
}
