/* dfc-cached: a member of a cache group.  Parameters, signals, the ready file; all else is in
 * mount/group/. */
#include <stdlib.h>
#include <unistd.h>

#include "api/dfc.h"
#include "build_commit.h"
#include "common/build.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "mount/cached/params.h"
#include "mount/group/routes.h"
#include "mount/group/service.h"
#include "net/daemon.h"
#include "net/daemon_metrics.h"
#include "net/daemon_reload.h"
#include "net/daemon_sources.h"

static const struct daemon_program program = {
    .name = "dfc-cached",
    .summary = "a member of a cache group: it keeps pieces of objects for mounts",
    .params = cached_param_rows,
    .routes = group_routes,
};

/* Of main(): a reload reads them again. */
struct arguments {
    int count;
    char **words;
};

static const char *given(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

static int client_open(const struct cached_params *p, struct dfc_client **out, struct error *err)
{
    struct dfc_error told;
    const struct dfc_client_options options = {
        .endpoints = given(p->endpoint),
        .idle_connections = (uint32_t)(p->parallel + 1),
        .user_agent = "dfc-cached/" DFC_VERSION,
        .cluster_key_file = "",
        .ca_file = given(p->ca_file),
        .profile = given(p->profile),
        .keep_token = true,
        .insecure = p->insecure,
    };
    if (dfc_client_open(&options, out, &told) == DFC_OK)
        return 0;
    return error_set(err, E_INVALID, "%s", told.message);
}

static int write_ready(const struct cached_params *p, const struct group_service *s,
                       struct error *err)
{
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:i, s:s, s:s}", "id", p->id, "pid", (int)getpid(), "group", p->group,
                  "url", group_service_url(s));
    return p->dir[0] != '\0' ? daemon_write_ready(p->dir, doc, err) : 0;
}

static void serve_until_told(struct cached_params *p, struct group_service *s, int signals,
                             const struct arguments *args)
{
    static const char *const live[] = {NULL};
    struct daemon_sources *sources = daemon_sources_new(cached_param_rows, p, live);
    daemon_sources_begin(sources, args->count, args->words);
    const struct daemon_reload reload = {.rows = cached_param_rows,
                                         .values = p,
                                         .size = sizeof *p,
                                         .sources = sources,
                                         .argc = args->count,
                                         .argv = args->words,
                                         .auth = group_service_auth(s),
                                         .key_file = p->group_key_file,
                                         .log_file = p->log_file,
                                         .other_fd = -1};
    daemon_serve(signals, &reload);
    daemon_sources_free(sources);
}

static int serve(struct cached_params *p, struct dfc_client *client, int signals,
                 const struct arguments *args, struct error *err)
{
    const struct group_service_options options = {
        .client = client,
        .group = p->group,
        .id = p->id,
        .key_file = p->group_key_file,
        .address = p->listen,
        .advertise = p->advertise,
        .port = (uint16_t)p->port,
        .weight = (uint32_t)p->weight,
        .interval_ms = p->report_interval,
        .connect_ms = p->group_connect,
        .wait_ms = p->group_wait,
        .cache = {.directories = p->cache_dir,
                  .bytes = p->cache_size,
                  .fill_bytes = p->fill_size,
                  .free_percent = p->cache_free,
                  .idle_ms = p->cache_idle},
        .buffer_bytes = p->buffer_size,
        .fetchers = (unsigned)p->parallel,
        .workers = (unsigned)p->workers,
        .queue = p->queue,
        .connections_max = p->connections_max,
    };
    _cleanup_(group_service_closep)
    struct group_service *s = NULL;
    int rc = group_service_open(&options, &s, err);
    if (rc != 0 || (rc = write_ready(p, s, err)) != 0)
        return rc;
    log_info("ready", lstr("group", p->group), lstr("id", p->id),
             lstr("url", group_service_url(s)));
    serve_until_told(p, s, signals, args);
    log_info("stopping");
    if (p->dir[0] != '\0')
        daemon_remove_ready(p->dir);
    return 0;
}

static int run(struct cached_params *p, const struct arguments *args, struct error *err)
{
    const struct daemon_config config = {.program = program.name,
                                         .id = p->id,
                                         .log_level = p->log_level,
                                         .log_format = p->log_format,
                                         .log_file = p->log_file,
                                         .files_wanted = p->connections_max,
                                         .faults = p->faults};
    _cleanup_close_ int signals = -1;
    struct dfc_client *client = NULL;
    int rc;
    if ((rc = daemon_begin(&config, &signals, err)) != 0)
        return rc;
    daemon_metrics_begin();
    if ((rc = client_open(p, &client, err)) != 0)
        return rc;
    rc = serve(p, client, signals, args, err);
    dfc_client_close(client);
    return rc;
}

int main(int argc, char **argv)
{
    build_set(BUILD_COMMIT_AND_DATE);
    if (daemon_printed(&program, argc, argv))
        return 0;
    struct cached_params params = {0};
    const struct arguments args = {.count = argc, .words = argv};
    struct error err = ERROR_INIT;
    bool help;
    int rc = params_load(cached_param_rows, &params, argc, argv, &help, &err);
    if (rc == 0)
        rc = cached_params_check(&params, &err);
    if (rc == 0)
        rc = run(&params, &args, &err);
    params_free(cached_param_rows, &params);
    if (rc != 0)
        daemon_ends(program.name, &err);
    else
        log_info("stopped");
    return rc == 0 ? 0 : 1;
}
