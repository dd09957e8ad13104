/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"
#include "test.h"

/* The digest in hexadecimal, in a static buffer. */
static const char *digest_of(struct kiln_str data)
{
    static char hex[2 * KILN_SHA256_BYTES + 1];
    uint8_t digest[KILN_SHA256_BYTES];

    kiln_sha256(data, digest);
    for (int i = 0; i < KILN_SHA256_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return hex;
}

TEST(sha256, the_examples_of_the_standard_come_out)
{
    CHECK_TEXT(digest_of(KILN_STR_NONE),
               "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_TEXT(digest_of(KILN_STR("abc")),
               "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_TEXT(digest_of(KILN_STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(sha256, every_length_around_a_block_is_padded_right)
{
    char data[130];

    memset(data, 'a', sizeof(data));
    CHECK_TEXT(digest_of((struct kiln_str){data, 55}),
               "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    CHECK_TEXT(digest_of((struct kiln_str){data, 56}),
               "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
    CHECK_TEXT(digest_of((struct kiln_str){data, 64}),
               "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    CHECK_TEXT(digest_of((struct kiln_str){data, 119}),
               "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
    CHECK_TEXT(digest_of((struct kiln_str){data, 128}),
               "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e");
}

TEST(sha256, pieces_of_any_size_make_the_same_fingerprint)
{
    char data[1000];
    uint8_t whole[KILN_SHA256_BYTES], pieces[KILN_SHA256_BYTES];

    memset(data, 'x', sizeof(data));
    kiln_sha256((struct kiln_str){data, sizeof(data)}, whole);
    for (size_t size = 1; size < 200; size++) {
        struct kiln_sha256_run run;

        kiln_sha256_begin(&run);
        for (size_t at = 0; at < sizeof(data); at += size)
            kiln_sha256_add(
                &run,
                (struct kiln_str){data + at, size < sizeof(data) - at ? size : sizeof(data) - at});
        kiln_sha256_end(&run, pieces);
        CHECK(memcmp(whole, pieces, sizeof(whole)) == 0);
    }
}
