#include "api/ctl/cmd/vdisc_open.h"

#include "common/cleanup.h"
#include "common/mem.h"

int vdisc_name(struct ctl *ctl, const char *name, struct object_name *out)
{
    struct error e = ERROR_INIT;
    *out = (struct object_name){0};
    if (object_name_parse(name, out, &e) == 0 && out->key[0] == '\0')
        error_set(&e, E_NAME, "'%s' names no image: expected dfc://BUCKET/NAME.vdsc", name);
    return e.code == 0 ? EXIT_OK : ctl_fail_common(ctl, &e, EXIT_USAGE);
}

typedef int opening(struct dfc_client *c, const char *bucket, const char *key, struct vdisc **v,
                    struct dfc_error *err);

static int open_by(struct ctl *ctl, const char *name, opening *open, struct vdisc **v)
{
    struct dfc_error err;
    _cleanup_(object_name_done)
    struct object_name n;
    int code = vdisc_name(ctl, name, &n);
    if (code != EXIT_OK)
        return code;
    if (open(ctl->client, n.bucket, n.key, v, &err) == DFC_OK)
        return EXIT_OK;
    _cleanup_free_ char *what = xprintf("open image '%s'", name);
    code = ctl_fail(ctl, &err, what);
    return err.result == DFC_CORRUPT && open == vdisc_open_table ? EXIT_PARTIAL : code;
}

int vdisc_open_named(struct ctl *ctl, const char *name, struct vdisc **v)
{
    return open_by(ctl, name, vdisc_open, v);
}

int vdisc_open_to_verify(struct ctl *ctl, const char *name, struct vdisc **v)
{
    return open_by(ctl, name, vdisc_open_table, v);
}

int vdisc_fail(const struct ctl *ctl, const struct vdisc *v, const struct error *e,
               const char *what)
{
    struct dfc_error err;
    vdisc_failure(v, e, &err);
    return ctl_fail(ctl, &err, what);
}

int vdisc_find(struct ctl *ctl, const struct vdisc *v, const char *path, struct iso_found *out)
{
    struct error e = ERROR_INIT;
    return iso_reader_find(vdisc_reader(v), path, out, &e) == 0 ? EXIT_OK
                                                                : vdisc_fail(ctl, v, &e, NULL);
}
