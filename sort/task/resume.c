#include "sort/task/resume.h"

#include "common/mem.h"
#include "sort/base/digests.h"

struct planned {
    XXH128_hash_t order;
    XXH128_hash_t name;
    bool stands;
};

struct resume {
    struct digests *built;   /* orders of shards that stand */
    struct digests *removed; /* names of shards that stood */
    struct digests *wanted;  /* names of shards that stand, while the rest is removed */
    struct planned *planned; /* by their place in the book */
    size_t count;
    bool begun; /* what an earlier life has built is known */
};

struct resume *resume_new(void)
{
    struct resume *r = xcalloc(1, sizeof *r);
    r->built = digests_new();
    r->removed = digests_new();
    return r;
}

void resume_free(struct resume *r)
{
    if (r == NULL)
        return;
    digests_free(r->built);
    digests_free(r->removed);
    digests_free(r->wanted);
    free(r->planned);
    free(r);
}

static bool stands(const struct resume *r, const struct sort_context *c, XXH128_hash_t order,
                   const char *name)
{
    const struct sort_env *env = c->env;
    return digests_have(r->built, order) &&
           (env->output_stands == NULL || env->output_stands(env->ctx, name));
}

static int plan_one(struct resume *r, const struct sort_context *c, const struct book *book,
                    size_t i, struct error *err)
{
    struct planned *p = &r->planned[i];
    struct blob_range range = book_range(book, i);
    struct order_shard shard = {0};
    struct decoder d;
    decoder_init(&d, source_blob(&range));
    int rc = order_get_shard(&d, &shard, err);
    decoder_done(&d);
    p->order = shard.digest;
    p->name = XXH3_128bits(shard.name.data, shard.name.len);
    p->stands = rc == 0 && stands(r, c, p->order, buf_str(&shard.name));
    buf_done(&shard.name);
    return rc;
}

static int plan_all(struct resume *r, struct sort_context *c, const struct book *book,
                    struct error *err)
{
    int rc = 0;
    free(r->planned);
    r->count = book_count(book);
    r->planned = xcalloc(r->count + 1, sizeof *r->planned);
    for (size_t i = 0; rc == 0 && i < r->count; i++) {
        rc = plan_one(r, c, book, i, err);
        if (rc == 0)
            rc = links_check(c->links, err);
    }
    return rc;
}

/* From now on only what is in this attempt's orders counts as built. */
static void keep_what_stands(struct resume *r)
{
    digests_free(r->built);
    digests_free(r->wanted);
    r->built = digests_new();
    r->wanted = digests_new();
    for (size_t i = 0; i < r->count; i++) {
        if (!r->planned[i].stands)
            continue;
        digests_add(r->built, r->planned[i].order);
        digests_add(r->wanted, r->planned[i].name);
    }
}

static bool is_wanted(void *arg, const char *name)
{
    struct resume *r = arg;
    XXH128_hash_t digest = XXH3_128bits(name, strlen(name));
    bool wanted = digests_have(r->wanted, digest);
    if (!wanted)
        digests_add(r->removed, digest);
    return wanted;
}

static void recall_one(void *arg, const struct sort_digest *order)
{
    struct resume *r = arg;
    digests_add(r->built, (XXH128_hash_t){.low64 = order->low, .high64 = order->high});
}

static int recall(struct resume *r, const struct sort_context *c, struct error *err)
{
    const struct sort_env *env = c->env;
    bool wanted = !r->begun && c->attempt > 0 && env->outputs_remembered != NULL;
    r->begun = true;
    return wanted ? env->outputs_remembered(env->ctx, recall_one, r, err) : 0;
}

int resume_begin(struct resume *r, struct sort_context *c, const struct book *book,
                 struct error *err)
{
    int rc = recall(r, c, err);
    if (rc == 0)
        rc = plan_all(r, c, book, err);
    if (rc != 0)
        return rc;
    keep_what_stands(r);
    return c->attempt > 0 ? c->env->outputs_prune(c->env->ctx, is_wanted, r, err) : 0;
}

bool resume_stands(const struct resume *r, size_t i)
{
    return r->planned[i].stands;
}

bool resume_is_again(struct resume *r, size_t i)
{
    return digests_have(r->removed, r->planned[i].name);
}

int resume_built(struct resume *r, const struct sort_context *c, size_t i, const char *name,
                 struct error *err)
{
    const struct sort_env *env = c->env;
    XXH128_hash_t digest = r->planned[i].order;
    const struct sort_digest order = {.low = digest.low64, .high = digest.high64};
    digests_add(r->built, digest);
    return env->output_remember != NULL ? env->output_remember(env->ctx, name, &order, err) : 0;
}
