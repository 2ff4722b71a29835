#include "api/ctl/names/ambiguous.h"

#include "api/ctl/names/glob.h"
#include "common/cleanup.h"
#include "common/mem.h"

static int refuse(const struct ctl *ctl, const struct object_name *n)
{
    _cleanup_free_ char *escaped = glob_escape(n->key);
    return ctl_usage(ctl,
                     "'%s/%s' is the name of an object, and a pattern: write '%s/%s' for the "
                     "object, or add --pattern for all objects that match",
                     n->bucket, n->key, n->bucket, escaped);
}

int ambiguous_check(const struct ctl *ctl, const struct args *args, const char *word,
                    const struct object_name *n)
{
    struct dfc_error err;
    if (!glob_is(n->key))
        return args->given[F_pattern]
                   ? ctl_usage(ctl, "--pattern: '%s' has no '*', '?' or '[' that is not escaped",
                               word)
                   : EXIT_OK;
    if (args->given[F_pattern])
        return EXIT_OK;
    switch (dfc_head(ctl->client, n->bucket, n->key, NULL, &err)) {
    case DFC_OK:
        return refuse(ctl, n);
    case DFC_NOT_FOUND:
    case DFC_INVALID: /* no object can have such a name */
        return EXIT_OK;
    default:
        return ctl_fail(ctl, &err, word);
    }
}
