#include "sort/rows/cut.h"

#include <assert.h>

void cut_init(struct cut *c, const struct name_template *names, uint64_t size, uint64_t total)
{
    *c = (struct cut){.names = names, .limit = size};
    if (size == 0) {
        uint64_t count = template_count(names);
        assert(count > 0);
        c->limit = total / count + (total % count != 0);
    }
}

int cut_begin(struct cut *c, struct buf *name, struct error *err)
{
    assert(!c->open);
    if (c->shards == template_count(c->names))
        return error_set(err, E_TEMPLATE_TOO_SMALL,
                         "output template '%s' has %llu names; with shards of %llu bytes more are "
                         "needed",
                         template_text(c->names), (unsigned long long)c->shards,
                         (unsigned long long)c->limit);
    template_name(c->names, c->shards, name);
    c->shards++;
    c->bytes = 0;
    c->open = true;
    return 0;
}

bool cut_add(struct cut *c, uint64_t size)
{
    assert(c->open);
    c->bytes += size;
    c->open = c->bytes < c->limit;
    return !c->open;
}
