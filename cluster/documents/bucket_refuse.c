#include "cluster/documents/bucket_refuse.h"

int bucket_refuse_majority(const struct bucket *b, const char *what, struct error *err)
{
    if (b->props.write_quorum != WRITE_MAJORITY)
        return 0;
    return error_set(err, E_UNSUPPORTED,
                     "bucket '%s' acknowledges what a majority of the owners has, and this release "
                     "has no %s there",
                     b->name, what);
}

int bucket_refuse_cold(const struct bucket *b, const char *what, const char *instead,
                       struct error *err)
{
    if (b->props.backend == NULL)
        return 0;
    return error_set(err, E_UNSUPPORTED, "bucket '%s' has a backend, so that it takes no %s: %s",
                     b->name, what, instead);
}

bool bucket_is_written_back(const struct bucket *b)
{
    return b->props.backend != NULL && b->props.write_policy == WRITE_POLICY_BACK;
}

bool bucket_makes_room(const struct bucket *b)
{
    return b->props.ring_cap > 0;
}

enum durability bucket_durability(const struct bucket *b)
{
    return b->props.ring_cap > 0 ? DURABILITY_SYNC : b->props.durability;
}

int bucket_refuse_ring(const struct bucket *b, const char *what, struct error *err)
{
    if (b->props.ring_cap == 0)
        return 0;
    return error_set(err, E_IS_RING,
                     "bucket '%s' is a ring: no %s; push samples, or take another bucket", b->name,
                     what);
}

int bucket_refuse_made(const struct bucket *b, const char *what, struct error *err)
{
    int code = bucket_refuse_ring(b, what, err);
    if (code != 0)
        return code;
    if (b->props.backend == NULL || bucket_is_written_back(b))
        return 0;
    return error_set(
        err, E_UNSUPPORTED,
        "bucket '%s' has a backend: no %s into it, unless its property write_policy is "
        "'back'",
        b->name, what);
}

int bucket_refuse_write(const struct bucket *b, const char *what, struct error *err)
{
    if (b->props.backend == NULL || b->props.write_policy != WRITE_POLICY_NONE)
        return 0;
    return error_set(err, E_UNSUPPORTED,
                     "bucket '%s' has a backend and is only read: no %s, unless its property "
                     "write_policy is 'through' or 'back'",
                     b->name, what);
}

int bucket_refuse_removal(const struct bucket *b, const char *what, struct error *err)
{
    if (!b->props.write_once)
        return 0;
    return error_set(err, E_WRITE_ONCE,
                     "bucket '%s' is write_once: no %s; set its property write_once to false first",
                     b->name, what);
}
