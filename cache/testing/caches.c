#include "cache/testing/caches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "cache/pace.h"
#include "cache/testing/pattern.h"
#include "common/fault.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "io/file.h"

char caches_root[] = "/tmp/dfc-cache-test-XXXXXX";

int caches_setup(void **state)
{
    (void)state;
    memcpy(caches_root + strlen(caches_root) - 6, "XXXXXX", 6);
    if (mkdtemp(caches_root) == NULL)
        return 1;
    for (unsigned i = 0; i < 3; i++) {
        _cleanup_free_ char *path = xprintf("%s/d%u", caches_root, i);
        if (mkdir(path, 0700) != 0)
            return 1;
    }
    return 0;
}

int caches_teardown(void **state)
{
    (void)state;
    fault_configure(NULL, NULL);
    return file_remove_tree(caches_root, NULL);
}

struct cache *caches_make_of(unsigned count, uint64_t bytes, uint64_t fill_bytes)
{
    struct cache *c;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *one = xprintf("%s/d0", caches_root);
    _cleanup_free_ char *all = xprintf("%s/d0:%s/d1:%s/d2", caches_root, caches_root, caches_root);
    const struct cache_options options = {
        .directories = count == 1 ? one : all,
        .bytes = bytes,
        .fill_bytes = fill_bytes,
        .free_percent = 0,
        .idle_ms = 3600000,
    };
    if (cache_open(&options, &c, &err) != 0)
        fail_msg("%s", err.message);
    return c;
}

struct cache *caches_make(unsigned count)
{
    return caches_make_of(count, 1u << 30, 64 * MIB);
}

void caches_generate(const struct cache_entity *e, uint64_t offset, size_t size, char *to)
{
    pattern_fill(to, (unsigned char)e->name[0], offset, size);
}

bool caches_matches(const struct cache_entity *e, uint64_t offset, size_t size, const char *data)
{
    return pattern_matches(data, (unsigned char)e->name[0], offset, size);
}

bool caches_fill_span(struct cache *c, const struct cache_entity *e, uint64_t offset, uint64_t size,
                      bool insist)
{
    const struct cache_span s = {.entity = e, .offset = offset, .size = size};
    struct cache_fill fill = cache_fill_begin(c, &s, insist);
    bool wanted = fill.data != NULL;
    if (wanted)
        caches_generate(e, offset, size, fill.data);
    cache_fill_end(c, &s, &fill, true, STORE_US);
    return wanted;
}

void caches_fill(struct cache *c, const struct cache_entity *e, uint64_t part, bool insist)
{
    for (uint64_t at = 0; at < e->size; at += part)
        caches_fill_span(c, e, at, e->size - at < part ? e->size - at : part, insist);
}

void caches_settle(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    while (metric_sum(M_cache_joins, "") > 0)
        nanosleep(&moment, NULL);
}

int caches_take(void *context, const void *data, size_t size)
{
    struct caches_got *g = context;
    assert_true(caches_matches(g->entity, g->at, size, data));
    g->at += size;
    return g->rc;
}

void caches_store_is_slow(struct cache *c)
{
    const struct cache_entity e = {.name = "e", .set = "s"};
    const struct cache_span s = {.entity = &e};
    for (unsigned i = 0; i < PACE_LEAST; i++) {
        struct cache_fill none = {0};
        cache_fill_end(c, &s, &none, true, STORE_US);
    }
}

uint64_t caches_read_all(struct cache *c, const struct cache_entity *e)
{
    uint64_t sum = 0;
    for (uint64_t at = 0; at < e->size; at += MIB) {
        struct caches_got g = {.entity = e, .at = at};
        const struct cache_span s = {
            .entity = e, .offset = at, .size = e->size - at < MIB ? e->size - at : MIB};
        int64_t n = cache_read(c, &s, caches_take, &g);
        assert_true(n >= 0 && (uint64_t)n <= s.size);
        sum += (uint64_t)n;
    }
    return sum;
}
