/* Another cluster: its proxies redirect to the owner, and the object's checksum is told. */
#include "target/backend/backend.h"

#include <string.h>

#include "cluster/members/location.h"

static int dfc_request(const struct backend_spec *spec, const struct backend_ask *ask,
                       struct arena *a, struct backend_request *out, struct error *err)
{
    (void)err;
    _cleanup_buf_ struct buf url = BUF_INIT;
    buf_puts(&url, spec->endpoint);
    location_put_object(&url, spec->bucket, arena_printf(a, "%s%s", spec->prefix, ask->name));
    const char **headers = arena_alloc(a, (1 + BACKEND_ASK_LINES) * sizeof *headers);
    backend_ask_lines(ask, a, headers);
    *out = (struct backend_request){.url = arena_strdup(a, buf_str(&url)), .headers = headers};
    return 0;
}

/* Of the whole object, whatever range was asked for. */
static void dfc_sum(const struct http_head *head, struct checksum_value *out)
{
    const char *type_name = head->header(head, "Dfc-Checksum-Type");
    const char *value = head->header(head, "Dfc-Checksum-Value");
    enum checksum_type type;
    struct checksum_value sum;
    if (type_name != NULL && value != NULL && checksum_from_name(type_name, &type, NULL) == 0 &&
        type != CHECKSUM_NONE && checksum_parse(type, value, &sum, NULL) == 0)
        *out = sum;
}

const struct backend_ops backend_dfc = {
    .provider = "dfc",
    .request = dfc_request,
    .sum = dfc_sum,
    .meta_prefix = "Dfc-Meta-",
    .keeps_headers = true,
    .redirects = true,
};
