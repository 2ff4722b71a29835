/* The kernel's side of a ring, in plain memory that processes share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mount/tcmu/scsi.h"

#define KERNEL_SLOTS 8
#define KERNEL_PAGE 4096
#define KERNEL_PAGES 4 /* of a slot: what the data of one command may have */

/* A command in the ring. */
struct kernel_slot {
    bool used;
    uint8_t cdb[SCSI_CDB];
    size_t room;
};

struct kernel {
    uint8_t *map;
    size_t bytes;
    uint32_t ring_bytes;
    uint32_t cleaned; /* replies up to here were seen */
    struct kernel_slot slots[KERNEL_SLOTS];
};

/* A reply, and the data of its command. */
struct kernel_reply {
    struct kernel_slot slot;
    uint8_t status, key; /* key: of the sense */
    uint8_t data[KERNEL_PAGES * KERNEL_PAGE];
};

/* ring_bytes: small, so that it wraps often. */
void kernel_open(struct kernel *k, uint32_t ring_bytes);
void kernel_close(struct kernel *k);
/* The slot, or -1: there is no room. */
int kernel_push(struct kernel *k, const uint8_t *cdb, size_t room);
/* An entry that is no command. */
void kernel_push_other(struct kernel *k, unsigned op);
/* False: there is no further reply. */
bool kernel_take(struct kernel *k, struct kernel_reply *reply);
/* Where the entry at the tail is. */
uint8_t *kernel_entry(struct kernel *k);
