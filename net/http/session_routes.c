#include "net/http/session_routes.h"

#include "common/cleanup.h"
#include "net/auth/auth.h"
#include "net/http/server_state.h"

enum { GREETING_MAX = 4096 };

static void greeted(struct http_request *req, const char *data, size_t len)
{
    _cleanup_free_ char *answer = NULL;
    struct error err = ERROR_INIT;
    bool opened;
    if (auth_answer(req->server->auth, data, len, &answer, &opened, &err) != 0) {
        http_reply_error(req, &err);
        return;
    }
    http_reply_data(req, opened ? 201 : 200, "application/json", answer, strlen(answer));
}

static void open_begin(struct http_request *req)
{
    http_collect_body(req, GREETING_MAX, greeted);
}

const struct http_route session_routes[] = {
    {.name = "session_open",
     .method = HTTP_POST,
     .pattern = SESSION_PATH,
     .nets = NET_CONTROL | NET_DATA,
     .open = true,
     .right = RIGHT_NODE,
     .begin = open_begin,
     .summary = "A node asks for a challenge, and then opens a session, with which it signs its "
                "calls to this one.",
     .body = "`{\"ask\": \"challenge\", \"key\", \"node\", \"boot\"}`, then `{\"key\", \"node\", "
             "\"boot\", \"nonce\", \"challenge\", \"proof\"}` (common/auth/mac.h)",
     .reply = "200 and `{\"node\", \"challenge\"}`, then 201 and `{\"node\", \"boot\", \"nonce\", "
              "\"session\", \"proof\"}`",
     .errors = "unauthorized (another key, or a greeting that was sent before) not_supported (this "
               "node has no key)"},
    {.name = NULL},
};
