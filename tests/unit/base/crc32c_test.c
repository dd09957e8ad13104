/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"
#include "test.h"

TEST(crc32c, known_sums_come_out)
{
    char data[32];

    CHECK_EQ(kiln_crc32c(0, "123456789", 9), 0xe3069283u);
    CHECK_EQ(kiln_crc32c(0, NULL, 0), 0);
    /* the examples of RFC 3720, appendix B.4 */
    memset(data, 0, sizeof(data));
    CHECK_EQ(kiln_crc32c(0, data, sizeof(data)), 0x8a9136aau);
    memset(data, 0xff, sizeof(data));
    CHECK_EQ(kiln_crc32c(0, data, sizeof(data)), 0x62a8ab43u);
    for (int i = 0; i < 32; i++)
        data[i] = (char)i;
    CHECK_EQ(kiln_crc32c(0, data, sizeof(data)), 0x46dd794eu);
}

TEST(crc32c, pieces_give_the_sum_of_the_whole)
{
    char data[100];

    for (int i = 0; i < 100; i++)
        data[i] = (char)(i * 37);
    for (size_t cut = 0; cut <= sizeof(data); cut++)
        CHECK_EQ(kiln_crc32c(kiln_crc32c(0, data, cut), data + cut, sizeof(data) - cut),
                 kiln_crc32c(0, data, sizeof(data)));
}

TEST(crc32c, the_tables_agree_with_the_instruction)
{
    char data[300];

    for (int i = 0; i < 300; i++)
        data[i] = (char)(i * 101 + (i >> 3));
    for (size_t first = 0; first < 9; first++)
        for (size_t n = 0; n < 280; n++)
            CHECK_EQ(kiln_crc32c_portable((uint32_t)n, data + first, n),
                     kiln_crc32c((uint32_t)n, data + first, n));
}
