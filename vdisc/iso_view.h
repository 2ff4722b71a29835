/* How one hierarchy of an image is ordered.  An image has one by ECMA-119, and with Joliet one
 * more: the same directories, by other names, and so in another order. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "vdisc/iso_tree.h"

/* A directory of the hierarchy; blocks and addresses are set by iso_layout.c. */
struct iso_place {
    uint32_t node;
    uint32_t parent; /* its number among the directories; the root's is its own */
    uint32_t lba;
    uint32_t blocks;      /* of records */
    uint32_t more_blocks; /* of continuations, directly behind them */
};

struct iso_view {
    bool joliet;
    /* Nodes in the order of their records: those of directory d at order[d.first] and behind. */
    uint32_t *order;
    const char **ident; /* by node, without ";1"; NULL of Joliet, which has the names */
    /* In the order of the path table: by depth, then parent, then identifier. */
    struct iso_place *places;
    uint32_t count;
    uint32_t *place_of; /* by node: of directories, the place */
    uint64_t path_bytes;
    uint32_t l_lba, m_lba; /* of the path tables */
    struct arena *texts;
};

/* E_IMAGE_NAME: Joliet cannot hold a name (more than 64 characters, or one of * / : ; ? \). */
int iso_view_init(struct iso_view *v, const struct iso_tree *t, bool joliet, struct error *err);
void iso_view_done(struct iso_view *v);

#define ISO_VIEW_IDENTIFIER_MAX 128 /* bytes */
/* The bytes of a node's identifier as they are in records (with ";1" of a file), or in the path
 * table; the root's is one byte 0.  Returns their number. */
size_t iso_view_identifier(const struct iso_view *v, const struct iso_tree *t, uint32_t node,
                           uint8_t to[static ISO_VIEW_IDENTIFIER_MAX + 8]);
/* Joliet has no links: they are left out. */
bool iso_view_shows(const struct iso_view *v, const struct iso_node *n);
