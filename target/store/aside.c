/* What is left of an object that is damaged: for who can tell the good parts of its bytes from
 * others (slices, ec/block.h). */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "io/reader.h"
#include "target/store/object_parts.h"
#include "target/store/quarantine.h"

static int open_left(const struct object_place *p, struct mountpath *mp, struct error *err)
{
    _cleanup_free_ char *path = object_place_text(p, mp);
    int fd = quarantine_open(mp, path);
    if (fd < 0 && errno == ENODATA) /* it was not moved aside */
        fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return object_not_found(p->name, err);
    if (fd < 0)
        return error_errno(err, errno, "open what is left of '%s' on '%s'", p->name, mp->path);
    return fd;
}

int object_open_left(struct object_store *s, uint64_t bucket_id, const char *name, int *fd,
                     uint64_t *size, struct reader **reader, struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    struct stored cur;
    struct stat st;
    *reader = NULL;
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code != 0)
        return code;
    object_lock(&p);
    code = stored_read(&p, &cur, err);
    struct mountpath *mp = code == 0 && cur.exists ? cur.mp : p.mp;
    if (code == 0)
        code = open_left(&p, mp, err);
    object_unlock(&p);
    if (code < 0)
        return code;
    if (fstat(code, &st) != 0) {
        close(code);
        return error_errno(err, errno, "look at what is left of '%s'", name);
    }
    *fd = code;
    *size = (uint64_t)st.st_size;
    *reader = reader_ref(mp->reader);
    return 0;
}
