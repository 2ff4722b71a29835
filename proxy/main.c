/* dfc-proxyd: parameters, signals, the ready file; everything else is the library's. */
#include <unistd.h>

#include "access/guard.h"
#include "access/witness.h"
#include "cluster/props/bucket_props.h"
#include "cluster/documents/settings.h"
#include "build_commit.h"
#include "common/build.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "gateway/operations_page.h"
#include "net/daemon.h"
#include "net/daemon_reload.h"
#include "net/daemon_sources.h"
#include "net/notify.h"
#include "proxy/params_check.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/reseal.h"
#include "proxy/primary/stopping.h"
#include "proxy/s3/handlers.h"

static void put_cluster_settings(struct buf *out)
{
    buf_puts(out, "\nCluster-wide, set with `dfcctl config set` or `PUT /v1/cluster`. Those that "
                  "are parameters "
                  "of dfc-targetd, too, hold for every target that has no value of its own:\n\n");
    params_markdown(cluster_settings_rows, out);
}

static void put_s3_operations(struct buf *out)
{
    gateway_operations_page(proxy_s3_handlers, out);
}

/* Of main(): a reload reads them again. */
struct arguments {
    int count;
    char **words;
};

static const struct daemon_printer printers[] = {
    {"--bucket-props-markdown", bucket_props_markdown},
    {"--s3-markdown", put_s3_operations},
    {NULL, NULL},
};

static const struct daemon_program program = {
    .name = "dfc-proxyd",
    .summary = "a proxy of a dfc cluster",
    .params = proxy_param_rows,
    .routes = proxy_routes,
    .more_params = put_cluster_settings,
    .printers = printers,
};

static int write_ready(const struct proxy *p, struct error *err)
{
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:i, s:s, s:s, s:s, s:s*, s:s*}", "id", p->id, "pid", (int)getpid(),
                  "public_url", p->public_url, "control_url", p->control_url, "data_url", "",
                  "s3_url", p->s3_url, "admin_url", p->admin_url);
    return daemon_write_ready(p->params.dir, doc, err);
}

static void hup(void *ctx)
{
    struct proxy *p = ctx;
    struct error err = ERROR_INIT;
    witness_reopen(p->witness);
    if (p->guard != NULL && guard_reload(p->guard, p->params.cluster_key_file, &err) != 0)
        log_error("keys of tokens not changed", lerr(&err));
    reseal_soon(p);
}

static void serve_until_told(struct proxy *p, int signals, struct notify *notify,
                             const struct arguments *args)
{
    const struct daemon_reload reload = {.rows = proxy_param_rows,
                                         .values = &p->params,
                                         .size = sizeof p->params,
                                         .sources = p->sources,
                                         .argc = args->count,
                                         .argv = args->words,
                                         .auth = p->auth,
                                         .key_file = p->params.cluster_key_file,
                                         .log_file = p->params.log_file,
                                         .tls = p->tls,
                                         .tls_reload_ms = p->params.tls_reload_interval,
                                         .notify = notify,
                                         .check = proxy_params_try,
                                         .hup = hup,
                                         .other_fd = -1,
                                         .ctx = p};
    daemon_serve(signals, &reload);
}

static int serve(struct proxy *p, int signals, struct notify *notify, const struct arguments *args,
                 struct error *err)
{
    int r;
    daemon_sources_begin(p->sources, args->count, args->words);
    notify_status(notify, "waiting for the cluster's documents");
    if ((r = proxy_start(p, err)) != 0 || (r = proxy_await(p, signals, err)) != 0 ||
        (r = write_ready(p, err)) != 0)
        return r == E_CANCELLED ? 0 : r;
    log_info("ready", lstr("public", p->public_url), lstr("control", p->control_url),
             lbool("primary", proxy_is_primary(p)));
    notify_ready(notify, "serving");
    serve_until_told(p, signals, notify, args);
    log_info("stopping");
    notify_stopping(notify, proxy_leave_max_ms(&p->params));
    daemon_remove_ready(p->params.dir);
    daemon_pause(signals, 0); /* the signal that has come */
    proxy_leave(p, signals);
    return 0;
}

/* Public and control; S3 and admin where they are wanted. */
static uint64_t listeners_of(const struct proxy_params *params)
{
    return 2 + (params->s3_port != 0) + (params->admin_port != 0);
}

static int run(struct proxy_params *params, const struct arguments *args, struct error *err)
{
    const struct daemon_config config = {.program = program.name,
                                         .id = params->id,
                                         .log_level = params->log_level,
                                         .log_format = params->log_format,
                                         .log_file = params->log_file,
                                         .log_memory = params->log_memory,
                                         .files_wanted =
                                             listeners_of(params) * params->connections_max,
                                         .faults = params->faults};
    _cleanup_close_ int signals = -1;
    struct proxy *p = NULL;
    int r;
    if ((r = daemon_begin(&config, &signals, err)) != 0 || (r = proxy_new(params, &p, err)) != 0)
        return r;
    struct notify *notify = notify_open();
    r = serve(p, signals, notify, args, err);
    if (r != 0)
        notify_status(notify, err->message);
    proxy_free(p);
    notify_close(notify);
    return r;
}

int main(int argc, char **argv)
{
    build_set(BUILD_COMMIT_AND_DATE);
    if (daemon_printed(&program, argc, argv))
        return 0;
    struct proxy_params params = {0};
    const struct arguments args = {.count = argc, .words = argv};
    struct error err = ERROR_INIT;
    bool help;
    int r = params_load(proxy_param_rows, &params, argc, argv, &help, &err);
    if (r == 0)
        r = run(&params, &args, &err);
    params_free(proxy_param_rows, &params);
    if (r != 0)
        daemon_ends(program.name, &err);
    else
        log_info("stopped");
    return r == 0 ? 0 : 1;
}
