/* Any bytes either are refused with a sentence, or are a list of what a sort has pinned, whose
 * names end where they say.  The input is tried as it is and with a right check behind it, since a
 * fuzzer does not guess those. */
#include "target/sort/pinned.h"

#include <assert.h>
#include <string.h>

#include "common/checksum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int each(void *arg, const struct pinned_shard *shard, struct error *err)
{
    size_t *bytes = arg;
    (void)err;
    *bytes += strlen(shard->info.name);
    return 0;
}

static void read_all(const struct buf *text)
{
    struct pinned_head head = {0};
    struct error err = ERROR_INIT;
    size_t bytes = 0;
    if (pinned_each(text, &head, each, &bytes, &err) != 0)
        assert(err.code != 0 && err.message[0] != '\0');
    assert(bytes <= text->len);
}

static void put_check(struct buf *text)
{
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(CHECKSUM_XXH3);
    struct checksum_value value;
    checksum_update(sum, buf_str(text), text->len);
    checksum_final(sum, &value);
    buf_append(text, value.bytes, checksum_size(CHECKSUM_XXH3));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_append(&text, data, size);
    read_all(&text);
    put_check(&text);
    read_all(&text);
    return 0;
}
