#include "proxy/ais/job_text.h"

#include <string.h>

void job_text_reply(struct http_request *req, const char *id)
{
    http_reply_data(req, 202, "text/plain", id, strlen(id));
}
