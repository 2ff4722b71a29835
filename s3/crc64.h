/* CRC-64/NVME ("NVM Express NVM Command Set Specification", 64b CRC): polynomial
 * 0xad93d23594c93659, reflected, all ones at the start and complemented at the end.  Debian 12's
 * ISA-L does not have it.  Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Of `data` behind what had the value `crc`; 0 at the start. */
uint64_t crc64_nvme(uint64_t crc, const void *data, size_t len);
/* The same without special instructions: for processors that have none, and for tests. */
uint64_t crc64_nvme_by_table(uint64_t crc, const void *data, size_t len);
