/* test_base.c - builder, options, output files. */
#include "testing.h"

static void test_builder(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 2 0.5;1 2 3 0 1.5;0 2 0 0;2 0.25");
  wf_fst_view view = wf_fst_get_view(fst);
  assert_int_equal(view.num_states, 3);
  assert_int_equal(view.num_arcs, 3);
  assert_int_equal(view.arc_off[1], 2);
  assert_true(view.final_cost[2] == 0.25f);
  uint32_t properties = wf_fst_properties(fst);
  assert_true(properties & WF_PROP_ACYCLIC);
  assert_true(properties & WF_PROP_TOP_SORTED);
  assert_true(properties & WF_PROP_ACCESSIBLE);
  assert_true(properties & WF_PROP_COACCESSIBLE);
  assert_true(properties & WF_PROP_EPSILONS_LAST);
  assert_false(properties & WF_PROP_ILABEL_SORTED);
  wf_fst_free(fst);
  wf_builder *builder;
  assert_ok(wf_builder_create(WF_LOG, &builder, &err));
  assert_ok(wf_builder_add_states(builder, 1, NULL, &err));
  assert_int_equal(wf_builder_add_arc(builder, 0, (wf_arc){.nextstate = 1}, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_builder_add_arc(builder, 0, (wf_arc){.weight = NAN}, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_builder_finish(builder, NULL, NULL, &fst, &err), WF_ERR_ARGUMENT);
  /* several arcs at once: all are added or none */
  const uint32_t sources[] = {0, 0};
  wf_arc arcs[] = {{.nextstate = 0, .weight = 1, .ilabel = 2, .olabel = 3},
                   {.nextstate = 0, .ilabel = -1}};
  assert_int_equal(wf_builder_add_arcs(builder, sources, arcs, 2, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "-1:0"));
  arcs[1].ilabel = 5;
  assert_ok(wf_builder_add_arcs(builder, sources, arcs, 2, &err));
  assert_ok(wf_builder_add_arcs(builder, NULL, NULL, 0, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  view = wf_fst_get_view(fst);
  assert_int_equal(view.num_arcs, 2);
  assert_true(view.arcs[0].olabel == 3 && view.arcs[1].ilabel == 5);
  wf_fst_free(fst);
  wf_builder_free(builder);
}

static void test_options(void **state) {
  (void)state;
  wf_error err = {0};
  wf_compose_options options;
  wf_compose_options_init(&options);
  const wf_option_table *table = wf_option_table_find("compose");
  assert_true(options.connect);
  assert_ok(wf_options_set(table, &options, "phi-label", "7", &err));
  assert_int_equal(options.phi_label, 7);
  assert_ok(wf_options_set(table, &options, "filter", "match", &err));
  assert_int_equal(options.filter, 3);
  assert_int_equal(wf_options_set(table, &options, "filter", "matc", &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_options_set(table, &options, "phi_label", "-1", &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_options_set(table, &options, "phi_label", "1x", &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_options_set(table, &options, "nothing", "1", &err), WF_ERR_ARGUMENT);
  options.filter = 99;
  assert_int_equal(wf_options_check(table, &options, &err), WF_ERR_ARGUMENT);
  for (size_t i = 0; (table = wf_option_table_at(i)) != NULL; i++) {
    char *config = malloc(table->struct_size);
    wf_options_init(table, config, table->struct_size);
    assert_ok(wf_options_check(table, config, &err));
    free(config);
  }
}

/* Messages quote input, but replace the control characters of terminals. */
static void test_messages_hide_control_characters(void **state) {
  (void)state;
  static const char text[] =
      "a \x1b]0;title\x07\xC2\x9B"
      "31m\x7F\xC3\xA9\n";
  wf_error err = {0};
  wf_symbols *symbols;
  const char *path = test_write_file("odd.txt", text, strlen(text));
  assert_int_equal(wf_symbols_read(path, &symbols, &err), WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, "?]0;title???31m?\xC3\xA9"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_builder), cmocka_unit_test(test_options),
                                     cmocka_unit_test(test_messages_hide_control_characters)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
