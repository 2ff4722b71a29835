#include "sort/shard/format.h"

#include <string.h>

#include "sort/shard/format_parts.h"

static const struct shard_format_ops *const formats[] = {
    &format_tar,      &format_tgz, &format_zip, &format_zst,  &format_lz4, &format_msgpack,
    &format_tfrecord, &format_xz,  &format_bz2, &format_cpio, &format_7z,
};

#define FORMATS (sizeof formats / sizeof *formats)

const struct shard_format_ops *format_of_extension(const char *extension)
{
    for (size_t i = 0; i < FORMATS; i++) {
        for (const char *const *e = formats[i]->extensions; *e != NULL; e++) {
            if (strcmp(*e, extension) == 0)
                return formats[i];
        }
    }
    return NULL;
}

const char *format_extension_of(const char *name)
{
    const char *found = NULL;
    size_t len = strlen(name);
    for (size_t i = 0; i < FORMATS; i++) {
        for (const char *const *e = formats[i]->extensions; *e != NULL; e++) {
            size_t n = strlen(*e);
            bool ends = n <= len && strcmp(name + len - n, *e) == 0;
            if (ends && (found == NULL || n > strlen(found)))
                found = *e;
        }
    }
    return found;
}

const char *format_foreign_extension_of(const char *name)
{
    static const char *const foreign[] = {".rar", ".tar.Z", ".tar.lzma"};
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        size_t n = strlen(foreign[i]);
        if (n <= len && strcmp(name + len - n, foreign[i]) == 0)
            return foreign[i];
    }
    return NULL;
}

int format_decode(const struct shard_format_ops *f, const struct format_input *in, struct sink tar,
                  struct error *err)
{
    if (in->size == 0 && !f->may_be_empty)
        return error_set(err, E_SHARD_CORRUPT, "shard '%s' has no bytes: it was cut short",
                         in->shard);
    return f->decode(in, tar, err);
}

const char *format_extensions(void)
{
    return ".tar, .tar.gz, .tgz, .zip, .tar.zst, .tar.lz4, .msgpack, .tfrecord, .tar.xz, .txz, "
           ".tar.bz2, .tbz2, .cpio, .7z";
}

const char *format_output_extensions(void)
{
    return ".tar, .tar.gz, .tgz, .zip, .tar.zst, .tar.lz4, .msgpack, .tfrecord";
}
