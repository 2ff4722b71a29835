/* object mv, bucket mv. */
#include "api/ctl/commands.h"

#include "api/ctl/names/name.h"
#include "common/cleanup.h"
#include "common/mem.h"

static int say_moved(struct ctl *ctl, const char *from, const char *to)
{
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s, s:s}", "from", from, "to", to));
    else
        ctl_say(ctl, "%s is now %s", from, to);
    return EXIT_OK;
}

int bucket_mv(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *from = args->words[0];
    if (dfc_bucket_rename(ctl->client, from, args->words[1], &err) == DFC_OK)
        return say_moved(ctl, from, args->words[1]);
    _cleanup_free_ char *what = xprintf("rename bucket '%s'", from);
    return ctl_fail(ctl, &err, what);
}

int object_mv(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    struct dfc_error err;
    _cleanup_(object_name_done)
    struct object_name from = {0};
    _cleanup_(object_name_done)
    struct object_name to = {0};
    if (object_name_parse(args->words[0], &from, &e) != 0 ||
        object_name_parse(args->words[1], &to, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    if (from.key[0] == '\0' || to.key[0] == '\0')
        return ctl_usage(ctl, "expected BUCKET/KEY BUCKET/NEW ('bucket mv' renames buckets)");
    if (strcmp(from.bucket, to.bucket) != 0)
        return ctl_usage(ctl, "an object stays in its bucket; 'cp' copies it to another one");
    if (dfc_rename(ctl->client, from.bucket, from.key, to.key, &err) == DFC_OK)
        return say_moved(ctl, args->words[0], args->words[1]);
    _cleanup_free_ char *what = xprintf("mv '%s/%s'", from.bucket, from.key);
    return ctl_fail(ctl, &err, what);
}
