/* openfst_lookahead.c - what follows the fst in OpenFst's look-ahead fsts.
 *
 *   header of the type, without symbols | i32 magic number of an add-on | the fst, of type const |
 *   the add-on: u8 exists, u8 has data of inputs, the data, u8 has data of outputs, the data
 *
 * The data of arc_lookahead takes no bytes. That of ilabel_lookahead and olabel_lookahead:
 *
 *   u8 of inputs | u8 has new labels | if so: i64 count, count x {i32 label, i32 new label} |
 *   i32 label of final states | i64 number of states, for each:
 *     i64 count, count x {i32 low, i32 high}, i32 number of labels
 *
 * Labels of the fst are the new ones, as in OpenFst's tools. Composition here finds the labels
 * ahead itself, so the data is checked for its size and dropped. */
#include "fst/openfst_types.h"

static wf_status read_flag(wf__cursor *cursor, bool *out, wf_error *err) {
  const uint8_t *byte;
  WF__TRY(wf__read_view(cursor, &byte, 1, "a flag of the look-ahead data", err));
  *out = *byte != 0;
  if (*byte <= 1) return WF_OK;
  return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "%d in place of a flag", (int)*byte);
}

static wf_status skip_pairs(wf__cursor *cursor, const char *what, wf_error *err) {
  const uint8_t *skipped;
  uint64_t count;
  WF__TRY(wf__openfst_read_count(cursor, 8, &count, what, err));
  return wf__read_view(cursor, &skipped, count * 8, what, err);
}

static wf_status skip_labels(wf__cursor *cursor, wf_error *err) {
  bool inputs, has_new_labels;
  int32_t number;
  uint64_t num_states;
  WF__TRY(read_flag(cursor, &inputs, err));
  WF__TRY(read_flag(cursor, &has_new_labels, err));
  if (has_new_labels) WF__TRY(skip_pairs(cursor, "new labels", err));
  WF__TRY(wf__read_i32(cursor, &number, "the label of final states", err));
  WF__TRY(wf__openfst_read_count(cursor, 12, &num_states, "states of the look-ahead data", err));
  for (uint64_t s = 0; s < num_states; s++) {
    WF__TRY(skip_pairs(cursor, "labels ahead", err));
    WF__TRY(wf__read_i32(cursor, &number, "the number of labels ahead", err));
  }
  return WF_OK;
}

wf_status wf__openfst_skip_lookahead(wf__cursor *cursor, wf__span fst_type, wf_error *err) {
  const bool has_bytes = !wf__span_is(fst_type, "arc_lookahead");
  bool exists;
  WF__TRY(read_flag(cursor, &exists, err));
  for (int side = 0; exists && side < 2; side++) {
    bool has_data;
    WF__TRY(read_flag(cursor, &has_data, err));
    if (has_data && has_bytes) WF__TRY(skip_labels(cursor, err));
  }
  return WF_OK;
}
