#include "target/node/thread_classes.h"

#include <unistd.h>

#include "io/pool.h"
#include "target/node/params.h"

enum { NICER_CLIENT = 0, NICER_BACKGROUND = 10 };

#define WAITS(id) (UINT32_C(1) << THREADS_##id)

static long hashers_of(const struct target_params *p)
{
    long half = sysconf(_SC_NPROCESSORS_ONLN) / 2;
    return p->hash_threads > 0 ? (long)p->hash_threads : half > 0 ? half : 1;
}

struct thread_class_row thread_class_row(enum thread_class c, const struct target_params *p)
{
    const struct thread_class_row rows[] = {
#define THREAD_CLASS(id, name_, limit_, queue_, kept_, priority_, waits_) \
    [THREADS_##id] = {.name = (name_),                                    \
                      .limit = (unsigned)(limit_),                        \
                      .queue_max = (size_t)(queue_),                      \
                      .kept = (kept_),                                    \
                      .nicer = NICER_##priority_,                         \
                      .waits_for = (waits_)},
#include "target/node/thread_classes.def"
#undef THREAD_CLASS
    };
    return rows[c];
}

int thread_class_new(enum thread_class c, const struct target_params *p, struct pool **out,
                     struct error *err)
{
    const struct thread_class_row row = thread_class_row(c, p);
    int code = pool_new(row.name, row.limit, row.queue_max, out, err);
    if (code != 0)
        return code;
    pool_set_idle(*out, p->thread_idle);
    pool_set_nicer(*out, row.nicer);
    return pool_keep(*out, row.kept, err);
}
