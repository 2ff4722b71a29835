/* dfc-targetd: parameters, signals, the ready file; everything else is the library's. */
#include <errno.h>
#include <unistd.h>

#include "access/guard.h"
#include "access/witness.h"
#include "build_commit.h"
#include "common/build.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "net/daemon.h"
#include "net/daemon_reload.h"
#include "net/daemon_sources.h"
#include "net/notify.h"
#include "target/leave.h"
#include "target/node/params_check.h"
#include "target/node/readiness.h"
#include "target/node/target.h"

/* Of main(): a reload reads them again. */
struct arguments {
    int count;
    char **words;
};

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
        json_pack("{ss ss si ss ss ss ss ss* ss*}", "id", t->id, "role", "target", "pid",
                  (int)getpid(), "boot", t->boot, "public_url", t->urls[LISTEN_PUBLIC],
                  "control_url", t->urls[LISTEN_CONTROL], "data_url", t->urls[LISTEN_DATA],
                  "s3_url", t->urls[LISTEN_S3], "admin_url", t->urls[LISTEN_ADMIN]);
    if (daemon_write_ready(t->params.dir, doc, &err) != 0)
        log_error("ready.json not written", lerr(&err));
}

struct serving {
    struct target *target;
    bool shown; /* ready.json is there, and the log has said so */
};

/* ready.json is there while the target is ready. */
static void show_readiness(void *ctx)
{
    struct serving *s = ctx;
    struct target *t = s->target;
    struct readiness now;
    uint64_t changes;
    if (read(t->ready_fd, &changes, sizeof changes) < 0)
        log_warn("eventfd not read", li64("errno", errno));
    target_readiness(t, false, &now);
    if (!now.ready)
        notify_status(t->notify, now.why.message);
    if (now.ready == s->shown)
        return;
    s->shown = now.ready;
    if (now.ready) {
        write_ready(t);
        notify_ready(t->notify, "serving");
        log_info("ready", lstr("public", t->urls[LISTEN_PUBLIC]),
                 lstr("control", t->urls[LISTEN_CONTROL]), lstr("data", t->urls[LISTEN_DATA]));
    } else {
        log_warn("not ready any more", lerr(&now.why));
        daemon_remove_ready(t->params.dir);
    }
}

static void hup(void *ctx)
{
    struct serving *serving = ctx;
    struct target *t = serving->target;
    struct error err = ERROR_INIT;
    witness_reopen(t->witness);
    if (t->guard != NULL && guard_reload(t->guard, t->params.cluster_key_file, &err) != 0)
        log_error("keys of proofs not changed", lerr(&err));
}

static void serve_until_told(struct target *t, int signals, const struct arguments *args)
{
    struct serving serving = {.target = t};
    const struct daemon_reload reload = {.rows = target_param_rows,
                                         .values = &t->params,
                                         .size = sizeof t->params,
                                         .sources = t->sources,
                                         .argc = args->count,
                                         .argv = args->words,
                                         .auth = t->auth,
                                         .key_file = t->params.cluster_key_file,
                                         .log_file = t->params.log_file,
                                         .tls = t->tls,
                                         .tls_reload_ms = t->params.tls_reload_interval,
                                         .notify = t->notify,
                                         .check = target_params_try,
                                         .hup = hup,
                                         .other_fd = t->ready_fd,
                                         .other = show_readiness,
                                         .ctx = &serving};
    daemon_serve(signals, &reload);
}

static int serve(struct target *t, int signals, struct notify *notify, const struct arguments *args,
                 struct error *err)
{
    t->notify = notify;
    daemon_sources_begin(t->sources, args->count, args->words);
    int code = target_start(t, err);
    if (code != 0)
        return code;
    serve_until_told(t, signals, args);
    log_info("stopping");
    notify_stopping(notify, target_leave_max_ms(&t->params));
    daemon_remove_ready(t->params.dir);
    daemon_pause(signals, 0); /* the signal that has come */
    target_leave(t, signals);
    return 0;
}

/* Public, control and data; S3 and admin where they are wanted. */
static uint64_t listeners_of(const struct target_params *params)
{
    return 3 + (params->s3_port != 0) + (params->admin_port != 0);
}

static int run(struct target_params *params, const struct arguments *args, struct error *err)
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
    struct target *t = NULL;
    int code = daemon_begin(&config, &signals, err);
    struct notify *notify = notify_open();
    if (code == 0)
        code = target_new(params, &t, err);
    if (code == 0)
        code = serve(t, signals, notify, args, err);
    target_free(t);
    if (code != 0)
        notify_status(notify, err->message);
    notify_close(notify);
    return code;
}

int main(int argc, char **argv)
{
    build_set(BUILD_COMMIT_AND_DATE);
    if (daemon_printed(&program, argc, argv))
        return 0;
    struct target_params params = {0};
    const struct arguments args = {.count = argc, .words = argv};
    struct error err = ERROR_INIT;
    bool help;
    int code = params_load(target_param_rows, &params, argc, argv, &help, &err);
    if (code == 0)
        code = run(&params, &args, &err);
    params_free(target_param_rows, &params);
    if (code != 0)
        daemon_ends(program.name, &err);
    else
        log_info("stopped");
    return code == 0 ? 0 : 1;
}
