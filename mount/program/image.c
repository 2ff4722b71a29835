/* A mounted dataset image. */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "api/dfc.h"
#include "common/log.h"
#include "mount/fuse/session.h"
#include "mount/image/image.h"
#include "mount/program/client.h"
#include "mount/program/options.h"
#include "mount/program/program.h"
#include "mount/program/serve.h"

int serve_image(struct mounted *m, struct dfc_client *client)
{
    struct image *im;
    struct dfc_error err;
    sigset_t all, before;
    const struct options *o = m->options;
    const struct image_options options = {
        .bucket = m->bucket,
        .key = m->prefix,
        .buffer_bytes = o->buffer_bytes,
        .readahead_bytes = o->readahead_bytes,
        .fetchers = (unsigned)o->parallel,
        .cache_directories = m->cache_directories,
        .cache_bytes = o->cache_bytes,
        .cache_free_percent = o->cache_free_percent,
        .cache_idle_ms = o->cache_idle_ms,
        .group = serve_group(m),
        .supervisor = m->supervisor,
    };
    /* libfuse waits for a signal in the first thread: others must not get it. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = image_open(&options, client, &im, &err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != DFC_OK)
        return program_fail(client_exit_of(rc), "%s", err.message);
    rc = session_serve_image(m->session, im, serve_ready, m);
    log_info("unmounted", lstr("directory", m->directory), li64("error", -rc));
    dfc_client_cancel(client);
    image_close(im);
    return rc == 0 ? PROGRAM_OK
                   : program_fail(PROGRAM_FAILED, "serve '%s': %s", m->directory, strerror(-rc));
}
