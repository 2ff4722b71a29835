#include "s3/acl.h"

#include <stdbool.h>
#include <string.h>

#include "s3/document.h"
#include "s3/xml_write.h"

#define XSI "http://www.w3.org/2001/XMLSchema-instance"

void s3_acl_document(const struct s3_owner *owner, struct buf *out)
{
    xml_put_root(out, "AccessControlPolicy", XML_S3_NAMESPACE);
    s3_put_owner(out, "Owner", owner);
    xml_put_open(out, "AccessControlList");
    xml_put_open(out, "Grant");
    buf_puts(out, "<Grantee xmlns:xsi=\"" XSI "\" xsi:type=\"CanonicalUser\">");
    xml_put_element(out, "ID", owner->id);
    xml_put_element(out, "DisplayName", owner->name);
    xml_put_close(out, "Grantee");
    xml_put_element(out, "Permission", "FULL_CONTROL");
    xml_put_close(out, "Grant");
    xml_put_close(out, "AccessControlList");
    xml_put_close(out, "AccessControlPolicy");
}

/* --- the body of a PUT ------------------------------------------------------------------------ */

struct checking {
    const char *owner_id;
    bool has_grantee, has_permission;
};

static enum s3_error take_id(void *ctx, const char *text, struct s3_failure *why)
{
    const struct checking *c = ctx;
    return strcmp(text, c->owner_id) == 0 ? S3_OK : s3_fail(why, S3_ACL_NOT_SUPPORTED, NULL);
}

static enum s3_error take_grantee(void *ctx, const char *text, struct s3_failure *why)
{
    struct checking *c = ctx;
    c->has_grantee = true;
    return take_id(ctx, text, why);
}

static enum s3_error take_permission(void *ctx, const char *text, struct s3_failure *why)
{
    struct checking *c = ctx;
    c->has_permission = true;
    return strcmp(text, "FULL_CONTROL") == 0 ? S3_OK : s3_fail(why, S3_ACL_NOT_SUPPORTED, NULL);
}

/* Whoever else is named, or nobody. */
static enum s3_error take_other(void *ctx, const char *text, struct s3_failure *why)
{
    (void)ctx, (void)text;
    return s3_fail(why, S3_ACL_NOT_SUPPORTED, NULL);
}

static enum s3_error take_name(void *ctx, const char *text, struct s3_failure *why)
{
    (void)ctx, (void)text, (void)why; /* the ID counts */
    return S3_OK;
}

static const struct document_leaf leaves[] = {
    {"Owner", "ID", take_id},
    {"Owner", "DisplayName", take_name},
    {"AccessControlPolicy", "AccessControlList", take_other},
    {"Grantee", "ID", take_grantee},
    {"Grantee", "DisplayName", take_name},
    {"Grantee", "URI", take_other},
    {"Grantee", "EmailAddress", take_other},
    {"Grant", "Permission", take_permission},
    {.name = NULL},
};

static const struct document document = {
    .root = "AccessControlPolicy", .depth = 5, .leaves = leaves};

enum s3_error s3_acl_check(const char *body, size_t len, const char *owner_id,
                           struct s3_failure *why)
{
    struct checking c = {.owner_id = owner_id};
    enum s3_error e = document_read(&document, body, len, &c, why);
    if (e == S3_OK && !(c.has_grantee && c.has_permission))
        return s3_fail(why, S3_ACL_NOT_SUPPORTED, NULL);
    return e;
}
