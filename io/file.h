/* Files, durably: the helpers that everything written to disk goes through.
 * Fault points: disk.open, disk.read, disk.write, disk.sync, disk.rename, sync.file,
 * sync.directory. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/checksum.h"
#include "common/error.h"

/* Replaces `path` by `len` bytes: temporary beside it, write, fdatasync, rename, fsync of the
 * directory.  After a crash the file is the old one or the new one, whole. */
int file_replace(const char *path, const void *data, size_t len, mode_t mode, struct error *err);
/* The whole file, at most max bytes (E_TOO_LARGE beyond).  E_NOT_FOUND where it is absent. */
int file_read_all(const char *path, size_t max, struct buf *out, struct error *err);
/* Takes away the rights that `mode` does not have: an earlier build may have given them.  Absent is
 * fine; that it cannot be done is logged, and keeps nobody from going on. */
void file_restrict(const char *path, mode_t mode);
int file_write_all(int fd, const void *data, size_t len, struct error *err);
int file_pwrite_all(int fd, const void *data, size_t len, uint64_t offset, struct error *err);
/* Exactly len bytes; E_LENGTH when the file ends before. */
int file_pread_full(int fd, void *out, size_t len, uint64_t offset, struct error *err);
/* fsync: 0 or an errno.  Fault points: disk.sync, and `point`, at which a test leaves it out. */
int file_sync(int fd, const char *point);
/* Of all bytes of the file.  on_piece(), or NULL, is told of each piece that was read, of at most
 * 256 KiB: a large file takes minutes. */
int file_checksum(const char *path, enum checksum_type type,
                  void (*on_piece)(void *ctx, size_t bytes), void *ctx, struct checksum_value *out,
                  struct error *err);
/* A file of a directory that has no name, for reading and writing; on file systems without such,
 * one whose name is removed at once. */
int file_open_unnamed(const char *dir, int *fd, struct error *err);
int file_fsync_dir(const char *path, struct error *err);
int file_fsync_parent(const char *path, struct error *err);        /* the directory that has it */
int file_mkdirs(const char *path, mode_t mode, struct error *err); /* as mkdir -p */
/* The same; made() is told of each directory that was not there, also of those before a failure. */
int file_mkdirs_each(const char *path, mode_t mode, void (*made)(void *ctx, const char *path),
                     void *ctx, struct error *err);
int file_remove_tree(const char *path, struct error *err); /* as rm -rf; absent is fine */
