/* Two things of any bytes: a merged index, which is refused or painted; and a program of writes and
 * cuts in several segments, whose map is compared with a plain array. */
#include "plog/map.h"

#include <assert.h>
#include <string.h>

enum { FILE_MAX = 256, LONGEST = 16 };

static void paint_merged(const uint8_t *data, size_t size)
{
    _cleanup_plog_map_ struct plog_map *m = plog_map_new();
    struct plog_extents e;
    if (plog_map_parse(m, data, size, NULL) != 0)
        return;
    plog_map_paint(m, 0, 4096, &e);
    plog_extents_done(&e);
    (void)plog_map_size(m);
}

static void seal(struct plog_map *m, struct plog_segment *s, struct plog_segment_name *name)
{
    struct plog_footer f;
    plog_segment_seal(s, name);
    const uint8_t *bytes = (const uint8_t *)s->bytes.data;
    assert(plog_footer_parse(bytes + s->bytes.len - PLOG_FOOTER, &f, NULL) == 0);
    assert(plog_map_add(m, &f, bytes + f.name.bytes, NULL) == 0);
    plog_segment_done(s);
    name->n++;
}

/* Each byte of the file: segment and physical offset, 0 and 0 where nothing is. */
static void compare(const uint8_t *data, size_t size)
{
    _cleanup_plog_map_ struct plog_map *m = plog_map_new();
    uint8_t file[FILE_MAX][2] = {{0}}, seen[FILE_MAX][2] = {{0}}, bytes[LONGEST] = {0};
    struct plog_segment s = {.end = 0};
    struct plog_segment_name name = {.epoch = 1};
    struct plog_extents e;
    for (size_t i = 0; i + 3 <= size && i < 3 * 60; i += 3) {
        const uint8_t offset = data[i + 1], length = (uint8_t)(1 + data[i + 2] % LONGEST);
        if (data[i] % 16 == 0) {
            plog_segment_cut(&s, offset);
            memset(file[offset], 0, (size_t)(FILE_MAX - offset) * 2);
        } else if (data[i] % 16 == 1) {
            seal(m, &s, &name);
        } else if (offset + length <= FILE_MAX && s.bytes.len + length < 256) {
            for (uint8_t k = 0; k < length; k++) {
                file[offset + k][0] = (uint8_t)(1 + name.n);
                file[offset + k][1] = (uint8_t)(s.bytes.len + k);
            }
            plog_segment_write(&s, bytes, length, offset);
        }
    }
    seal(m, &s, &name);
    plog_map_paint(m, 0, FILE_MAX, &e);
    for (size_t i = 0; i < e.count; i++) {
        for (uint64_t k = 0; k < e.items[i].length; k++) {
            seen[e.items[i].start + k][0] = (uint8_t)(1 + e.items[i].segment);
            seen[e.items[i].start + k][1] = (uint8_t)(e.items[i].physical + k);
        }
    }
    plog_extents_done(&e);
    assert(memcmp(file, seen, sizeof file) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    paint_merged(data, size);
    compare(data, size);
    return 0;
}
