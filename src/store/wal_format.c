/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of the log; all numbers are little-endian.  docs/formats/wal.md says why it is so.
 *
 *   segment:  0  8 "KILNWAL\n"          record:  0  4 CRC-32C of bytes 4-55 and the tenant
 *             8  4 version, 2                    4  4 CRC-32C of the body
 *            12  4 CRC-32C of the rest           8  8 seal of the segment
 *            16  8 number of the first          16  8 number
 *                  record                       24  8 the last number that was durable
 *            24  8 seal, random                 32  8 received, ns since 1970
 *            32    records                      40  8 profiles before this were refused, ns
 *                                               48  4 bytes of the body
 *                                               52  2 bytes of the tenant
 *                                               54  1 compression: 0 none, 1 gzip, 2 zstd
 *                                               55  1 the body is: 0 OTLP, 1 with a recipe
 *                                               56    tenant, body, zeros up to a multiple of 8
 *
 *   body with a recipe:  0  4 bytes of the recipe  4  recipe, what it is for
 */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/err.h"
#include "store/wal_int.h"

static const char magic[8] = {'K', 'I', 'L', 'N', 'W', 'A', 'L', '\n'};

static void put_16(uint8_t *at, uint16_t value)
{
    value = htole16(value);
    memcpy(at, &value, sizeof(value));
}

static void put_32(uint8_t *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, sizeof(value));
}

static void put_64(uint8_t *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, sizeof(value));
}

static uint16_t get_16(const uint8_t *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof(value));
    return le16toh(value);
}

static uint32_t get_32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return le32toh(value);
}

static uint64_t get_64(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return le64toh(value);
}

void wal_segment_path(uint64_t first, char ret_path[WAL_PATH_MAX])
{
    snprintf(ret_path, WAL_PATH_MAX, "wal/%020llu.log", (unsigned long long)first);
}

static uint32_t segment_sum(const uint8_t bytes[WAL_SEGMENT_HEAD])
{
    return kiln_crc32c(kiln_crc32c(0, bytes, 12), bytes + 16, WAL_SEGMENT_HEAD - 16);
}

void wal_segment_encode(const struct wal_segment_head *head, uint8_t ret_bytes[WAL_SEGMENT_HEAD])
{
    memcpy(ret_bytes, magic, sizeof(magic));
    put_32(ret_bytes + 8, head->version);
    put_64(ret_bytes + 16, head->first);
    put_64(ret_bytes + 24, head->seal);
    put_32(ret_bytes + 12, segment_sum(ret_bytes));
}

int wal_segment_decode(const uint8_t bytes[WAL_SEGMENT_HEAD], struct wal_segment_head *ret)
{
    if (memcmp(bytes, magic, sizeof(magic)) != 0 || get_32(bytes + 12) != segment_sum(bytes))
        return KILN_E_MALFORMED;
    ret->version = get_32(bytes + 8);
    ret->first = get_64(bytes + 16);
    ret->seal = get_64(bytes + 24);
    if (ret->version > KILN_WAL_VERSION)
        return KILN_E_UNSUPPORTED;
    return ret->version && ret->first <= WAL_NUMBER_MAX ? 0 : KILN_E_MALFORMED;
}

void wal_record_encode(const struct wal_record_head *head, const char *tenant, uint8_t *ret_bytes)
{
    put_32(ret_bytes + 4, head->body_crc);
    put_64(ret_bytes + 8, head->seal);
    put_64(ret_bytes + 16, head->number);
    put_64(ret_bytes + 24, head->durable);
    put_64(ret_bytes + 32, head->received_ns);
    put_64(ret_bytes + 40, head->oldest_ns);
    put_32(ret_bytes + 48, head->body_bytes);
    put_16(ret_bytes + 52, head->tenant_bytes);
    ret_bytes[54] = head->compression;
    ret_bytes[55] = head->has_recipe;
    if (head->tenant_bytes)
        memcpy(ret_bytes + WAL_RECORD_HEAD, tenant, head->tenant_bytes);
    put_32(ret_bytes, kiln_crc32c(0, ret_bytes + 4, WAL_RECORD_HEAD - 4u + head->tenant_bytes));
}

bool wal_record_decode(const uint8_t *bytes, size_t n, struct wal_record_head *ret)
{
    struct wal_record_head head = {
        .body_crc = get_32(bytes + 4),
        .seal = get_64(bytes + 8),
        .number = get_64(bytes + 16),
        .durable = get_64(bytes + 24),
        .received_ns = get_64(bytes + 32),
        .oldest_ns = get_64(bytes + 40),
        .body_bytes = get_32(bytes + 48),
        .tenant_bytes = get_16(bytes + 52),
        .compression = bytes[54],
        .has_recipe = bytes[55] != 0,
    };

    if (head.number == 0 || head.number > WAL_NUMBER_MAX || head.durable >= head.number ||
        head.body_bytes > KILN_WAL_BODY_MAX || head.tenant_bytes > KILN_WAL_TENANT_MAX ||
        head.compression > KILN_ZSTD || bytes[55] > 1)
        return false;
    if (n < (size_t)WAL_RECORD_HEAD + head.tenant_bytes ||
        get_32(bytes) != kiln_crc32c(0, bytes + 4, WAL_RECORD_HEAD - 4u + head.tenant_bytes))
        return false;
    *ret = head;
    return true;
}

void wal_recipe_encode(struct kiln_str recipe, uint8_t *ret_bytes)
{
    put_32(ret_bytes, (uint32_t)recipe.len);
}

bool wal_recipe_cut(const struct wal_record_head *head, struct kiln_str *body,
                    struct kiln_str *ret_recipe)
{
    size_t n;

    *ret_recipe = KILN_STR_NONE;
    if (!head->has_recipe)
        return true;
    if (body->len < WAL_RECIPE_HEAD)
        return false;
    n = get_32((const uint8_t *)body->ptr);
    if (n == 0 || n > body->len - WAL_RECIPE_HEAD)
        return false;
    *ret_recipe = (struct kiln_str){body->ptr + WAL_RECIPE_HEAD, n};
    body->ptr += WAL_RECIPE_HEAD + n;
    body->len -= WAL_RECIPE_HEAD + n;
    return true;
}

uint64_t wal_record_bytes(const struct wal_record_head *head)
{
    uint64_t bytes = (uint64_t)WAL_RECORD_HEAD + head->tenant_bytes + head->body_bytes;

    return (bytes + WAL_ALIGN - 1) / WAL_ALIGN * WAL_ALIGN;
}
