/* vdisc verify: does an image have the bytes that it was burned with? */
#include "api/ctl/commands.h"

#include "api/ctl/cmd/vdisc_open.h"
#include "api/ctl/parallel.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "vdisc/client/verify.h"

#define PRINTED_MAX 1000 /* extents; all are counted */

struct reporting {
    struct ctl *ctl;
    struct vdisc *v;
    uint64_t printed;
    json_t *list;
};

static const char *const verdicts[] = {"equal", "differs", "not compared", "not read"};

static void tell(void *context, uint32_t extent, const struct verify_extent *f)
{
    struct reporting *r = context;
    _cleanup_free_ char *bucket = NULL, *key = NULL;
    if (r->printed++ >= PRINTED_MAX)
        return;
    vdisc_object(r->v, extent, &bucket, &key, NULL);
    _cleanup_free_ char *object = key != NULL
                                      ? xprintf("%s/%s", bucket, key)
                                      : xstrdup(vdisc_table_of(r->v)->extents[extent].address);
    if (r->ctl->json)
        json_array_append_new(r->list,
                              json_pack("{s:I, s:o, s:s, s:o}", "extent", (json_int_t)extent,
                                        "object", json_string_escaped(object), "verdict",
                                        verdicts[f->verdict], "why", json_string_escaped(f->why)));
    else
        fprintf(r->ctl->out, "%s: '%s': %s\n", verdicts[f->verdict], object, f->why);
}

static void print(struct reporting *r, const struct verify_tally *t)
{
    char size[24];
    const bool whole = verify_is_whole(t);
    if (r->ctl->json) {
        ctl_print_json(r->ctl,
                       json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:O}", "ok", whole, "extents",
                                 (json_int_t)t->extents, "equal", (json_int_t)t->equal, "differing",
                                 (json_int_t)t->differing, "not_compared", (json_int_t)t->unknown,
                                 "not_read", (json_int_t)t->failed, "bytes", (json_int_t)t->bytes,
                                 "found", r->list));
        return;
    }
    fprintf(r->ctl->out, "%s: %llu of %llu extents compared and equal, %s\n",
            whole ? "OK" : "FAILED", (unsigned long long)t->equal, (unsigned long long)t->extents,
            ctl_size(r->ctl, t->bytes, size));
    if (!whole)
        fprintf(r->ctl->out, "%llu differ, %llu have no checksum, %llu could not be read\n",
                (unsigned long long)t->differing, (unsigned long long)t->unknown,
                (unsigned long long)t->failed);
}

int vdisc_verify_image(struct ctl *ctl, const struct args *args)
{
    _cleanup_(vdisc_closep)
    struct vdisc *v = NULL;
    struct verify_tally tally;
    struct dfc_error err;
    int code = vdisc_open_to_verify(ctl, args->words[0], &v);
    if (code != EXIT_OK)
        return code;
    struct reporting r = {.ctl = ctl, .v = v, .list = json_array()};
    if (vdisc_verify(v, parallel_of(args), tell, &r, &tally, &err) != DFC_OK)
        code = ctl_fail(ctl, &err, "verify");
    else
        print(&r, &tally);
    json_decref(r.list);
    return code != EXIT_OK ? code : verify_is_whole(&tally) ? EXIT_OK : EXIT_PARTIAL;
}
