/* settings.h - the parameters of a model's config.pbtxt, which the server passes as JSON. */
#ifndef WARPFST_TRITON_SETTINGS_H
#define WARPFST_TRITON_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tw_setting {
  char *name, *value;
} tw_setting;

typedef struct tw_settings {
  tw_setting *items;
  size_t size;
  int64_t max_batch_size;
  int64_t max_idle_us; /* of a sequence; 0: no sequence batching */
} tw_settings;

/* Reads "max_batch_size", "max_sequence_idle_microseconds" of "sequence_batching", and
 * "parameters": {"NAME": {"string_value": "VALUE"}, ...} from the configuration. false: malformed
 * JSON, or out of memory. */
bool settings_read(const char *text, size_t size, tw_settings *out);
/* The value of a parameter; NULL: not given. */
const char *settings_find(const tw_settings *settings, const char *name);
void settings_free(tw_settings *settings);

#endif
