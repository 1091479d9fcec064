/* test_word_graph.c - determinization gives the same result from a raw lattice and from the same
 * lattice with integer costs (exact_lattice.h). */
#include "decode_tasks.h"
#include "lattice/word_determinizer.h"
#include "word_paths.h"

/* Determinizes a raw lattice, and the same lattice with integer costs. Results must be equal, also
 * for paths of equal cost. `apart`: adds arcs outside the beam whose large costs would need a
 * coarser integer unit. */
static void compare_sources(uint64_t seed, bool apart) {
  wf_error err = {0};
  test_rng rng = {seed * 977 + 5};
  wf_lattice *lattice = random_lattice(&rng, 2 + test_below(&rng, 80), 1 + test_below(&rng, 4),
                                       1 + test_below(&rng, 30), true),
             *wider;
  wf_lattice_view view = wf_lattice_get_view(lattice);
  wf__lattice_arrays arrays = {0};
  for (uint64_t s = 0; s < view.num_states; s++) {
    assert_ok(wf__lattice_add_state(&arrays, view.final_graph_cost[s], view.final_acoustic_cost[s],
                                    view.frames[s], &err));
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++)
      assert_ok(wf__lattice_push(&arrays, view.arcs[i], &err));
    if (apart && s + 1 < view.num_states)
      assert_ok(wf__lattice_push(&arrays,
                                 (wf_lattice_arc){.ilabel = 1,
                                                  .olabel = 1,
                                                  .graph_cost = 0x1p18f,
                                                  .acoustic_cost = s % 2 == 0 ? 0x1p19f : 1,
                                                  .nextstate = (int32_t)s + 1},
                                 &err));
  }
  assert_ok(wf__lattice_from_arrays(&arrays, &wider, &err));
  wf_lattice_determinize_options o;
  wf_lattice_determinize_options_init(&o);
  o.beam = (float)(seed % 9);
  o.minimize = false;
  wf_determinized out;
  wf__exact_lattice exact, words;
  wf__word_outcome outcome;
  assert_ok(wf_lattice_determinize(wider, NULL, &o, &out, &err));
  assert_ok(wf__exact_from_lattice(lattice, &exact, &err));
  assert_ok(wf__determinize_words(&exact, wf__exact_width(&exact, (double)o.beam), 0, 1 << 28,
                                  &words, &outcome, &err));
  wf_compact_lattice_view found = wf_compact_lattice_get_view(out.lattice);
  if (wf__exact_num_states(&words) > 0)
    assert_int_equal(found.num_states,
                     words.ends.size); /* otherwise only the added arcs may be left */
  for (uint64_t i = 0; i < words.arcs.size; i++) {
    const wf__exact_arc *a = &words.arcs.data[i];
    const wf_compact_arc *b = &found.arcs[i];
    assert_true(a->word == b->word && (int32_t)a->nextstate == b->nextstate &&
                a->num_labels == b->weight.num_labels);
    assert_true((float)wf__exact_nats(&words, a->cost.graph) == b->weight.graph_cost &&
                (float)wf__exact_nats(&words, a->cost.acoustic) == b->weight.acoustic_cost);
    if (a->num_labels > 0)
      assert_memory_equal(words.labels.data + a->first_label, found.labels + b->weight.first_label,
                          a->num_labels * sizeof(int32_t));
  }
  wf__exact_free(&exact);
  wf__exact_free(&words);
  wf_compact_lattice_free(out.lattice);
  wf_lattice_free(wider);
  wf_lattice_free(lattice);
}

static void test_same_from_raw_and_integer_costs(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 2000; seed++) compare_sources(seed, seed % 2 == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_from_raw_and_integer_costs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
