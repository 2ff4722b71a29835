/* The text or the JSON of a ring's shape.  What is taken obeys the bounds, and comes back from its
 * own JSON form; what is refused is refused with a sentence. */
#include "cluster/props/ring_shape.h"

#include <assert.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/jsonx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_value(json_t *value)
{
    struct ring_shape shape = {.keep = RING_KEEP_DEFAULT, .bytes_max = RING_BYTES_MAX_DEFAULT};
    struct ring_shape again = shape;
    struct error err = ERROR_INIT;
    if (value == NULL) /* it is no UTF-8 */
        return;
    if (ring_shape_from_json(value, &shape, &err) != 0) {
        assert(err.message[0] != '\0');
        return;
    }
    assert(shape.cap >= 1 && shape.cap <= RING_CAP_MAX && shape.keep <= RING_SHAPE_KEEP_MAX);
    assert(shape.bytes_max / RING_SAMPLE_LEAST / shape.cap >= shape.keep + 2);
    _cleanup_json_ json_t *printed = ring_shape_to_json(&shape);
    const int code = ring_shape_from_json(printed, &again, NULL);
    assert(code == 0 && again.cap == shape.cap && again.keep == shape.keep);
    assert(again.bytes_max == shape.bytes_max && again.consumed == shape.consumed);
    assert(again.drops == shape.drops);
    (void)code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_json_ json_t *text = json_stringn((const char *)data, size);
    if (json_parse((const char *)data, size, &doc, NULL) == 0)
        try_value(doc);
    try_value(text);
    return 0;
}
