#include "mount/tcmu/ring.h"

#include <linux/target_core_user.h>
#include <stddef.h>
#include <string.h>

#define TAKEN 0x40
#define DONE 0x80
#define IOV_AT offsetof(struct tcmu_cmd_entry, req.iov)

static struct tcmu_mailbox *mailbox_of(const struct ring *r)
{
    return (struct tcmu_mailbox *)r->map;
}

static struct tcmu_cmd_entry *entry_at(const struct ring *r, uint32_t at)
{
    return (struct tcmu_cmd_entry *)(r->map + r->begin + at);
}

static uint32_t head_of(const struct ring *r)
{
    return __atomic_load_n(&mailbox_of(r)->cmd_head, __ATOMIC_ACQUIRE);
}

static int damaged(struct error *err, const char *what, uint32_t at)
{
    return error_set(err, E_CORRUPT, "the ring is damaged at %u: %s", at, what);
}

int ring_open(struct ring *r, void *map, size_t bytes, struct error *err)
{
    const struct tcmu_mailbox *box = map;
    if (bytes < sizeof *box)
        return damaged(err, "it is too small", 0);
    if (box->version != TCMU_MAILBOX_VERSION)
        return error_set(err, E_UNSUPPORTED, "the kernel's ring has version %u, not %u",
                         box->version, TCMU_MAILBOX_VERSION);
    *r = (struct ring){
        .map = map,
        .bytes = bytes,
        .begin = box->cmdr_off,
        .size = box->cmdr_size,
        .next = box->cmd_tail,
    };
    if (r->begin < sizeof *box || r->begin > bytes || r->size == 0 || r->size > bytes - r->begin ||
        r->begin % TCMU_OP_ALIGN_SIZE != 0 || r->size % TCMU_OP_ALIGN_SIZE != 0)
        return damaged(err, "its size", 0);
    if (r->next >= r->size || head_of(r) >= r->size)
        return damaged(err, "its ends", r->next);
    return 0;
}

/* The length of the entry, which has its end at `to` or before; or 0. */
static uint32_t length_of(const struct ring *r, uint32_t at, uint32_t to)
{
    const uint32_t most = (to < at ? r->size : to) - at;
    if (most < sizeof(struct tcmu_cmd_entry_hdr))
        return 0;
    const uint32_t length = tcmu_hdr_get_len(entry_at(r, at)->hdr.len_op);
    return length <= most ? length : 0;
}

static uint32_t behind(const struct ring *r, uint32_t at, uint32_t length)
{
    return (at + length) % r->size;
}

/* Of the place where the kernel may have left anything. */
static struct iovec iovec_of(const struct tcmu_cmd_entry *e, uint32_t i)
{
    struct iovec v;
    memcpy(&v, (const uint8_t *)e + IOV_AT + i * sizeof v, sizeof v);
    return v;
}

static int take_pieces(const struct ring *r, struct ring_command *c, uint32_t length,
                       struct error *err)
{
    const struct tcmu_cmd_entry *e = entry_at(r, c->at);
    const size_t data = (size_t)r->begin + r->size;
    c->pieces = e->req.iov_cnt;
    if (c->pieces > (length - IOV_AT) / sizeof(struct iovec))
        return damaged(err, "pieces of data", c->at);
    for (uint32_t i = 0; i < c->pieces; i++) {
        const struct iovec v = iovec_of(e, i);
        const uintptr_t base = (uintptr_t)v.iov_base;
        if (base < data || base > r->bytes || v.iov_len > r->bytes - base)
            return damaged(err, "a piece of data", c->at);
        c->room += v.iov_len;
    }
    return 0;
}

static int take_request(const struct ring *r, struct ring_command *c, uint32_t length,
                        struct error *err)
{
    const struct tcmu_cmd_entry *e = entry_at(r, c->at);
    if (length < sizeof *e)
        return damaged(err, "a short command", c->at);
    if ((e->hdr.uflags & TAKEN) != 0) {
        c->lost = true;
        return 0;
    }
    const uint64_t from = (uint64_t)r->begin + c->at, to = from + length, cdb = e->req.cdb_off;
    if (cdb < from + IOV_AT || cdb >= to)
        return damaged(err, "the place of a command's bytes", c->at);
    const size_t size = scsi_cdb_size(r->map[cdb]);
    if (size > to - cdb)
        return damaged(err, "a command's bytes", c->at);
    memcpy(c->cdb, r->map + cdb, size);
    return take_pieces(r, c, length, err);
}

int ring_take(struct ring *r, struct ring_command *c, struct error *err)
{
    const uint32_t head = head_of(r);
    if (head >= r->size)
        return damaged(err, "its head", head);
    while (r->next != head) {
        const uint32_t at = r->next;
        const uint32_t length = length_of(r, at, head);
        if (length == 0)
            return damaged(err, "the length of an entry", at);
        struct tcmu_cmd_entry_hdr *hdr = &entry_at(r, at)->hdr;
        r->next = behind(r, at, length);
        if (tcmu_hdr_get_op(hdr->len_op) == TCMU_OP_PAD || (hdr->uflags & DONE) != 0)
            continue;
        if (tcmu_hdr_get_op(hdr->len_op) != TCMU_OP_CMD) {
            hdr->uflags |= TCMU_UFLAG_UNKNOWN_OP | DONE;
            continue;
        }
        *c = (struct ring_command){.at = at};
        int rc = take_request(r, c, length, err);
        return rc == 0 ? 1 : rc;
    }
    return 0;
}

void ring_put(const struct ring *r, const struct ring_command *c, const void *data, size_t size)
{
    const struct tcmu_cmd_entry *e = entry_at(r, c->at);
    const uint8_t *from = data;
    for (uint32_t i = 0; i < c->pieces; i++) {
        const struct iovec v = iovec_of(e, i);
        uint8_t *to = r->map + (uintptr_t)v.iov_base;
        const size_t here = size < v.iov_len ? size : v.iov_len;
        if (here > 0)
            memcpy(to, from, here);
        memset(to + here, 0, v.iov_len - here);
        from = here > 0 ? from + here : from;
        size -= here;
    }
}

/* A kill may come between any two of these: the compiler must not change their order. */
void ring_reply(struct ring *r, const struct ring_command *c, const struct scsi_reply *reply)
{
    struct tcmu_cmd_entry *e = entry_at(r, c->at);
    __atomic_store_n(&e->hdr.uflags, TAKEN, __ATOMIC_SEQ_CST);
    memset(&e->rsp, 0, sizeof e->rsp);
    e->rsp.scsi_status = (uint8_t)reply->status;
    if (reply->status == SCSI_CHECK_CONDITION)
        memcpy(e->rsp.sense_buffer, reply->sense, SCSI_SENSE);
    __atomic_store_n(&e->hdr.uflags, TAKEN | DONE, __ATOMIC_SEQ_CST);
}

bool ring_advance(struct ring *r)
{
    struct tcmu_mailbox *box = mailbox_of(r);
    const uint32_t old = box->cmd_tail;
    uint32_t tail = old;
    while (tail != r->next) {
        const struct tcmu_cmd_entry_hdr *hdr = &entry_at(r, tail)->hdr;
        const uint32_t length = length_of(r, tail, r->next);
        if (length == 0 ||
            (tcmu_hdr_get_op(hdr->len_op) != TCMU_OP_PAD && (hdr->uflags & DONE) == 0))
            break;
        tail = behind(r, tail, length);
    }
    if (tail == old)
        return false;
    __atomic_store_n(&box->cmd_tail, tail, __ATOMIC_RELEASE);
    return true;
}
