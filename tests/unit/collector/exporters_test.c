/* SPDX-License-Identifier: Apache-2.0 */
/* Exporters that send nothing over the network, and what is the same for those that do. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collector/component.h"
#include "collector/exporters/address.h"
#include "collector/exporters/sending.h"
#include "drawn.h"
#include "folder.h"
#include "net/h2client_int.h"
#include "test.h"

/* ---- what the batch is measured in ---- */

/* -1: refused. */
static int batch_sizer(const char *yaml)
{
    struct kiln_sending_settings settings = {0};
    struct kiln_config *config;
    struct kiln_err err = {0};
    int r;

    CHECK_OK(kiln_config_parse(kiln_str_of(yaml), &config, &err));
    settings.queue_node = kiln_config_root(config);
    r = kiln_sending_read(&settings, &err);
    kiln_config_free(config);
    CHECK(r == 0 || strstr(err.text, "items"));
    return r < 0 ? -1 : (int)settings.queue.batching.sizer;
}

TEST(sending, batches_are_measured_as_the_queue_where_nothing_else_is_said)
{
    CHECK_EQ(batch_sizer("{batch: {min_size: 9}}"), KILN_SIZE_ITEMS);
    CHECK_EQ(batch_sizer("{sizer: bytes, batch: {min_size: 9}}"), KILN_SIZE_BYTES);
    CHECK_EQ(batch_sizer("{sizer: items, batch: {min_size: 9}}"), KILN_SIZE_ITEMS);
    CHECK_EQ(batch_sizer("{sizer: bytes, batch: {sizer: items}}"), KILN_SIZE_ITEMS);
    CHECK_EQ(batch_sizer("{sizer: requests, batch: {sizer: bytes}}"), KILN_SIZE_BYTES);
    CHECK_EQ(batch_sizer("{sizer: requests, batch: {min_size: 9}}"), -1);
    CHECK_EQ(batch_sizer("{sizer: bytes, batch: {sizer: requests}}"), -1);
}

/* ---- where to ---- */

/* An address of a gRPC exporter: "server path host:port". */
static const char *goes_to(const char *endpoint)
{
    static char text[400];
    struct kiln_address address;
    struct kiln_h2address at;

    kiln_address_init(&address);
    CHECK_OK(kiln_address_split(endpoint, true, "/a.Service/Export", &address));
    CHECK_OK(kiln_h2address_parse(address.server.ptr, &at, NULL));
    snprintf(text, sizeof(text), "%s %s %s:%s%s", address.server.ptr, address.path.ptr, at.host,
             at.port, at.tls ? " tls" : "");
    kiln_address_done(&address);
    return text;
}

TEST(address, a_scheme_says_the_port_and_a_path_is_put_before)
{
    CHECK_TEXT(goes_to("https://host.example/otlp"),
               "https://host.example /otlp/a.Service/Export host.example:443 tls");
    CHECK_TEXT(goes_to("https://host.example:8443/otlp/"),
               "https://host.example:8443 /otlp/a.Service/Export host.example:8443 tls");
    CHECK_TEXT(goes_to("http://host.example"),
               "http://host.example /a.Service/Export host.example:80");
    CHECK_TEXT(goes_to("host.example:4317"),
               "https://host.example:4317 /a.Service/Export host.example:4317 tls");
}

/* ---- storage ---- */

static const char *storage_says(const char *yaml)
{
    static struct kiln_err err;
    const struct kiln_component_type *t =
        kiln_component_find(KILN_EXTENSION, KILN_STR("file_storage"));
    struct kiln_config *config;
    void *settings = calloc(1, t->settings_size);

    err = (struct kiln_err){0};
    CHECK_OK(kiln_config_parse(kiln_str_of(yaml), &config, &err));
    CHECK((t->read(kiln_config_root(config), settings, &err) < 0) == (err.text[0] != '\0'));
    kiln_config_free(config);
    free(settings);
    return err.text;
}

TEST(file_storage, keys_that_mean_nothing_are_read_all_the_same)
{
    CHECK_TEXT(storage_says("{timeout: 1s, recreate: true, create_directory: true, "
                            "directory_permissions: '0700', compaction: {on_start: true, "
                            "directory: /tmp, max_transaction_size: 65536, check_interval: 5s}}"),
               "");
    CHECK_TEXT(storage_says("{compaction: {on_strat: true}}"),
               "unknown key on_strat (did you mean on_start?)");
    CHECK(strstr(storage_says("{timeout: soon}"), "is not a time span"));
    CHECK(strstr(storage_says("{directory_permissions: '0700'}"), "needs create_directory"));
}

/* ---- one exporter ---- */

static void ended(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    int *code = delivery->context;

    *code = outcome->code;
}

static struct kiln_batch *one_sample(void)
{
    return kiln_test_batch(&(struct kiln_drawn){.stacks = "main;read 7\n",
                                                .type = "cpu",
                                                .unit = "nanoseconds",
                                                .time_ns = kiln_clock_unix_ns(),
                                                .resource = "service.name=shop"},
                           1);
}

