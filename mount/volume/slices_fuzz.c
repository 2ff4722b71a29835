/* Any bytes are refused with a sentence, or are a list that shows what an array shows. */
#include "mount/volume/slices.h"

#include <assert.h>

#include "mount/volume/testing/slice_model.h"

enum { CHUNK = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each entry another slice, so that the model can tell them apart. */
static void number(struct slice_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        list->entries[i].slice = list->entries[i].slice != 0 ? i + 1 : 0;
}

/* Bytes that are no list make one: four each. */
static struct slice_list list_of(const uint8_t *data, size_t size, struct arena *arena)
{
    struct slice_list list = {arena_alloc(arena, (size / 4 + 1) * sizeof *list.entries), size / 4};
    for (size_t i = 0; i < list.count; i++, data += 4) {
        uint32_t length = 1 + data[1] % (CHUNK - (uint32_t)data[0]);
        list.entries[i] = (struct slice_entry){
            .at = data[0],
            .length = length,
            .offset = data[2],
            .size = data[2] + length,
            .slice = data[3] % 4,
        };
    }
    return list;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new(4096);
    struct slice_list list;
    struct error err = ERROR_INIT;
    if (slices_decode(data, size, CHUNK, arena, &list, &err) != 0) {
        assert(err.code == E_CORRUPT && err.message[0] != '\0');
        list = list_of(data, size, arena);
    }
    number(&list);
    slice_model_check(&list, 0, CHUNK, CHUNK, arena);
    slice_model_check(&list, size > 0 ? data[0] : 0, 17 % CHUNK, CHUNK + 17, arena);
    slice_model_check_prune(&list, CHUNK, arena);
    arena_free(arena);
    return 0;
}
