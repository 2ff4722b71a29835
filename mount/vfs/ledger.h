/* What the kernel knows of a mount, its nodes and its handles, in memory that outlives the process.
 * A process that takes over after a crash reads it, and goes on under the same numbers.
 *
 *     ledger_memory      a descriptor, kept by whoever starts the processes
 *     ledger_open        maps it
 *     ledger_each        what an earlier process has left
 *     ledger_add         a record is there before the kernel hears of its number
 *     ledger_remove      the kernel has given the number back
 *     ledger_close
 *
 * The memory is a sparse file of slots, small and large ones.  A slot is published, and given
 * back, by one store to its kind: a kill at any moment leaves the record or none.  Any thread may
 * call. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"

#define LEDGER_TEXTS 3
#define LEDGER_FIRST 2 /* the least number; 1 is the root's */

enum ledger_kind {
    LEDGER_FREE,
    LEDGER_NODE,      /* texts: key, version */
    LEDGER_DRAFT,     /* a node that was being written; texts: key */
    LEDGER_DIRECTORY, /* a handle of `node` */
    LEDGER_FILE,      /* a handle that reads `node`; uses: the kernel's number of the file that it
                         reads itself, or 0; modified_s: that of its request; texts: key, entity
                         tag, checksum */
    LEDGER_WRITTEN,   /* a handle that writes `node`; uses: 1 while something is not stored */
    LEDGER_PLACE, /* of a volume's directory handle `node`: entry `uses` is behind a name; texts */
    LEDGER_UNSAVED, /* of a volume: bytes of `node` are not stored; uses: their stamp */
};

struct ledger_record {
    enum ledger_kind kind;
    bool is_directory; /* of a node */
    uint64_t node;     /* of a handle */
    uint64_t uses;
    uint64_t inode; /* of a handle: its stamp */
    uint64_t size;
    int64_t modified_s;
    const char *texts[LEDGER_TEXTS]; /* NULL is "" */
};

struct ledger;

int ledger_memory(void); /* a descriptor, or -1 with errno */
/* fd: of ledger_memory(); -1: a memory of its own.  NULL with errno. */
struct ledger *ledger_open(int fd);
uint64_t ledger_stamp(struct ledger *l); /* another one with each call, over all processes */
void ledger_close(struct ledger *l);     /* NULL is fine */
DEFINE_CLEANUP(struct ledger, ledger_close);

void ledger_each(struct ledger *l,
                 void (*visit)(void *context, uint64_t number, const struct ledger_record *r),
                 void *context);
/* The number; 0: there is no room, or the texts are too long. */
uint64_t ledger_add(struct ledger *l, const struct ledger_record *r);
void ledger_uses(struct ledger *l, uint64_t number, uint64_t uses);
void ledger_remove(struct ledger *l, uint64_t number);