/* Makes an exporter and hands it one sample; what is wrong, or "". */
static const char *send_one(const char *type, const char *yaml)
{
    static struct kiln_err err;
    const struct kiln_component_type *t = kiln_component_find(KILN_EXPORTER, kiln_str_of(type));
    int code = 1;
    struct kiln_delivery delivery = {
        .batch = one_sample(), .tenant = "anonymous", .done = ended, .context = &code};
    struct kiln_component_env env = {.id = type};
    struct kiln_component *component = NULL;
    struct kiln_config *config;
    void *settings = calloc(1, t->settings_size);

    err = (struct kiln_err){0};
    CHECK_OK(kiln_metrics_new(&env.metrics));
    CHECK_OK(kiln_config_parse(kiln_str_of(yaml), &config, &err));
    if (t->read(kiln_config_root(config), settings, &err) == 0 &&
        t->make(&env, settings, &component, &err) == 0 &&
        (!component->ops->start || component->ops->start(component, &err) == 0)) {
        component->in->consume(component->in, &delivery);
        if (component->ops->stop)
            component->ops->stop(component, 0);
        CHECK_EQ(code, 0);
        CHECK_EQ(kiln_metric_value(kiln_exporter_sent(env.metrics, KILN_SIGNAL_PROFILES, type)), 1);
    } else {
        kiln_batch_unref(delivery.batch);
    }
    if (component)
        component->ops->free(component);
    free(settings);
    kiln_config_free(config);
    kiln_metrics_free(env.metrics);
    CHECK_EQ(kiln_mem_live(), 0);
    return err.text;
}

TEST(nop_exporter, counts_what_it_takes)
{
    CHECK_TEXT(send_one("nop", "{}"), "");
}

TEST(debug_exporter, writes_where_it_is_told)
{
    char folder[FOLDER_NAME], yaml[500], path[100];
    char *text;
    size_t n;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/b", folder);
    snprintf(yaml, sizeof(yaml),
             "{verbosity: detailed, use_internal_logger: false, output_paths: ['%s/a', '%s'], "
             "sending_queue: {enabled: false}}",
             folder, path);
    CHECK_TEXT(send_one("debug", yaml), "");
    CHECK_TEXT(send_one("debug", yaml), "");
    text = kiln_test_read(path, &n);
    CHECK(strstr(text, "msg=Profiles") && strstr(text, "\"resourceProfiles\""));
    CHECK(strstr(strstr(text, "msg=Profiles") + 1, "msg=Profiles")); /* appended to */
    free(text);
    snprintf(yaml, sizeof(yaml), "{use_internal_logger: false, output_paths: ['%s/no/a']}", folder);
    CHECK(strstr(send_one("debug", yaml), "cannot be written"));
    folder_remove(folder);
}

TEST(store_exporter, counts_what_it_has_stored)
{
    char folder[FOLDER_NAME], yaml[100];

    folder_make(folder);
    snprintf(yaml, sizeof(yaml), "{directory: '%s'}", folder);
    CHECK_TEXT(send_one("store", yaml), "");
    folder_remove(folder);
}

TEST(debug_exporter, says_what_cannot_be_meant)
{
    CHECK_TEXT(send_one("debug", "{output_paths: [stdout]}"),
               "output_paths is not supported when use_internal_logger is true");
    CHECK_TEXT(send_one("debug", "{use_internal_logger: false, output_paths: []}"),
               "output_paths has one to 8 paths");
    CHECK(strstr(send_one("debug", "{sending_queue: {sise: 3}}"), "unknown key sise"));
}

TEST(file_exporter, settings_of_the_collector_are_taken)
{
    char folder[FOLDER_NAME], yaml[300], path[100];
    struct stat info;

    folder_make(folder);
    snprintf(yaml, sizeof(yaml),
             "{path: '%s/new/a.json', create_directory: true, directory_permissions: '0700', "
             "flush_interval: 5, compression: zstd, compression_params: {level: 11}}",
             folder);
    CHECK_TEXT(send_one("file", yaml), "");
    snprintf(path, sizeof(path), "%s/new", folder);
    CHECK(stat(path, &info) == 0 && (info.st_mode & 0777) == 0700);
    snprintf(path, sizeof(path), "%s/new/a.json", folder);
    CHECK(stat(path, &info) == 0 && info.st_size > 0);
    snprintf(yaml, sizeof(yaml), "{path: '%s/x', flush_interval: soon}", folder);
    CHECK(strstr(send_one("file", yaml), "a time span"));
    snprintf(yaml, sizeof(yaml), "{path: '%s/x', directory_permissions: '0755'}", folder);
    CHECK_TEXT(send_one("file", yaml), "directory_permissions needs create_directory: true");
    snprintf(yaml, sizeof(yaml),
             "{path: '%s/x', create_directory: true, directory_permissions: rwx}", folder);
    CHECK_TEXT(send_one("file", yaml), "directory_permissions is an octal number such as \"0755\"");
    folder_remove(folder);
}
