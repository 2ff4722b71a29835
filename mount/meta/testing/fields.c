#include "mount/meta/testing/fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mount/meta/engines.h"

struct meta *open_url(const char *url)
{
    struct meta *m;
    struct error err = ERROR_INIT;
    if (engines_open(url, true, &m, &err) != 0)
        fail_msg("%s", err.message);
    return m;
}

int read_field(struct meta *m, struct meta_key key, int64_t *number)
{
    _cleanup_arena_ struct arena *arena = arena_new(256);
    struct meta_item item = {.ask = META_GET, .key = key};
    struct meta_read r = {.arena = arena, .items = &item, .count = 1};
    int rc = m->ops->read(m, &r, NULL);
    *number = item.value.found ? meta_field(&item.value, 0) : -1;
    return rc;
}

int64_t field_of(struct meta *m, struct meta_key key)
{
    int64_t number;
    assert_int_equal(read_field(m, key, &number), 0);
    return number;
}

int commit_step(struct meta *m, const struct meta_step *s)
{
    struct meta_commit c = {.steps = s, .count = 1};
    return m->ops->commit(m, &c, NULL);
}

int put_field(struct meta *m, struct meta_key key, int64_t number)
{
    uint8_t bytes[8];
    meta_field_put(bytes, 0, number);
    return commit_step(
        m, &(struct meta_step){.kind = META_PUT, .key = key, .data = bytes, .size = sizeof bytes});
}

int add_field(struct meta *m, struct meta_key key, int64_t number)
{
    return commit_step(m, &(struct meta_step){.kind = META_ADD, .key = key, .number = number});
}
