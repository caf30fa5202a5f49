// What is only recorded: Events, the log, metrics, the work queue. And what is only read: the clock, the
// configuration.

#include "fake.h"

#include <string.h>

// The value of one series of a metric.
struct oarlock_fake_metric {
    struct oarlock_fake_metric *next;
    const char *series;
    double value;
};

bool oarlock_plugin_events_emit(oarlock_plugin_types_group_version_resource_t *target,
                                oarlock_plugin_types_object_ref_t *regarding, string_t *kind, uint8_t type,
                                string_t *reason, string_t *note, failed_t *err) {
    (void)target;
    if (!oarlock_fake_may("event", err)) return false;
    const oarlock_key key = {oarlock_fake_text(regarding->namespace_), oarlock_fake_text(regarding->name)};
    oarlock_fake_write(&oarlock_fake.events, "%s %s %s %s: %s\n",
                       type == OARLOCK_PLUGIN_EVENTS_EVENT_TYPE_WARNING ? "Warning" : "Normal",
                       oarlock_fake_text(*reason), oarlock_fake_text(*kind), oarlock_fake_place(key),
                       oarlock_fake_text(*note));
    return true;
}

bool oarlock_plugin_log_enabled(uint8_t level) {
    (void)level;
    return true;
}

void oarlock_plugin_log_log(uint8_t level, string_t *message, oarlock_plugin_log_list_entry_t *pairs) {
    static const char *const LEVELS[] = {"trace", "debug", "info", "warn", "error"};
    oarlock_fake_write(&oarlock_fake.logs, "%s %s", LEVELS[level], oarlock_fake_text(*message));
    for (size_t i = 0; i < pairs->len; i++) {
        oarlock_fake_write(&oarlock_fake.logs, " %s=%s", oarlock_fake_text(pairs->ptr[i].name),
                           oarlock_fake_text(pairs->ptr[i].value));
    }
    oarlock_fake_write(&oarlock_fake.logs, "\n");
}

// Returns a series of a metric; its value is 0 if it is new.
static double *series(const string_t *name, const oarlock_plugin_metrics_list_entry_t *labels) {
    text_t text = {0};
    oarlock_fake_write(&text, "%s", oarlock_fake_text(*name));
    for (size_t i = 0; i < labels->len; i++) {
        const oarlock_plugin_types_entry_t *label = &labels->ptr[i];
        oarlock_fake_write(&text, "%s%s=%s", i ? "," : "{", oarlock_fake_text(label->name),
                           oarlock_format("%j", oarlock_fake_text(label->value)));
    }
    if (labels->len) oarlock_fake_write(&text, "}");
    struct oarlock_fake_metric **metric = &oarlock_fake.metrics;
    while (*metric && strcmp((*metric)->series, text.at) != 0) metric = &(*metric)->next;
    if (!*metric) {
        *metric = oarlock_fake_alloc(sizeof **metric);
        **metric = (struct oarlock_fake_metric){.series = text.at};
    }
    return &(*metric)->value;
}

bool oarlock_plugin_metrics_counter_add(string_t *name, double by,
                                        oarlock_plugin_metrics_list_entry_t *labels, failed_t *err) {
    (void)err;
    *series(name, labels) += by;
    return true;
}

bool oarlock_plugin_metrics_gauge_set(string_t *name, double value,
                                      oarlock_plugin_metrics_list_entry_t *labels, failed_t *err) {
    (void)err;
    *series(name, labels) = value;
    return true;
}

const char *oarlock_host_metrics(void) {
    text_t text = {0};
    oarlock_fake_write(&text, "%s", "");
    for (const struct oarlock_fake_metric *metric = oarlock_fake.metrics; metric; metric = metric->next) {
        oarlock_fake_write(&text, "%s %g\n", metric->series, metric->value);
    }
    return text.at;
}

bool oarlock_plugin_work_queue_add_after(oarlock_plugin_work_queue_work_key_t *key, uint32_t delay_ms,
                                         failed_t *err) {
    (void)err;
    oarlock_fake_write(&oarlock_fake.queue, "%s %s", oarlock_fake_text(key->kind),
                       oarlock_fake_place(oarlock_fake_key(&key->object)));
    if (delay_ms) oarlock_fake_write(&oarlock_fake.queue, " after %u ms", (unsigned)delay_ms);
    oarlock_fake_write(&oarlock_fake.queue, "\n");
    return true;
}

bool oarlock_plugin_work_queue_add(oarlock_plugin_work_queue_work_key_t *key, failed_t *err) {
    return oarlock_plugin_work_queue_add_after(key, 0, err);
}

void oarlock_plugin_clock_now(oarlock_plugin_clock_datetime_t *ret) {
    uint64_t ms = (uint64_t)oarlock_fake.now_ms;
    *ret = (oarlock_plugin_clock_datetime_t){.seconds = ms / 1000, .nanoseconds = ms % 1000 * 1000000};
}

double oarlock_plugin_clock_elapsed_ms(void) { return oarlock_fake.now_ms - oarlock_fake.started_ms; }

bool oarlock_plugin_config_get(string_t *pointer, oarlock_bindings_option_string_t *ret, failed_t *err) {
    (void)err;
    *ret = oarlock_fake_option(oarlock_json_at(oarlock_fake.config, oarlock_fake_text(*pointer)));
    return true;
}
