/* dfc-proxyd: parameters, signals, the ready file; everything else is the library's. */
#include <unistd.h>

#include "cluster/settings.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "net/daemon.h"
#include "proxy/proxy.h"

static void put_cluster_settings(struct buf *out)
{
    buf_puts(out, "\nCluster-wide, set with `PUT /v1/cluster`:\n\n");
    params_markdown(cluster_settings_rows, out);
}

static const struct daemon_program program = {
    .name = "dfc-proxyd",
    .summary = "a proxy of a dfc cluster",
    .params = proxy_param_rows,
    .routes = proxy_routes,
    .more_params = put_cluster_settings,
};

static int write_ready(const struct proxy *p, struct error *err)
{
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:i, s:s, s:s, s:s}", "id", p->id, "pid", (int)getpid(), "public_url",
                  p->public_url, "control_url", p->control_url, "data_url", "");
    return daemon_write_ready(p->params.dir, doc, err);
}

static int serve(struct proxy *p, int signals, struct error *err)
{
    int r;
    if ((r = proxy_start(p, err)) != 0 || (r = proxy_await(p, signals, err)) != 0 ||
        (r = write_ready(p, err)) != 0)
        return r == E_CANCELLED ? 0 : r;
    log_info("ready", lstr("public", p->public_url), lstr("control", p->control_url),
             lbool("primary", proxy_is_primary(p)));
    daemon_await(signals, -1);
    log_info("stopping");
    daemon_remove_ready(p->params.dir);
    return 0;
}

static int run(struct proxy_params *params, struct error *err)
{
    const struct daemon_config config = {.id = params->id,
                                         .log_level = params->log_level,
                                         .log_format = params->log_format,
                                         .faults = params->faults};
    _cleanup_close_ int signals = -1;
    struct proxy *p = NULL;
    int r;
    if ((r = daemon_begin(&config, &signals, err)) != 0 || (r = proxy_new(params, &p, err)) != 0)
        return r;
    r = serve(p, signals, err);
    proxy_free(p);
    return r;
}

int main(int argc, char **argv)
{
    if (daemon_printed(&program, argc, argv))
        return 0;
    struct proxy_params params = {0};
    struct error err = ERROR_INIT;
    bool help;
    int r = params_load(proxy_param_rows, &params, argc, argv, &help, &err);
    if (r == 0)
        r = run(&params, &err);
    params_free(proxy_param_rows, &params);
    if (r != 0)
        log_error("dfc-proxyd ends", lerr(&err));
    else
        log_info("stopped");
    return r == 0 ? 0 : 1;
}
