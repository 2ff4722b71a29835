#include "s3/uploads/part_sums.h"

#include <stdio.h>
#include <string.h>

#include "common/base64url.h"
#include "s3/uploads/sum_kind.h"

bool part_sums_print(const struct s3_sum_value *sums, size_t count, char out[static PART_SUMS_MAX])
{
    unsigned char bytes[PART_SUMS_BYTES];
    if (count == 0)
        return false;
    size_t size = s3_sum_size(sums[0].type);
    if (count > sizeof bytes / size)
        return false;
    for (size_t i = 0; i < count; i++)
        memcpy(bytes + i * size, sums[i].bytes, size);
    size_t len = (size_t)snprintf(out, PART_SUMS_MAX, "%s:", s3_sum_algorithm(sums[0].type));
    len += base64url_encode(bytes, count * size, out + len);
    out[len] = '\0';
    return true;
}

/* The length of the algorithm and its colon; 0: there is none. */
static size_t read_type(const char *text, enum s3_sum_type *out)
{
    char name[16];
    size_t len = strcspn(text, ":");
    if (text[len] != ':' || len >= sizeof name)
        return 0;
    memcpy(name, text, len);
    name[len] = '\0';
    return s3_sum_type_find(name, out) && strcmp(name, s3_sum_algorithm(*out)) == 0 ? len + 1 : 0;
}

bool part_sums_parse(const char *text, struct part_sums *out)
{
    size_t prefix = read_type(text, &out->type);
    size_t chars = strlen(text + prefix), len = chars * 3 / 4;
    if (prefix == 0 || len == 0 || len > sizeof out->bytes || len % s3_sum_size(out->type) != 0)
        return false;
    out->count = (unsigned)(len / s3_sum_size(out->type));
    return base64url_decode(text + prefix, chars, out->bytes);
}

bool part_sums_find(const struct part_sums *sums, unsigned number, struct s3_sum_value *out)
{
    size_t size = s3_sum_size(sums->type);
    if (number < 1 || number > sums->count)
        return false;
    *out = (struct s3_sum_value){.type = sums->type};
    memcpy(out->bytes, sums->bytes + (number - 1) * size, size);
    return true;
}
