#include "mount/volume/attr.h"

#include <endian.h>
#include <string.h>
#include <sys/stat.h>

static void put32(uint8_t *out, uint32_t number)
{
    uint32_t little = htole32(number);
    memcpy(out, &little, sizeof little);
}

static uint32_t get32(const uint8_t *data)
{
    uint32_t little;
    memcpy(&little, data, sizeof little);
    return le32toh(little);
}

void attr_encode(const struct attr *a, uint8_t out[static ATTR_BYTES])
{
    put32(out + ATTR_MODE, a->mode);
    put32(out + ATTR_UID, a->uid);
    put32(out + ATTR_GID, a->gid);
    put32(out + ATTR_RDEV, a->rdev);
    meta_field_put(out, ATTR_NLINK, a->nlink);
    meta_field_put(out, ATTR_ENTRIES, a->entries); /* 0 where the quota is */
    meta_field_put(out, ATTR_LENGTH, a->length);
    meta_field_put(out, ATTR_CHANGES, a->changes);
    meta_field_put(out, ATTR_ATIME, a->atime_ns);
    meta_field_put(out, ATTR_MTIME, a->mtime_ns);
    meta_field_put(out, ATTR_CTIME, a->ctime_ns);
    meta_field_put(out, ATTR_PARENT, (int64_t)a->parent);
    meta_field_put(out, attr_quota_at(a->mode), (int64_t)a->quota);
}

bool attr_decode(const struct meta_value *value, struct attr *out)
{
    if (!value->found || value->size < ATTR_BYTES)
        return false;
    *out = (struct attr){
        .mode = get32(value->data + ATTR_MODE),
        .uid = get32(value->data + ATTR_UID),
        .gid = get32(value->data + ATTR_GID),
        .rdev = get32(value->data + ATTR_RDEV),
        .nlink = meta_field(value, ATTR_NLINK),
        .entries = meta_field(value, ATTR_ENTRIES),
        .length = meta_field(value, ATTR_LENGTH),
        .changes = meta_field(value, ATTR_CHANGES),
        .atime_ns = meta_field(value, ATTR_ATIME),
        .mtime_ns = meta_field(value, ATTR_MTIME),
        .ctime_ns = meta_field(value, ATTR_CTIME),
        .parent = (uint64_t)meta_field(value, ATTR_PARENT),
    };
    out->quota = (uint64_t)meta_field(value, attr_quota_at(out->mode));
    if (attr_is_directory(out))
        out->changes = 0;
    else
        out->entries = 0;
    return true;
}

size_t attr_quota_at(uint32_t mode)
{
    return S_ISDIR(mode) ? ATTR_CHANGES : ATTR_ENTRIES;
}

bool attr_is_directory(const struct attr *a)
{
    return S_ISDIR(a->mode);
}

uint32_t attr_without_setid(uint32_t mode)
{
    const bool group_runs = (mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
    return mode & ~(uint32_t)(S_ISUID | (group_runs ? S_ISGID : 0));
}

void entry_encode(uint32_t mode, uint64_t ino, uint8_t out[static ENTRY_BYTES])
{
    memset(out, 0, ENTRY_BYTES);
    put32(out, mode & S_IFMT);
    meta_field_put(out, META_ENTRY_INODE, (int64_t)ino);
}

uint32_t entry_type(const struct meta_value *value)
{
    return value->size >= ENTRY_BYTES ? get32(value->data) & S_IFMT : 0;
}
