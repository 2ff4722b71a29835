#include "api/ctl/put_flags.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/ctl/upload/upload.h"
#include "common/mem.h"

void put_flags_done(struct put_flags *f)
{
    for (size_t i = 0; i < f->options.meta_count; i++)
        free(f->names[i]);
    free(f->names);
    free(f->meta);
}

int part_size_of(const struct ctl *ctl, const struct args *a, uint64_t *size)
{
    *size = a->given[F_part_size] ? a->number[F_part_size] : UPLOAD_PART_BYTES;
    if (*size == 0 || (*size >= UPLOAD_PART_LEAST && *size <= UPLOAD_PART_MOST))
        return EXIT_OK;
    return ctl_usage(ctl, "--part-size must be 5MiB to 5GiB, or 0 for no parts");
}

int put_flags_read(const struct ctl *ctl, const struct args *a, struct put_flags *f)
{
    size_t n = a->list_count[F_meta];
    f->meta = xcalloc(n + 1, sizeof *f->meta);
    f->names = xcalloc(n + 1, sizeof *f->names);
    f->options = (struct dfc_put_options){
        .content_type = a->text[F_content_type],
        .meta = f->meta,
        .if_absent = a->given[F_if_absent],
        .if_match = a->text[F_if_match],
        .no_checksum = a->given[F_no_checksum],
    };
    int code = part_size_of(ctl, a, &f->part_size);
    if (code != EXIT_OK)
        return code;
    for (size_t i = 0; i < n; i++) {
        const char *text = a->list[F_meta][i];
        const char *equals = strchr(text, '=');
        if (equals == NULL || equals == text)
            return ctl_usage(ctl, "--meta: '%s' is not NAME=VALUE", text);
        f->names[i] = xstrndup(text, (size_t)(equals - text));
        f->options.meta_count = i + 1; /* names that are owned */
        for (size_t j = 0; j < i; j++) {
            if (strcasecmp(f->names[i], f->names[j]) == 0)
                return ctl_usage(ctl, "--meta: '%s' is given twice", f->names[i]);
        }
        f->meta[i] = (struct dfc_meta){.name = f->names[i], .value = equals + 1};
    }
    return EXIT_OK;
}
