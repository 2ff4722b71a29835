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

static void send_on(struct http_request *req, const struct ais_refusal *refused,
                    const struct object_send *how)
{
    struct error err = ERROR_INIT;
    if (proxy_enter_objects(req) == NULL)
        return;
    if (check(req, refused, &err) != 0)
        http_reply_error(req, &err);
    else
        object_send(req, how);
}

static void put_parameter(struct buf *query, const char *name, const char *value)
{
    buf_printf(query, "&%s=", name);
    buf_put_url_escaped(query, value, strlen(value), "");
}

/* Empty is the same as absent. */
static const char *given(const struct http_request *req, const char *name)
{
    const char *value = http_query(req, name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* The object, one member of it, or those that match. */
void ais_object_read_begin(struct http_request *req)
{
    const char *member = given(req, "archpath"), *pattern = given(req, "archregx");
    const char *mode = given(req, "archmode");
    struct object_send how = {.member = member, .streams = relay_is_wanted(req)};
    _cleanup_buf_ struct buf query = BUF_INIT;
    if (mode != NULL && pattern == NULL) {
        struct error err = ERROR_INIT;
        error_set(&err, E_INVALID, "archmode says how archregx compares: give archregx, too");
        http_reply_error(req, &err);
        return;
    }
    buf_puts(&query, AIS_REDIRECT);
    if (member != NULL)
        put_parameter(&query, "member", member);
    if (pattern != NULL) {
        put_parameter(&query, "members", "tar");
        put_parameter(&query, "match", pattern);
        put_parameter(&query, "mode", mode != NULL ? mode : "regexp");
        how.member = "";
    }
    how.raw_query = arena_strdup(http_arena(req), buf_str(&query));
    send_on(req, read_refusals, &how);
}

bool ais_wants_redirect(const struct http_request *req)
{
    const char *connection = http_header(req, "Connection");
    return connection != NULL && http_list_has(connection, "close");
}

/* AIStore's flags of a member that is put: append, or append where there is an archive.  Without
 * them the archive would be replaced by one of this member alone. */
#define FLAGS_HEADER "ais-pine"

static int put_member_query(const struct http_request *req, const char *member, struct buf *query,
                            struct error *err)
{
    const char *flags = http_header(req, FLAGS_HEADER);
    const bool appends = flags != NULL && strcmp(flags, "1") == 0;
    if (!appends && (flags == NULL || strcmp(flags, "2") != 0))
        return error_set(err, E_UNSUPPORTED,
                         "a member that replaces its archive is not supported in this release: "
                         "append it (" FLAGS_HEADER ": 1 or 2)");
    put_parameter(query, "member", member);
    put_parameter(query, "overwrite", "true");
    if (appends)
        put_parameter(query, "create", "false");
    return 0;
}

void ais_object_put_begin(struct http_request *req)
{
    const char *member = given(req, "archpath");
    struct object_send how = {.member = member, .streams = !ais_wants_redirect(req)};
    struct error err = ERROR_INIT;
    _cleanup_buf_ struct buf query = BUF_INIT;
    buf_puts(&query, AIS_REDIRECT);
    if (member == NULL && http_header(req, FLAGS_HEADER) != NULL) {
        error_set(&err, E_INVALID, "%s: a member is appended, and archpath does not name it",
                  FLAGS_HEADER);
        http_reply_error(req, &err);
        return;
    }
    if (member != NULL && put_member_query(req, member, &query, &err) != 0) {
        http_reply_error(req, &err);
        return;
    }
    how.raw_query = arena_strdup(http_arena(req), buf_str(&query));
    send_on(req, put_refusals, &how);
}

void ais_object_delete_begin(struct http_request *req)
{
    const struct object_send how = {.raw_query = AIS_REDIRECT, .streams = relay_is_wanted(req)};
    send_on(req, NULL, &how);
}
