#include "target/store/put_sums.h"

#include "target/store/object.h"

void put_sums_begin(struct put_sums *s, const struct object_put_spec *spec)
{
    *s = (struct put_sums){.stored = checksum_new(spec->checksum)};
    if (spec->sum != NULL) {
        s->s3_asked = *spec->sum;
        s->s3 = s3_sum_new(spec->sum->value.type);
    }
    if (spec->expect == NULL)
        return;
    s->expect = *spec->expect;
    if (s->expect.type != spec->checksum)
        s->promised = checksum_new(s->expect.type);
}

void put_sums_update(struct put_sums *s, const void *data, size_t len)
{
    checksum_update(s->stored, data, len);
    if (s->promised != NULL)
        checksum_update(s->promised, data, len);
    if (s->s3 != NULL)
        s3_sum_update(s->s3, data, len);
}

static int end_promised(struct put_sums *s, uint64_t size, const struct checksum_value *stored,
                        struct error *err)
{
    struct checksum_value got = *stored;
    if (s->promised != NULL)
        checksum_final(s->promised, &got);
    if (s->expect.type == CHECKSUM_NONE || checksum_equal(&got, &s->expect))
        return 0;
    char want_hex[2 * CHECKSUM_MAX + 1], got_hex[2 * CHECKSUM_MAX + 1];
    checksum_hex(&s->expect, want_hex);
    checksum_hex(&got, got_hex);
    return error_set(err, E_CHECKSUM, "%s of the %llu bytes is %s, not %s", checksum_name(got.type),
                     (unsigned long long)size, got_hex, want_hex);
}

static int end_s3(struct put_sums *s, uint64_t size, char out[static S3_SUM_TEXT_MAX],
                  struct error *err)
{
    struct s3_sum_text got = {.is_known = true};
    char want[S3_SUM_TEXT_MAX];
    out[0] = '\0';
    if (s->s3 == NULL)
        return 0;
    s3_sum_final(s->s3, &got.value);
    s3_sum_text_print(&got, out);
    if (!s->s3_asked.is_known || s3_sum_equal(&got.value, &s->s3_asked.value))
        return 0;
    return error_set(err, E_CHECKSUM, "the checksum of the %llu bytes is %s, not %s",
                     (unsigned long long)size, out, s3_sum_text_print(&s->s3_asked, want));
}

int put_sums_end(struct put_sums *s, uint64_t size, struct checksum_value *stored,
                 char s3[static S3_SUM_TEXT_MAX], struct error *err)
{
    checksum_final(s->stored, stored);
    int code = end_promised(s, size, stored, err);
    return code != 0 ? code : end_s3(s, size, s3, err);
}

void put_sums_done(struct put_sums *s)
{
    checksum_free(s->stored);
    checksum_free(s->promised);
    s3_sum_free(s->s3);
}
