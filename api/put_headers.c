#include "api/put_headers.h"

#include "api/failure.h"
#include "common/checksum.h"
#include "common/mem.h"

static bool is_token(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                                "!#$%&'*+-.^_`|~")] == '\0';
}

static int put_meta(struct call *call, const struct dfc_put_options *o, struct dfc_error *err)
{
    for (size_t i = 0; i < o->meta_count; i++) {
        if (!is_token(o->meta[i].name))
            return failure_set(err, DFC_INVALID, E_INVALID, "'%s' is not a name for metadata",
                               o->meta[i].name);
        _cleanup_free_ char *name = xprintf("Dfc-Meta-%s", o->meta[i].name);
        int rc = call_header(call, err, name, o->meta[i].value);
        if (rc != DFC_OK)
            return rc;
    }
    return DFC_OK;
}

int put_describe(struct call *call, const struct dfc_put_options *o, struct dfc_error *err)
{
    int rc = DFC_OK;
    if (o->content_type != NULL)
        rc = call_header(call, err, "Content-Type", o->content_type);
    return rc == DFC_OK ? put_meta(call, o, err) : rc;
}

int put_conditions(struct call *call, const struct dfc_put_options *o, struct dfc_error *err)
{
    int rc = DFC_OK;
    if (o->if_absent)
        rc = call_header(call, err, "If-None-Match", "*");
    if (rc == DFC_OK && o->if_match != NULL)
        rc = call_header(call, err, "If-Match", o->if_match);
    return rc;
}

int put_body_sum(struct call *call, struct dfc_error *err)
{
    struct checksum_value sum;
    char hex[2 * CHECKSUM_MAX + 1];
    int rc = body_checksum(call->body, CHECKSUM_XXH3, &sum, err);
    if (rc != DFC_OK)
        return rc;
    checksum_hex(&sum, hex);
    call_header(call, err, "Dfc-Checksum-Type", checksum_name(CHECKSUM_XXH3));
    return call_header(call, err, "Dfc-Checksum-Value", hex);
}
