/* GET /v1/daemon/log: the last lines of a daemon's log, for operators. */
#pragma once

#include "net/http/server.h"

/* Answers the call; without a wait. */
void daemon_log_begin(struct http_request *req);

/* Its row in a daemon's route table.  Lines may name users, hosts and objects. */
#define DAEMON_LOG_ROUTE                                                                          \
    {                                                                                             \
        .name = "daemon_log", .method = HTTP_GET, .pattern = "/v1/daemon/log",                    \
        .nets = NET_CONTROL, .admin = true, .right = RIGHT_OPERATE, .begin = daemon_log_begin,    \
        .summary = "The last lines of this daemon's log, as it keeps them in memory "             \
                   "(log_memory).",                                                               \
        .query = HTTP_PARAMETERS({"after", "lines later than this number: `next` of an earlier "  \
                                           "reply"}),                                             \
        .body = "",                                                                               \
        .reply = "`{\"lines\": [text, the oldest first], \"next\", \"missed\" (lines that made "  \
                 "room), \"boot\" (another one: the daemon was restarted, and numbers its lines " \
                 "anew: ask again without `after`)}`",                                            \
        .errors = "invalid_argument"                                                              \
    }
