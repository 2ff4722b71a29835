/* One volume descriptor, primary or Joliet's (ECMA-119 8.4, 8.5). */
#pragma once

#include "common/error.h"
#include "vdisc/iso_blocks.h"

/* Texts of the volume descriptor (ECMA-119 8.4): numbers of identifiers below. */
enum iso_identifier {
    ISO_SYSTEM,
    ISO_VOLUME,
    ISO_VOLUME_SET,
    ISO_PUBLISHER,
    ISO_DATA_PREPARER,
    ISO_APPLICATION,
    ISO_COPYRIGHT_FILE,
    ISO_ABSTRACT_FILE,
    ISO_BIBLIOGRAPHIC_FILE,
    ISO_IDENTIFIERS,
};

/* "volume-set", as in the flag --iso9660-volume-set-identifier. */
const char *iso_identifier_name(enum iso_identifier which);

struct iso_volume {
    const char
        *identifiers[ISO_IDENTIFIERS]; /* NULL: "LINUX", "VDISC", application "DFC-VDISC", "" */
};

/* E_INVALID: a text is too long, or has characters that its field does not take.  Lower case
 * becomes upper case. */
int iso_volume_check(const struct iso_volume *v, struct error *err);

void iso_volume_put(const struct iso_layout *l, unsigned view, const struct iso_volume *v,
                    uint8_t to[static ISO_BLOCK]);
void iso_volume_put_terminator(uint8_t to[static ISO_BLOCK]);
