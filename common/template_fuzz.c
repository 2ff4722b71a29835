/* Any text either is refused with E_SPEC or is a template whose names lead back to their index. */
#include "common/template.h"

#include <assert.h>

#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_index(const struct name_template *t, uint64_t index)
{
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    template_name(t, index, &name);
    assert(template_index(t, buf_str(&name)) == index);
}

/* A name from outside: where it has an index, the template makes it there. */
static void check_name(const struct name_template *t, const char *name)
{
    uint64_t index = template_index(t, name);
    if (index == UINT64_MAX)
        return;
    _cleanup_(buf_done)
    struct buf made = BUF_INIT;
    template_name(t, index, &made);
    assert(strcmp(buf_str(&made), name) == 0);
}

/* The input: a template, a NUL, a name. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = ERROR_INIT;
    _cleanup_free_ char *text = xstrndup((const char *)data, size);
    size_t used = strlen(text) + (strlen(text) < size);
    _cleanup_free_ char *name = xstrndup((const char *)data + used, size - used);
    _cleanup_(template_freep)
    struct name_template *t = NULL;
    if (template_parse(text, &t, &err) != 0) {
        assert(err.code == E_SPEC && err.message[0] != '\0');
        return 0;
    }
    check_name(t, name);
    uint64_t count = template_count(t);
    if (count > 0) {
        check_index(t, 0);
        check_index(t, count / 3);
        check_index(t, count - 1);
    }
    return 0;
}
