#include "target/store/copy_rule.h"

#include "target/format/attr.h"
#include "target/format/ec_manifest.h"

static bool is_same(const struct copy_rule *r, const struct attr *current)
{
    struct attr shown = *current;
    const struct attr *a = ec_manifest_show(&shown, NULL) == 0 ? &shown : current;
    return r->checksum.type != CHECKSUM_NONE && r->checksum.type == a->checksum.type &&
           r->size == a->size && checksum_equal(&r->checksum, &a->checksum);
}

int copy_rule_check(void *ctx, const struct attr *current, struct error *err)
{
    const struct copy_rule *r = ctx;
    if (current == NULL)
        return 0;
    if (is_same(r, current))
        return error_set(err, E_NOT_MODIFIED, "object '%s' has these bytes already", current->name);
    if (version_is_after(&current->version, r->term, r->version))
        return error_set(err, E_PRECONDITION, "object '%s' was put after the job", current->name);
    if (r->write_once)
        return error_set(err, E_WRITE_ONCE, "object '%s' exists, and its bucket is write_once",
                         current->name);
    return 0;
}
