#include "vdisc/packs.h"

#include "vdisc/iso.h"

uint64_t packs_room(uint64_t size)
{
    return size > 0 ? (size + ISO_BLOCK - 1) / ISO_BLOCK * ISO_BLOCK : ISO_BLOCK;
}

uint32_t packs_plan(struct packs_item *items, size_t count)
{
    uint32_t packs = 0;
    uint64_t used = 0; /* of the present pack */
    for (size_t i = 0; i < count; i++) {
        const uint64_t room = packs_room(items[i].size);
        if (used > 0 && used + room > PACKS_SIZE)
            used = 0;
        packs += used == 0;
        items[i].pack = packs - 1;
        items[i].offset = used;
        used = iso_get32(items[i].sha256) % PACKS_CUT == 0 ? 0 : used + room;
    }
    return packs;
}
