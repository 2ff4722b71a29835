#include "mount/program/dumps.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/dfc.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "mount/program/client.h"
#include "mount/program/options.h"
#include "mount/program/program.h"
#include "mount/program/serve.h"
#include "mount/volfs/dumper.h"

struct dumps {
    struct dfc_client *client;
    char *bucket;
    struct dumper *dumper;
};

/* ---- the bucket ---- */

static int fail(const struct dfc_error *from, struct error *err)
{
    return error_set(err, E_IO, "%s", from->message);
}

static int store_list(void *context, const char *prefix, void (*each)(void *to, const char *key),
                      void *to, struct error *err)
{
    const struct dumps *d = context;
    const struct dfc_list_options options = {.prefix = prefix};
    const struct dfc_entry *e;
    struct dfc_list *list;
    struct dfc_error error;
    int rc = dfc_list_open(d->client, d->bucket, &options, &list, &error);
    if (rc != DFC_OK)
        return fail(&error, err);
    while ((rc = dfc_list_next(list, &e, &error)) > 0)
        each(to, e->name);
    dfc_list_close(list);
    return rc == DFC_OK ? 0 : fail(&error, err);
}

static int store_put(void *context, const char *key, int fd, struct error *err)
{
    static const struct dfc_put_options options = {.content_type = "application/gzip"};
    const struct dumps *d = context;
    struct dfc_error error;
    if (lseek(fd, 0, SEEK_SET) != 0)
        return error_errno(err, errno, "rewind the dump");
    return dfc_put_fd(d->client, d->bucket, key, fd, &options, NULL, &error) == DFC_OK
               ? 0
               : fail(&error, err);
}

static int store_remove(void *context, const char *key, struct error *err)
{
    const struct dumps *d = context;
    struct dfc_error error;
    int rc = dfc_delete(d->client, d->bucket, key, &error);
    return rc == DFC_OK || rc == DFC_NOT_FOUND ? 0 : fail(&error, err);
}

/* ---- life ---- */

int dumps_start(const struct mounted *m, struct volume *v, struct meta *meta, const char *bucket,
                struct dumps **out)
{
    const struct options *o = m->options;
    const struct dumper_options options = {.every_ms = o->dump_every_ms, .keep = o->dump_keep};
    struct error err = ERROR_INIT;
    struct dfc_client *client;
    *out = NULL;
    if (o->dump_every_ms == 0 || o->read_only)
        return PROGRAM_OK;
    int code = client_open(o, m->ca_file, 1, &client);
    if (code != PROGRAM_OK)
        return code;
    struct dumps *d = xcalloc(1, sizeof *d);
    sigset_t all, before;
    const struct dumper_store store = {
        .context = d, .list = store_list, .put = store_put, .remove = store_remove};
    d->client = client;
    d->bucket = xstrdup(bucket);
    /* libfuse waits for a signal in the first thread: others must not get it. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = dumper_start(&options, v, meta, &store, &d->dumper, &err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        dumps_end(d);
        return program_fail(PROGRAM_FAILED, "%s", err.message);
    }
    *out = d;
    return PROGRAM_OK;
}

void dumps_end(struct dumps *d)
{
    if (d == NULL)
        return;
    dfc_client_cancel(d->client);
    dumper_end(d->dumper);
    dfc_client_close(d->client);
    free(d->bucket);
    free(d);
}
