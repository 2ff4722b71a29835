/* dfc-targetd: parameters, signals, the ready file; everything else is the library's. */
#include <unistd.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "net/daemon.h"
#include "target/target.h"

static const struct daemon_program program = {
    .name = "dfc-targetd",
    .summary = "a target of a dfc cluster: it keeps objects",
    .params = target_param_rows,
    .routes = target_routes,
};

/* Who waits for the file will say that it is missing; the target serves without it, too. */
static void write_ready(const struct target *t)
{
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *doc =
        json_pack("{ss ss si ss ss ss ss}", "id", t->id, "role", "target", "pid", (int)getpid(),
                  "boot", t->boot, "public_url", t->urls[LISTEN_PUBLIC], "control_url",
                  t->urls[LISTEN_CONTROL], "data_url", t->urls[LISTEN_DATA]);
    if (daemon_write_ready(t->params.dir, doc, &err) != 0)
        log_error("ready.json not written", lerr(&err));
}

static int serve(struct target *t, int signals, struct error *err)
{
    int code = target_start(t, err);
    if (code != 0 || daemon_await(signals, t->ready_fd))
        return code;
    write_ready(t);
    log_info("ready", lstr("public", t->urls[LISTEN_PUBLIC]),
             lstr("control", t->urls[LISTEN_CONTROL]), lstr("data", t->urls[LISTEN_DATA]));
    daemon_await(signals, -1);
    log_info("stopping");
    daemon_remove_ready(t->params.dir);
    return 0;
}

static int run(struct target_params *params, struct error *err)
{
    const struct daemon_config config = {.id = params->id,
                                         .log_level = params->log_level,
                                         .log_format = params->log_format,
                                         .faults = params->faults};
    _cleanup_close_ int signals = -1;
    struct target *t = NULL;
    int code = daemon_begin(&config, &signals, err);
    if (code == 0)
        code = target_new(params, &t, err);
    if (code == 0)
        code = serve(t, signals, err);
    target_free(t);
    return code;
}

int main(int argc, char **argv)
{
    if (daemon_printed(&program, argc, argv))
        return 0;
    struct target_params params = {0};
    struct error err = ERROR_INIT;
    bool help;
    int code = params_load(target_param_rows, &params, argc, argv, &help, &err);
    if (code == 0)
        code = run(&params, &err);
    params_free(target_param_rows, &params);
    if (code != 0)
        log_error("dfc-targetd ends", lerr(&err));
    else
        log_info("stopped");
    return code == 0 ? 0 : 1;
}
