/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/palette.h"
#include "drawn.h"
#include "test.h"

#define FAMILY(...) kiln_frame_family(&(struct kiln_frame){__VA_ARGS__})

TEST(palette, the_runtime_and_the_kernel_are_known_by_name_and_kind)
{
    CHECK_EQ(FAMILY(.name = KILN_STR("runtime.mallocgc")), KILN_FAMILY_RUNTIME);
    CHECK_EQ(FAMILY(.name = KILN_STR("tcp_sendmsg"), .kind = KILN_STR("kernel")),
             KILN_FAMILY_KERNEL);
    CHECK_EQ(FAMILY(.name = KILN_STR("do_syscall_64_[k]")), KILN_FAMILY_KERNEL);
    CHECK_EQ(FAMILY(.name = KILN_STR("x"), .module = KILN_STR("[kernel.kallsyms]")),
             KILN_FAMILY_KERNEL);
}

TEST(palette, libraries_are_known_by_where_they_lie)
{
    CHECK_EQ(FAMILY(.name = KILN_STR("json.Marshal"),
                    .file = KILN_STR("/usr/local/go/src/encoding/json/encode.go")),
             KILN_FAMILY_LIBRARY);
    CHECK_EQ(FAMILY(.name = KILN_STR("f"), .file = KILN_STR("app/node_modules/x/i.js")),
             KILN_FAMILY_LIBRARY);
    CHECK_EQ(FAMILY(.name = KILN_STR("memcpy"), .module = KILN_STR("libc.so.6")),
             KILN_FAMILY_LIBRARY);
    CHECK_EQ(FAMILY(.name = KILN_STR("java/util/HashMap.get")), KILN_FAMILY_LIBRARY);
    CHECK_EQ(FAMILY(.name = KILN_STR("void java.util.Vector.add(int)")), KILN_FAMILY_LIBRARY);
    CHECK_EQ(FAMILY(.name = KILN_STR("net/http.Get"), .file = KILN_STR("net/http/client.go")),
             KILN_FAMILY_LIBRARY);
    CHECK_EQ(FAMILY(.name = KILN_STR("network.Get"), .file = KILN_STR("client.go")),
             KILN_FAMILY_OWN);
}

TEST(palette, what_nothing_is_known_of_is_your_own)
{
    CHECK_EQ(FAMILY(.name = KILN_STR("main.handle"), .file = KILN_STR("/src/app/main.go")),
             KILN_FAMILY_OWN);
    CHECK_EQ(FAMILY(.name = KILN_STR("")), KILN_FAMILY_OWN);
}

static const char *module_of(const char *name, const char *file)
{
    static char text[64];
    struct kiln_frame frame = {.name = kiln_str_of(name), .file = kiln_str_of(file)};

    snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(kiln_frame_module(&frame)));
    return text;
}

TEST(palette, the_module_is_the_package_or_the_class)
{
    CHECK_TEXT(module_of("net/http.(*conn).serve", "server.go"), "net/http");
    CHECK_TEXT(module_of("main.run.func1", "main.go"), "main");
    CHECK_TEXT(module_of("java.util.HashMap.get", ""), "java.util.HashMap");
    CHECK_TEXT(module_of("ns::Class::method(int)", ""), "ns::Class");
    CHECK_TEXT(module_of("void java.lang.Thread.run()", ""), "java.lang.Thread");
    CHECK_TEXT(module_of("read", "io.c"), "io.c");
    CHECK_TEXT(module_of("read", ""), "read");
}

TEST(palette, colours_never_change_from_run_to_run)
{
    struct kiln_frame frame = {.name = KILN_STR("net/http.Get"), .file = KILN_STR("a.go")};

    CHECK_EQ(kiln_frame_swatch(&frame), 0);
    CHECK_EQ(kiln_frame_shade(&frame), 2);
}

static struct kiln_tree *diff_tree(struct kiln_view **views, const char *a, const char *b)
{
    struct kiln_tree *tree;

    views[0] = kiln_test_view(kiln_test_stacks(a), NULL);
    views[1] = kiln_test_view(kiln_test_stacks(b), NULL);
    CHECK_OK(kiln_tree_new_diff(views[0], views[1], 1, &(struct kiln_tree_opts){0}, &tree, NULL));
    return tree;
}

TEST(palette, a_change_is_strongest_where_it_starts)
{
    struct kiln_view *views[2];
    struct kiln_tree *tree = diff_tree(views, "main;parse;scan 1000\nmain;draw 5000\n",
                                       "main;parse;scan 3000\nmain;draw 5010\n");

    /* all, main, draw, parse, scan */
    CHECK_EQ(kiln_diff_step(tree, 1), 1);
    CHECK_EQ(kiln_diff_step(tree, 2), 0);
    CHECK_EQ(kiln_diff_step(tree, 3), 1);
    CHECK_EQ(kiln_diff_step(tree, 4), 4);
    kiln_tree_free(tree);
    kiln_view_free(views[0]);
    kiln_view_free(views[1]);
}

TEST(palette, what_noise_could_explain_is_grey)
{
    struct kiln_view *views[2];
    struct kiln_tree *tree =
        diff_tree(views, "main;a 3\nmain;b 4\nmain;c 900\n", "main;a 5\nmain;b 1\nmain;c 700\n");

    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        struct kiln_str name = tree->frames[tree->nodes[i].frame].name;

        if (kiln_str_eq(name, KILN_STR("c")))
            CHECK_EQ(kiln_diff_step(tree, i), -4);
        else if (!kiln_str_eq(name, KILN_STR("main")))
            CHECK_EQ(kiln_diff_step(tree, i), 0);
    }
    kiln_tree_free(tree);
    kiln_view_free(views[0]);
    kiln_view_free(views[1]);
}
