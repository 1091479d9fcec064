/* test_lattice_rescore.c - lattices and n-best lists rescored by another language model. Every path
 * is compared with sums computed from the n-grams of both models. */
#include "lm_model.h"
#include "word_paths.h"

/* Scores of the words in nats, including </s>. Words are indices of names; labels of the lattice
 * are those of `lm`. A word that the model lacks costs `missing`. */
static double score_words(const model *m, const wf_lm *lm, const one_path *path, bool *impossible) {
  int history[MAX_PATH + 1] = {BOS}, size = 1, order;
  double sum = 0;
  *impossible = false;
  for (size_t i = 0; i <= path->num_words; i++) {
    int word = EOS;
    for (int w = FIRST; i < path->num_words && w < m->num_words; w++)
      if (label(lm, names[w]) == path->words[i]) word = w;
    if (i < path->num_words && word == EOS) word = UNK;
    double log10p = score(m, history, size, word, &order);
    if (log10p == -INFINITY)
      *impossible = true;
    else
      sum += -log10p * M_LN10;
    if (word == UNK &&
        !m->has_unk) { /* after an unknown word, a model without <unk> has the empty history */
      size = 0;
      continue;
    }
    history[size++] = word;
  }
  return sum;
}

/* The labels of the lattice come from the table that both models share. The larger model makes the
 * table. */
struct task {
  model old_model, new_model;
  wf_lm *old_lm, *new_lm;
};

static struct task make_task(test_rng *rng) {
  struct task task;
  do make_model(&task.old_model, rng, false);
  while (!task.old_model.has_unk);
  do make_model(&task.new_model, rng, false);
  while (task.new_model.num_words != task.old_model.num_words);
  task.new_lm = load_model(&task.new_model, rng);
  task.old_lm = load_model(&task.old_model, rng);
  return task;
}

/* Labels follow the order of lines in each ARPA file, so the two tables differ. Therefore the old
 * model is read again with the table of the new one. */
static wf_lm *with_table(const model *m, const wf_symbols *words) {
  wf_error err = {0};
  wf_lm *lm;
  static char text[1 << 16];
  char *at = text + sprintf(text, "\\data\\\n");
  for (int n = 1; n <= m->order; n++) {
    int count = 0;
    for (int i = 0; i < m->size; i++) count += m->grams[i].size == n;
    at += sprintf(at, "ngram %d=%d\n", n, count);
  }
  for (int n = 1; n <= m->order; n++) {
    at += sprintf(at, "\n\\%d-grams:\n", n);
    for (int i = 0; i < m->size; i++) {
      if (m->grams[i].size != n) continue;
      at += sprintf(at, "%.3f", m->grams[i].p);
      for (int j = 0; j < n; j++) at += sprintf(at, " %s", names[m->grams[i].word[j]]);
      if (m->grams[i].has_bow) at += sprintf(at, " %.3f", m->grams[i].bow);
      at += sprintf(at, "\n");
    }
  }
  sprintf(at, "\n\\end\\\n");
  assert_ok(read_text(text, words, NULL, &lm, NULL, &err));
  return lm;
}

static wf_compact_lattice *word_lattice(test_rng *rng, const struct task *task) {
  wf_error err = {0};
  wf_lattice *raw = random_lattice(rng, 2 + test_below(rng, 6), 4, 2, true);
  wf__lattice_arrays arrays = {0};
  wf_lattice_view view = wf_lattice_get_view(raw);
  for (uint64_t s = 0; s < view.num_states;
       s++) { /* words of the models, sometimes an unknown one */
    assert_ok(wf__lattice_add_state(&arrays, view.final_graph_cost[s], view.final_acoustic_cost[s],
                                    0, &err));
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++) {
      wf_lattice_arc arc = view.arcs[i];
      int known = task->new_model.num_words - FIRST;
      if (arc.olabel != 0)
        arc.olabel = test_below(rng, 12) == 0
                         ? 900
                         : label(task->new_lm, names[FIRST + (arc.olabel - 1) % known]);
      assert_ok(wf__lattice_push(&arrays, arc, &err));
    }
  }
  wf_lattice *lattice;
  assert_ok(wf__lattice_from_arrays(&arrays, &lattice, &err));
  wf_lattice_determinize_options o;
  wf_lattice_determinize_options_init(&o);
  o.beam = 1e30f;
  wf_determinized out;
  assert_ok(wf_lattice_determinize(lattice, NULL, &o, &out, &err));
  wf_lattice_free(lattice);
  wf_lattice_free(raw);
  return out.lattice;
}

