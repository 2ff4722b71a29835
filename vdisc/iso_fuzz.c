/* Any bytes as an image: its walk ends. */
#include "vdisc/iso_read.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *data;
    size_t size;
};

/* The system area is zero and costs nothing: the input is what follows. */
static int read_bytes(void *context, uint64_t offset, void *to, size_t len, struct error *err)
{
    const struct bytes *b = context;
    const uint64_t skipped = ISO_SYSTEM_BLOCKS * ISO_BLOCK;
    if (offset < skipped || offset - skipped + len > b->size)
        return error_set(err, E_IMAGE_DAMAGED, "behind the end");
    memcpy(to, b->data + (offset - skipped), len);
    return 0;
}

static int look(void *context, const char *path, const struct iso_found *f, struct error *err)
{
    (void)err;
    assert(strstr(path, "//") == NULL && f->name[0] != '\0');
    assert(strlen(f->target) <= ISO_LINK_MAX);
    ++*(uint64_t *)context;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes b = {.data = data, .size = size};
    const struct iso_source s = {
        .read = read_bytes, .context = &b, .size = size + ISO_SYSTEM_BLOCKS * ISO_BLOCK};
    struct iso_reader r;
    struct iso_found root;
    struct error err = ERROR_INIT;
    uint64_t seen = 0;
    if (iso_reader_open(&r, &s, &err) != 0)
        return 0;
    iso_reader_root(&r, &root);
    int rc = iso_reader_walk(&r, &root, look, &seen, &err);
    assert(rc == 0 || err.message[0] != '\0');
    return 0;
}
