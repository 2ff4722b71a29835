#include "mount/tcmu/testing/kernel.h"

#include <assert.h>
#include <linux/target_core_user.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define BEGIN 128u /* of the entries */
#define IOV_AT offsetof(struct tcmu_cmd_entry, req.iov)

static struct tcmu_mailbox *box_of(const struct kernel *k)
{
    return (struct tcmu_mailbox *)k->map;
}

static struct tcmu_cmd_entry *entry_at(const struct kernel *k, uint32_t at)
{
    return (struct tcmu_cmd_entry *)(k->map + BEGIN + at);
}

void kernel_open(struct kernel *k, uint32_t ring_bytes)
{
    const size_t data = (size_t)KERNEL_SLOTS * KERNEL_PAGES * KERNEL_PAGE;
    *k = (struct kernel){.ring_bytes = ring_bytes, .bytes = BEGIN + ring_bytes + data};
    k->map = mmap(NULL, k->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert(k->map != MAP_FAILED);
    *box_of(k) = (struct tcmu_mailbox){
        .version = TCMU_MAILBOX_VERSION, .cmdr_off = BEGIN, .cmdr_size = ring_bytes};
}

void kernel_close(struct kernel *k)
{
    munmap(k->map, k->bytes);
}

static size_t slot_begin(const struct kernel *k, unsigned slot)
{
    return BEGIN + k->ring_bytes + (size_t)slot * KERNEL_PAGES * KERNEL_PAGE;
}

/* Pages of the data, the last first: they are not side by side. */
static uint32_t put_pieces(const struct kernel *k, struct tcmu_cmd_entry *e, unsigned slot,
                           size_t room)
{
    uint32_t n = 0;
    for (size_t done = 0; done < room; n++) {
        const size_t here = room - done < KERNEL_PAGE ? room - done : KERNEL_PAGE;
        const size_t at = slot_begin(k, slot) + (KERNEL_PAGES - 1 - n) * (size_t)KERNEL_PAGE;
        const struct iovec v = {.iov_base = (void *)at, .iov_len = here};
        memcpy((uint8_t *)e + IOV_AT + n * sizeof v, &v, sizeof v);
        done += here;
    }
    return n;
}

static uint32_t free_bytes(const struct kernel *k)
{
    const uint32_t used = (box_of(k)->cmd_head + k->ring_bytes - k->cleaned) % k->ring_bytes;
    return k->ring_bytes - used - 8;
}

static void move_head(struct kernel *k, uint32_t bytes)
{
    __atomic_store_n(&box_of(k)->cmd_head, (box_of(k)->cmd_head + bytes) % k->ring_bytes,
                     __ATOMIC_RELEASE);
}

/* Room for that many bytes at the head, behind a pad if need be. */
static bool make_room(struct kernel *k, uint32_t bytes)
{
    const uint32_t to_end = k->ring_bytes - box_of(k)->cmd_head;
    if (to_end >= bytes)
        return free_bytes(k) >= bytes;
    if (free_bytes(k) < to_end + bytes)
        return false;
    struct tcmu_cmd_entry *e = entry_at(k, box_of(k)->cmd_head);
    memset(&e->hdr, 0, sizeof e->hdr);
    e->hdr.len_op = to_end | TCMU_OP_PAD;
    move_head(k, to_end);
    return true;
}

int kernel_push(struct kernel *k, const uint8_t *cdb, size_t room)
{
    int slot = 0;
    const size_t size = scsi_cdb_size(cdb[0]);
    const uint32_t pieces = (uint32_t)((room + KERNEL_PAGE - 1) / KERNEL_PAGE);
    size_t base = IOV_AT + pieces * sizeof(struct iovec);
    base = base > sizeof(struct tcmu_cmd_entry) ? base : sizeof(struct tcmu_cmd_entry);
    const uint32_t bytes = (uint32_t)(base + size + 7) & ~7u;
    while (slot < KERNEL_SLOTS && k->slots[slot].used)
        slot++;
    if (slot == KERNEL_SLOTS || !make_room(k, bytes))
        return -1;
    k->slots[slot] = (struct kernel_slot){.used = true, .room = room};
    memcpy(k->slots[slot].cdb, cdb, size);
    struct tcmu_cmd_entry *e = entry_at(k, box_of(k)->cmd_head);
    memset(e, 0, bytes);
    e->hdr.len_op = bytes | TCMU_OP_CMD;
    e->hdr.cmd_id = (uint16_t)slot;
    e->req.iov_cnt = put_pieces(k, e, (unsigned)slot, room);
    e->req.cdb_off = BEGIN + box_of(k)->cmd_head + base;
    memcpy((uint8_t *)e + base, cdb, size);
    memset(k->map + slot_begin(k, (unsigned)slot), 0xee, KERNEL_PAGES * KERNEL_PAGE);
    move_head(k, bytes);
    return slot;
}

void kernel_push_other(struct kernel *k, unsigned op)
{
    struct tcmu_cmd_entry *e = entry_at(k, box_of(k)->cmd_head);
    memset(e, 0, 64);
    e->hdr.len_op = 64 | op;
    move_head(k, 64);
}

static void take_data(const struct kernel *k, unsigned slot, struct kernel_reply *reply)
{
    for (unsigned i = 0; i < KERNEL_PAGES; i++)
        memcpy(reply->data + (size_t)i * KERNEL_PAGE,
               k->map + slot_begin(k, slot) + (KERNEL_PAGES - 1 - i) * (size_t)KERNEL_PAGE,
               KERNEL_PAGE);
}

bool kernel_take(struct kernel *k, struct kernel_reply *reply)
{
    while (k->cleaned != __atomic_load_n(&box_of(k)->cmd_tail, __ATOMIC_ACQUIRE)) {
        const struct tcmu_cmd_entry *e = entry_at(k, k->cleaned);
        k->cleaned = (k->cleaned + tcmu_hdr_get_len(e->hdr.len_op)) % k->ring_bytes;
        if (tcmu_hdr_get_op(e->hdr.len_op) != TCMU_OP_CMD)
            continue;
        const unsigned slot = e->hdr.cmd_id;
        assert(slot < KERNEL_SLOTS && k->slots[slot].used);
        *reply = (struct kernel_reply){.slot = k->slots[slot],
                                       .status = e->rsp.scsi_status,
                                       .key = (uint8_t)e->rsp.sense_buffer[2]};
        take_data(k, slot, reply);
        k->slots[slot].used = false;
        return true;
    }
    return false;
}

uint8_t *kernel_entry(struct kernel *k)
{
    return (uint8_t *)entry_at(k, box_of(k)->cmd_tail);
}
