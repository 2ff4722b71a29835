#include "target/slices/ec.h"

#include <string.h>
#include <sys/random.h>

#include "common/mem.h"
#include "io/pool.h"
#include "target/slices/slice_repair.h"
#include "target/slices/source.h"
#include "target/slices/sweep.h"
#include "target/slices/sweep_timer.h"
#include "target/node/target.h"
#include "target/node/thread_classes.h"

static int seed(struct ec *e, struct error *err)
{
    uint64_t s = 0;
    if (getrandom(&s, sizeof s, 0) != (ssize_t)sizeof s)
        return error_set(err, E_IO, "the kernel has no random bytes");
    rng_seed(&e->rng, s);
    return 0;
}

const struct slices_hooks ec_hooks = {.each = ec_source_each, .wanted = ec_mend_slice};

int ec_new(struct target *t, struct ec **out, struct error *err)
{
    struct ec *e = xcalloc(1, sizeof *e);
    *out = e;
    e->target = t;
    e->damaged = slice_repair_want;
    e->sweep_since_ms = EC_TURN_NONE;
    job_stop_init(&e->stop);
    pthread_mutex_init(&e->lock, NULL);
    pthread_mutex_init(&e->mending, NULL);
    pthread_mutex_init(&e->dropping, NULL);
    int code = seed(e, err);
    if (code == 0)
        code = thread_class_new(THREADS_EC_READ, &t->params, &e->readers, err);
    if (code == 0)
        code = slice_repair_new(t, &e->stop, &e->repair, err);
    return code != 0 ? code : ec_sweep_start(e, err);
}

void ec_stop(struct ec *e)
{
    if (e != NULL)
        job_stop_now(&e->stop);
}

void ec_free(struct ec *e)
{
    if (e == NULL)
        return;
    job_stop_now(&e->stop);
    ec_sweep_end(e);
    pool_free(e->readers);
    slice_repair_free(e->repair); /* readers tell it what they found */
    pthread_mutex_destroy(&e->dropping);
    pthread_mutex_destroy(&e->mending);
    pthread_mutex_destroy(&e->lock);
    job_stop_done(&e->stop);
    free(e);
}

uint64_t ec_new_tag(struct ec *e)
{
    uint64_t tag;
    pthread_mutex_lock(&e->lock);
    do
        tag = rng_next(&e->rng);
    while (tag == 0);
    pthread_mutex_unlock(&e->lock);
    return tag;
}
