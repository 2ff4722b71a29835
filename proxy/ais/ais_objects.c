#include "proxy/ais/ais_objects.h"

#include <string.h>

#include "ais/dialect.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "proxy/ais/ais_refused.h"
#include "proxy/http/objects.h"
#include "proxy/http/relay.h"
#include "proxy/primary/proxy.h"

static const struct ais_refusal read_refusals[] = {
    {"archregx", NULL, "a choice of members by a pattern"},
    {"archmode", NULL, "a choice of members by a pattern"},
    {"etl_name", NULL, "ETL"},
    {"etl_args", NULL, "ETL"},
    {"etl_pipeline", NULL, "ETL"},
    {"latest-ver", "false", "a read of the backend's newest version (bucket property validate)"},
    {NULL},
};
static const struct ais_refusal put_refusals[] = {
    {"append_type", NULL, "appending to an object"},
    {"append_handle", NULL, "appending to an object"},
    {"partNumber", NULL, "a part without uploadId"},
    {NULL},
};

static int check(struct http_request *req, const struct ais_refusal *table, struct error *err)
{
    int code = ais_check_common(req, err);
    return code != 0 || table == NULL ? code : ais_check_refused(req, table, err);
}

/* `member`: the path within an archive; or NULL. */
static const char *target_query(struct http_request *req, const char *member)
{
    _cleanup_buf_ struct buf query = BUF_INIT;
    buf_puts(&query, AIS_REDIRECT);
    if (member != NULL) {
        buf_puts(&query, "&member=");
        buf_put_url_escaped(&query, member, strlen(member), "");
    }
    return arena_strdup(http_arena(req), buf_str(&query));
}

static void send_on(struct http_request *req, const struct ais_refusal *refused, const char *member,
                    bool streams)
{
    struct error err = ERROR_INIT;
    if (proxy_enter_objects(req) == NULL)
        return;
    if (check(req, refused, &err) != 0) {
        http_reply_error(req, &err);
        return;
    }
    const struct object_send how = {
        .raw_query = target_query(req, member), .member = member, .streams = streams};
    object_send(req, &how);
}

void ais_object_read_begin(struct http_request *req)
{
    const char *member = http_query(req, "archpath");
    bool has_member = member != NULL && member[0] != '\0';
    send_on(req, read_refusals, has_member ? member : NULL, relay_is_wanted(req));
}

bool ais_wants_redirect(const struct http_request *req)
{
    const char *connection = http_header(req, "Connection");
    return connection != NULL && http_list_has(connection, "close");
}

void ais_object_put_begin(struct http_request *req)
{
    send_on(req, put_refusals, NULL, !ais_wants_redirect(req));
}

void ais_object_delete_begin(struct http_request *req)
{
    send_on(req, NULL, NULL, relay_is_wanted(req));
}
