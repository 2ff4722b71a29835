#include "api/ctl/files/part.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/checksum.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

#define NOTE_MAX_BYTES (16u << 10)

static void hash_name(const struct part *p, const char *leaf, char *out)
{
    struct checksum_value value;
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(CHECKSUM_XXH3);
    const char *const texts[] = {leaf, p->bucket, p->key};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        checksum_update(sum, texts[i], strlen(texts[i]) + 1);
    checksum_final(sum, &value);
    checksum_hex(&value, out);
}

void part_init(struct part *p, const char *bucket, const char *key, const struct landing *l)
{
    char hash[2 * CHECKSUM_MAX + 1];
    *p = (struct part){.bucket = bucket, .key = key, .lock = -1};
    hash_name(p, l->leaf, hash);
    p->name = xprintf(".dfc-part-%s", hash);
    p->note = xprintf(".dfc-part-%s.note", hash);
}

static void forget_version(struct part *p)
{
    free(steal(p->etag));
    free(steal(p->checksum_type));
    free(steal(p->checksum));
}

/* ---- the lock ---- */

/* Locked, and still the file of that name: its last holder may have renamed or removed it. */
static bool take_lock(const struct part *p, int directory, int fd)
{
    struct stat own, named;
    return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &own) == 0 &&
           fstatat(directory, p->name, &named, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(own.st_mode) &&
           own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

static void remove_files(const struct part *p, int directory)
{
    unlinkat(directory, p->note, 0);
    unlinkat(directory, p->name, 0);
}

/* ---- the note ---- */

static char *read_note(const struct part *p, int directory)
{
    _cleanup_close_ int fd = openat(directory, p->note, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_free_ char *text = xcalloc(1, NOTE_MAX_BYTES + 1);
    if (fd < 0)
        return NULL;
    ssize_t n = read(fd, text, NOTE_MAX_BYTES);
    return n > 0 ? steal(text) : NULL;
}

static bool is_text(json_t *doc, const char *field, const char *wanted)
{
    const char *text = json_string_value(json_object_get(doc, field));
    return text != NULL && strcmp(text, wanted) == 0;
}

static bool take_note(struct part *p, int directory)
{
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_free_ char *text = read_note(p, directory);
    const char *etag = "", *type = "", *sum = "";
    if (text == NULL || json_parse(text, strlen(text), &doc, NULL) != 0 ||
        !is_text(doc, "bucket", p->bucket) || !is_text(doc, "name", p->key) ||
        json_get_str(doc, "", "etag", &etag, NULL) != 0 ||
        json_get_str(doc, "", "checksum_type", &type, NULL) != 0 ||
        json_get_str(doc, "", "checksum", &sum, NULL) != 0 ||
        json_get_u64(doc, "", "size", &p->size, NULL) != 0 || etag[0] == '\0')
        return false;
    p->etag = xstrdup(etag);
    p->checksum_type = xstrdup(type);
    p->checksum = xstrdup(sum);
    return true;
}

static bool write_note(const struct part *p, int directory, const struct dfc_object_info *info)
{
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s, s:s, s:I, s:s, s:s}", "bucket", p->bucket, "name", p->key, "etag",
                  info->etag, "size", (json_int_t)info->size, "checksum_type", info->checksum_type,
                  "checksum", info->checksum);
    _cleanup_free_ char *text = doc != NULL ? json_text(doc) : NULL;
    _cleanup_close_ int fd =
        openat(directory, p->note, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    return text != NULL && fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* ---- the part ---- */

/* The lock outlives the descriptor that the landing closes before it renames. */
static void become(struct part *p, struct landing *l, int lock)
{
    p->lock = lock;
    free(l->temporary);
    l->temporary = xstrdup(p->name);
    l->keep = true;
}

bool part_find(struct part *p, struct landing *l, uint64_t *have)
{
    struct stat st;
    _cleanup_close_ int fd =
        openat(l->directory, p->name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || !take_lock(p, l->directory, fd))
        return false;
    if (!take_note(p, l->directory) || fstat(fd, &st) != 0 || (uint64_t)st.st_size > p->size) {
        remove_files(p, l->directory);
        forget_version(p);
        return false;
    }
    int lock = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (lock < 0)
        return false;
    close(l->fd);
    unlinkat(l->directory, l->temporary, 0);
    l->fd = steal_fd(&fd);
    become(p, l, lock);
    *have = (uint64_t)st.st_size;
    return true;
}

/* A part of that name which no program holds is of no use: part_find() has refused it. */
static void clear_name(const struct part *p, int directory)
{
    _cleanup_close_ int fd =
        openat(directory, p->name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && take_lock(p, directory, fd))
        remove_files(p, directory);
}

static void take_name(struct part *p, struct landing *l)
{
    clear_name(p, l->directory);
    int lock = fcntl(l->fd, F_DUPFD_CLOEXEC, 0);
    if (lock < 0)
        return;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0 &&
        renameat2(l->directory, l->temporary, l->directory, p->name, RENAME_NOREPLACE) == 0)
        become(p, l, lock);
    else
        close(lock);
}

void part_begin(struct part *p, struct landing *l, const struct dfc_object_info *info)
{
    bool worth = info->size >= PART_LEAST_BYTES && info->etag[0] != '\0';
    if (p->lock < 0 && worth)
        take_name(p, l);
    if (p->lock < 0)
        return;
    unlinkat(l->directory, p->note, 0);
    l->keep = worth && write_note(p, l->directory, info);
}

void part_end(struct part *p, struct landing *l)
{
    if (p->lock >= 0)
        unlinkat(l->directory, p->note, 0);
}

void part_drop(struct part *p, struct landing *l)
{
    part_end(p, l);
    l->keep = false;
}

void part_done(struct part *p)
{
    if (p->lock >= 0)
        close(p->lock);
    forget_version(p);
    free(p->name);
    free(p->note);
}
