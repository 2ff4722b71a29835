/* The files of one cache directory.
 *
 *     DIR/dfc-cache/lock                              one process has the directory
 *     DIR/dfc-cache/new/<number>                      pieces that are being written
 *     DIR/dfc-cache/pieces/<set>/<xx>/<piece>         pieces
 *     DIR/dfc-cache/pieces/<set>/<xx>/<whole>         an entity in one file, nothing but its bytes
 *     DIR/dfc-cache/pieces/<set>/<xx>/<whole>.foot    its foot
 *
 * A piece gets its name when all of its bytes are written; what is in new/ at the start is removed.
 * Pieces are not synced: after a loss of power the sums tell which are good.  Only the owner may
 * read the files.  Any thread may call; of one piece that is being written, one at a time.
 *
 * Fault points: cache.read, cache.write, cache.rename, cache.scan. */
#pragma once

#include "cache/piece.h"
#include "common/cleanup.h"
#include "common/error.h"

struct files;

/* The directory must exist.  E_EXISTS: another process has it.  E_INVALID: DIR/dfc-cache is not of
 * this user, or others may write in it.  Trusted are all who may rename it: the owner of DIR, and
 * whoever may write in DIR, unless DIR is sticky as /tmp is. */
int files_open(const char *directory, struct files **out, struct error *err);
void files_close(struct files *f);
DEFINE_CLEANUP(struct files, files_close);

/* ---- reading ---- */

struct files_piece {
    int fd;
    bool is_whole; /* it was found within the whole */
    uint64_t base; /* where the piece begins in its file */
    uint64_t sums[PIECE_PARTS];
};

/* 0 or -errno.  ENOENT: it is not there; EBADMSG: what is there is damaged, short or of another
 * entity. */
int files_find(struct files *f, const struct piece *p, struct files_piece *out);
/* The same, within the file of the whole entity. */
int files_find_within(struct files *f, const struct piece *p, struct files_piece *out);
/* Bytes of the piece, compared with their sums: offset and size are of whole parts, but for the
 * piece's end. */
int files_read(const struct files_piece *found, const struct piece *p, size_t offset, size_t size,
               void *to);
void files_found_close(struct files_piece *found);
/* A descriptor of the whole's file, or -errno as above.  Its bytes are not compared. */
int files_open_whole(struct files *f, const struct piece *whole);
/* All bytes of the whole were compared now.  The time of its foot tells later processes. */
void files_prove_whole(struct files *f, const struct piece *whole);

/* ---- writing ---- */

struct files_writer; /* a piece whose bytes come in any order */

struct files_writer *files_begin(struct files *f, const struct piece *p);
/* Whole parts, each once.  0 or -errno. */
int files_write(struct files_writer *w, size_t offset, const void *data, size_t size);
bool files_is_whole(const struct files_writer *w);
/* The piece gets its name; the writer ends.  *bytes: what it takes on the disk. */
int files_publish(struct files_writer *w, size_t *bytes);
void files_abandon(struct files_writer *w); /* NULL is fine */

struct files_join; /* a whole whose bytes come in order */

struct files_join *files_join_begin(struct files *f, const struct piece *whole);
/* Whole parts, but for the entity's end.  0 or -errno. */
int files_join_write(struct files_join *j, const void *data, size_t size);
/* The whole gets its name; the join ends.  All bytes were written.  *bytes: as above. */
int files_join_publish(struct files_join *j, size_t *bytes);
void files_join_abandon(struct files_join *j); /* NULL is fine */

/* ---- all of them ---- */

int files_remove(struct files *f, const struct piece_id *id, uint64_t set);

struct files_seen {
    struct piece_id id;
    uint64_t set;
    size_t bytes; /* on the disk */
    int64_t written_ms;
    int64_t proved_ms; /* of a whole: when it was compared; 0: not since the machine started */
};
struct files_scanner {
    void *context;
    void (*seen)(void *context, const struct files_seen *s);
    /* After each name: 0, or -errno of what could not be read.  False: the scan ends. */
    bool (*goes_on)(void *context, int rc);
};
/* Each piece, the one written first first; what has another name is left alone.  A scan that ends
 * early tells what it has seen. */
void files_scan(struct files *f, const struct files_scanner *scanner);

struct files_room {
    uint64_t total_bytes, free_bytes; /* of the file system */
};
int files_room(struct files *f, struct files_room *room);
