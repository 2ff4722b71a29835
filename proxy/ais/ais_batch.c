#include "proxy/ais/ais_batch.h"

#include "common/cleanup.h"
#include "proxy/ais/ais_refused.h"
#include "proxy/ais/moss.h"
#include "proxy/http/batch.h"
#include "proxy/primary/proxy.h"

static void batch_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    _cleanup_buf_ struct buf document = BUF_INIT;
    if (ais_check_common(req, &err) != 0 ||
        moss_translate(data, len, http_path_param(req, "bucket"), &document, &err) != 0)
        http_reply_error(req, &err);
    else
        batch_send(req, &document);
}

void ais_batch_begin(struct http_request *req)
{
    const struct proxy *p = proxy_enter_objects(req);
    if (p != NULL)
        http_collect_body(req, p->params.body_max, batch_body);
}
