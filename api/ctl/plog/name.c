#include "api/ctl/plog/name.h"

#include "common/cleanup.h"
#include "common/mem.h"

int ctl_plog_name(struct ctl *ctl, const char *name, struct object_name *out)
{
    struct error e = ERROR_INIT;
    *out = (struct object_name){0};
    if (object_name_parse(name, out, &e) == 0 && out->key[0] == '\0')
        error_set(&e, E_NAME, "'%s' names no file: expected dfc://BUCKET/NAME", name);
    return e.code == 0 ? EXIT_OK : ctl_fail_common(ctl, &e, EXIT_USAGE);
}

int ctl_plog_fail(const struct ctl *ctl, const struct dfc_error *err, const char *verb,
                  const char *name)
{
    _cleanup_free_ char *what = xprintf("%s '%s'", verb, name);
    return ctl_fail(ctl, err, what);
}