static void test_against_ngrams(void **state) {
  (void)state;
  wf_error err = {0};
  uint64_t compared = 0, dropped = 0, deterministic = 0;
  for (uint64_t seed = 1; seed <= 400; seed++) {
    test_rng rng = {seed * 977};
    struct task task = make_task(&rng);
    wf_lm *old_lm = with_table(&task.old_model, wf_lm_words(task.new_lm));
    wf_compact_lattice *lattice = word_lattice(&rng, &task), *rescored;
    wf_lattice_rescore_options o;
    wf_lattice_rescore_options_init(&o);
    o.new_lm_scale = 0.75f;
    o.old_lm_scale = 0.5f;
    const wf_lm *old_or_none = seed % 5 == 0 ? NULL : old_lm;
    assert_ok(wf_compact_lattice_rescore(lattice, old_or_none, task.new_lm, &o, &rescored, &err));
    path_list before = list_compact_paths(lattice), after = list_compact_paths(rescored);
    double best = INFINITY;
    size_t possible = 0;
    for (size_t i = 0; i < before.size; i++) {
      bool impossible, unknown;
      double new_cost =
          0.75 * score_words(&task.new_model, task.new_lm, &before.paths[i], &impossible);
      double old_cost = old_or_none != NULL ? 0.5 * score_words(&task.old_model, task.new_lm,
                                                                &before.paths[i], &unknown)
                                            : 0;
      one_path expected = before.paths[i];
      expected.graph += new_cost - old_cost;
      dropped += impossible;
      possible += !impossible;
      if (impossible) continue;
      if (!has_path(&after, &expected, 1e-3))
        fail_msg("seed %llu: path %zu is missing", (unsigned long long)seed, i);
      best = fmin(best, expected.graph + expected.acoustic);
      compared++;
    }
    assert_int_equal(after.size, possible);
    wf_nbest *rescored_list; /* the result is still deterministic: an n-best list can be made of it,
                                with the same best path */
    assert_ok(wf_compact_lattice_nbest(rescored, 1, &rescored_list, &err));
    assert_int_equal(wf_nbest_count(rescored_list), possible > 0);
    if (possible > 0) {
      wf_lattice_path path = wf_nbest_at(rescored_list, 0);
      test_assert_close(path.graph_cost + path.acoustic_cost, best, 1e-3);
      deterministic++;
    }
    wf_nbest_free(rescored_list);
    free(before.paths);
    free(after.paths);
    wf_compact_lattice_free(rescored);
    wf_compact_lattice_free(lattice);
    wf_lm_free(old_lm);
    wf_lm_free(task.old_lm);
    wf_lm_free(task.new_lm);
  }
  if (compared < 1000 || dropped < 100 || deterministic < 100)
    fail_msg("compared %llu, dropped %llu, deterministic %llu", (unsigned long long)compared,
             (unsigned long long)dropped, (unsigned long long)deterministic);
}

static void test_state_limit(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {3};
  struct task task = make_task(&rng);
  wf_lattice *raw = random_lattice(&rng, 20, 3, 2, true);
  wf_determinized words;
  assert_ok(wf_lattice_determinize(raw, NULL, NULL, &words, &err));
  wf_lattice_rescore_options o;
  wf_lattice_rescore_options_init(&o);
  o.max_states = 1;
  wf_compact_lattice *out;
  assert_true(wf_compact_lattice_get_view(words.lattice).num_states > 2);
  assert_int_equal(wf_compact_lattice_rescore(words.lattice, NULL, task.old_lm, &o, &out, &err),
                   WF_ERR_LIMIT);
  assert_true(out == NULL);
  wf_compact_lattice_free(words.lattice);
  wf_lattice_free(raw);
  wf_lm_free(task.old_lm);
  wf_lm_free(task.new_lm);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_ngrams),
                                     cmocka_unit_test(test_state_limit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
