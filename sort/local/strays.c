#include "sort/local/strays.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"

/* Of an output's name its hash alone is kept: of a million outputs that is 16 MB. */
struct strays {
    struct name_template **templates;
    size_t template_count;
    XXH128_hash_t *outputs;
    size_t output_count, output_room;
    bool sorted;
};

struct strays *strays_new(void)
{
    return xcalloc(1, sizeof(struct strays));
}

void strays_free(struct strays *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->template_count; i++)
        template_free(s->templates[i]);
    free(s->templates);
    free(s->outputs);
    free(s);
}

int strays_add_template(struct strays *s, const struct name_template *t, struct error *err)
{
    struct name_template *copy = NULL;
    int rc = template_parse(template_text(t), &copy, err);
    if (rc != 0)
        return rc;
    s->templates = xrealloc(s->templates, (s->template_count + 1) * sizeof(struct name_template *));
    s->templates[s->template_count++] = copy;
    return 0;
}

void strays_add_output(struct strays *s, const char *name)
{
    if (s->output_count == s->output_room) {
        s->output_room = s->output_room == 0 ? 64 : 2 * s->output_room;
        s->outputs = xrealloc(s->outputs, s->output_room * sizeof *s->outputs);
    }
    s->outputs[s->output_count++] = XXH3_128bits(name, strlen(name));
    s->sorted = false;
}

const char *strays_prefix(const struct strays *s, size_t i)
{
    return i < s->template_count ? template_prefix(s->templates[i]) : NULL;
}

static bool is_output(struct strays *s, const char *name)
{
    const XXH128_hash_t hash = XXH3_128bits(name, strlen(name));
    if (!s->sorted && s->output_count > 0)
        qsort(s->outputs, s->output_count, sizeof *s->outputs, XXH128_cmp);
    s->sorted = true;
    return s->output_count > 0 &&
           bsearch(&hash, s->outputs, s->output_count, sizeof hash, XXH128_cmp) != NULL;
}

bool strays_has(struct strays *s, size_t i, const char *name)
{
    return template_index(s->templates[i], name) != UINT64_MAX && !is_output(s, name);
}
