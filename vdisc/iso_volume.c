#include "vdisc/iso_volume.h"

#include <string.h>

#include "vdisc/iso_date.h"
#include "vdisc/iso_records.h"

#define TYPE_PRIMARY 1
#define TYPE_SUPPLEMENTARY 2
#define TYPE_TERMINATOR 255
#define JOLIET_LEVEL_3 "%/E"

#define D_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define A_CHARACTERS D_CHARACTERS " !\"%&'()*+,-./:;<=>?"
/* Without a space, which is an a-character, but NVIDIA VDisc reads no image with one here. */
#define APPLICATION "DFC-VDISC"
#define FILE_CHARACTERS D_CHARACTERS ".;"

static const struct field {
    const char *name;
    uint16_t at, len;
    const char *characters;
    const char *standard;
} fields[ISO_IDENTIFIERS] = {
    [ISO_SYSTEM] = {"system", 8, 32, A_CHARACTERS, "LINUX"},
    [ISO_VOLUME] = {"volume", 40, 32, D_CHARACTERS, "VDISC"},
    [ISO_VOLUME_SET] = {"volume-set", 190, 128, D_CHARACTERS, ""},
    [ISO_PUBLISHER] = {"publisher", 318, 128, A_CHARACTERS, ""},
    [ISO_DATA_PREPARER] = {"data-preparer", 446, 128, A_CHARACTERS, ""},
    [ISO_APPLICATION] = {"application", 574, 128, A_CHARACTERS, APPLICATION},
    [ISO_COPYRIGHT_FILE] = {"copyright-file", 702, 37, FILE_CHARACTERS, ""},
    [ISO_ABSTRACT_FILE] = {"abstract-file", 739, 37, FILE_CHARACTERS, ""},
    [ISO_BIBLIOGRAPHIC_FILE] = {"bibliographic-file", 776, 37, FILE_CHARACTERS, ""},
};

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

const char *iso_identifier_name(enum iso_identifier which)
{
    return fields[which].name;
}

static int check_identifier(const struct field *f, const char *text, struct error *err)
{
    if (strlen(text) > f->len)
        return error_set(err, E_INVALID, "the %s identifier '%.200s' has more than %u characters",
                         f->name, text, f->len);
    for (const char *at = text; *at != '\0'; at++) {
        if (strchr(f->characters, upper(*at)) == NULL)
            return error_set(err, E_INVALID,
                             "the %s identifier '%.200s' has a character that ISO 9660 does not "
                             "allow there; allowed: %s",
                             f->name, text, f->characters);
    }
    return 0;
}

int iso_volume_check(const struct iso_volume *v, struct error *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < ISO_IDENTIFIERS; i++) {
        if (v->identifiers[i] != NULL)
            rc = check_identifier(&fields[i], v->identifiers[i], err);
    }
    return rc;
}

/* Padded with spaces; Joliet has UCS-2, of which an odd last byte stays 0. */
static void put_text(uint8_t *to, const struct field *f, const char *text, bool joliet)
{
    size_t len = strlen(text), size = joliet ? 2 : 1;
    for (size_t i = 0; (i + 1) * size <= f->len; i++) {
        uint8_t *at = to + f->at + i * size;
        at[0] = 0;
        at[size - 1] = i < len ? (uint8_t)upper(text[i]) : ' ';
    }
}

static void put_dates(uint8_t *to, int64_t date_s)
{
    iso_date_put_long(to + 813, date_s); /* creation */
    iso_date_put_long(to + 830, date_s); /* modification */
    for (int i = 0; i < 2; i++) {        /* expiration, effective: not given (8.4.26.1) */
        memset(to + 847 + 17 * i, '0', 16);
        to[847 + 17 * i + 16] = 0;
    }
}

static void put_head(uint8_t *to, uint8_t type)
{
    memset(to, 0, ISO_BLOCK);
    to[0] = type;
    memcpy(to + 1, "CD001", 5);
    to[6] = 1;
}

void iso_volume_put_terminator(uint8_t to[static ISO_BLOCK])
{
    put_head(to, TYPE_TERMINATOR);
}

void iso_volume_put(const struct iso_layout *l, unsigned view, const struct iso_volume *v,
                    uint8_t to[static ISO_BLOCK])
{
    const struct iso_view *w = &l->views[view];
    put_head(to, w->joliet ? TYPE_SUPPLEMENTARY : TYPE_PRIMARY);
    iso_put32_both(to + 80, l->blocks);
    if (w->joliet)
        memcpy(to + 88, JOLIET_LEVEL_3, strlen(JOLIET_LEVEL_3));
    iso_put16_both(to + 120, 1); /* volumes of the set */
    iso_put16_both(to + 124, 1); /* number of this one */
    iso_put16_both(to + 128, ISO_BLOCK);
    iso_put32_both(to + 132, (uint32_t)w->path_bytes);
    iso_put32(to + 140, w->l_lba);
    iso_put32_big(to + 148, w->m_lba);
    iso_records_root(l, view, to + 156);
    for (int i = 0; i < ISO_IDENTIFIERS; i++) {
        const char *given = v->identifiers[i];
        put_text(to, &fields[i], given != NULL ? given : fields[i].standard, w->joliet);
    }
    put_dates(to, l->tree->date_s);
    to[881] = 1; /* version of the file structure */
    memset(to + 883, ' ', 512);
}
