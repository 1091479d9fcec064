/* transducer_oracle.c - docs/reference/transducers.md in lists. */
#include "transducer_oracle.h"

#include <float.h>

/* A token, with its whole path. */
struct token {
  float cost;
  int64_t state;
  int context; /* the scorer's */
  int history[ORACLE_HISTORY], size;
  int num_arcs;
  uint64_t arcs[128];
  int frames[128]; /* of each arc */
  float loglikes[128];
};

struct list {
  struct token *tokens;
  size_t size, room;
};

struct run {
  const oracle_transducer *task;
  const wf_decoder_options *o;
  struct list now, next, waiting[64]; /* by frame */
  struct list sources;
  oracle_transducer_result *out;
};

static struct token *push(struct list *list, const struct token *token) {
  if (list->size == list->room) {
    list->room = 2 * list->room + 8;
    list->tokens = realloc(list->tokens, list->room * sizeof *list->tokens);
  }
  list->tokens[list->size] = *token;
  return &list->tokens[list->size++];
}

/* --- what tells tokens apart, and their rank ----------------------------------------------- */

/* The last context_size tokens as digits; the place before the start has the blank. */
static uint64_t digits(const oracle_transducer *task, const struct token *token) {
  uint64_t number = 0;
  for (int i = task->context_size; i > 0; i--) {
    int at = token->size - i;
    number = number * (uint64_t)(task->num_tokens + 1) +
             (uint64_t)(at < 0 ? task->blank : token->history[at]);
  }
  return number;
}

/* Histories have no order that the page defines; tasks with them have no ties. */
static int compare_histories(const oracle_transducer *task, const struct token *a,
                             const struct token *b) {
  if (task->context_size > 0) {
    uint64_t x = digits(task, a), y = digits(task, b);
    return (x > y) - (x < y);
  }
  if (a->size != b->size) return a->size < b->size ? -1 : 1;
  return memcmp(a->history, b->history, (size_t)a->size * sizeof *a->history);
}

static int compare_triples(const oracle_transducer *task, const struct token *a,
                           const struct token *b) {
  if (a->state != b->state) return a->state < b->state ? -1 : 1;
  int order = compare_histories(task, a, b);
  return order != 0 ? order : (a->context > b->context) - (a->context < b->context);
}

/* qsort_r differs between systems. */
static _Thread_local const oracle_transducer *t_task;

static int by_rank(const void *a, const void *b) {
  const struct token *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  return compare_triples(t_task, x, y);
}

static void sort(const struct run *run, struct list *list) {
  if (list->size < 2) return;
  t_task = run->task;
  qsort(list->tokens, list->size, sizeof *list->tokens, by_rank);
}

/* A candidate replaces a token only if it costs less. Returns whether it counts. */
static bool offer(const struct run *run, struct list *list, const struct token *token) {
  for (size_t i = 0; i < list->size; i++) {
    if (compare_triples(run->task, &list->tokens[i], token) != 0) continue;
    if (!(token->cost < list->tokens[i].cost)) return false;
    list->tokens[i] = *token;
    return true;
  }
  push(list, token);
  return true;
}

/* --- arcs ---------------------------------------------------------------------------------- */

/* The token after an arc, before the model's cost. */
static struct token after(const struct run *run, const struct token *from, uint64_t a, int64_t t) {
  const wf_arc *arc = &run->task->view.arcs[a];
  const oracle_scorer *scorer = run->task->scorer;
  struct token to = *from;
  assert_true(to.num_arcs < 128);
  to.arcs[to.num_arcs] = a;
  to.loglikes[to.num_arcs] = 0;
  to.frames[to.num_arcs++] = (int)t;
  to.state = arc->nextstate;
  to.cost = from->cost + arc->weight;
  if (arc->olabel != 0) to.cost -= run->o->word_score;
  if (arc->olabel != 0 && scorer != NULL) {
    int at = from->context * scorer->num_words + arc->olabel - 1;
    to.cost += scorer->cost[at];
    to.context = scorer->next[at];
  }
  if (arc->ilabel != 0 && arc->ilabel - 1 != run->task->blank) {
    assert_true(to.size < ORACLE_HISTORY);
    to.history[to.size++] = arc->ilabel - 1;
  }
  return to;
}

static void read_score(struct token *token, float base, float loglike, float scale) {
  token->cost = base + (loglike == -INFINITY ? INFINITY : -(scale * loglike));
  token->loglikes[token->num_arcs - 1] = loglike;
}

static size_t place_of(const struct run *run, const struct list *list, const struct token *token) {
  size_t i = 0;
  while (i < list->size && compare_triples(run->task, &list->tokens[i], token) != 0) i++;
  return i;
}

/* A token leads back to a token, not to the path that this had when it was expanded: the source may
 * have changed since, by so little that the sum stayed. `from`: places of the sources, or that of
 * the token itself. */
static void follow_back(struct list *list, size_t *from, size_t i) {
  const size_t source = from[i];
  struct token *token = &list->tokens[i];
  if (source == i) return;
  from[i] = i;
  follow_back(list, from, source);
  const struct token *before = &list->tokens[source];
  const uint64_t arc = token->arcs[token->num_arcs - 1];
  const int frame = token->frames[token->num_arcs - 1];
  token->num_arcs = before->num_arcs;
  memcpy(token->arcs, before->arcs, sizeof token->arcs);
  memcpy(token->loglikes, before->loglikes, sizeof token->loglikes);
  memcpy(token->frames, before->frames, sizeof token->frames);
  token->arcs[token->num_arcs] = arc;
  token->loglikes[token->num_arcs] = 0;
  token->frames[token->num_arcs++] = frame;
}

/* Rounds: every token that the round before changed is relaxed at its cost after that round. */
static void close_over_epsilons(struct run *run, struct list *list, float cutoff, int64_t t) {
  const wf_fst_view *view = &run->task->view;
  struct list frontier = {0}, changed = {0}, before = {0};
  size_t *back = NULL, num_back = 0;
  for (size_t i = 0; i < list->size; i++) push(&frontier, &list->tokens[i]);
  while (frontier.size > 0) {
    sort(run, &frontier);
    changed.size = before.size = 0;
    for (size_t i = 0; i < list->size; i++) push(&before, &list->tokens[i]);
    for (size_t i = 0; i < frontier.size; i++) {
      const struct token *from = &frontier.tokens[i];
      for (uint64_t a = view->arc_off[from->state]; a < view->arc_off[from->state + 1]; a++) {
        if (view->arcs[a].ilabel != 0) continue;
        struct token to = after(run, from, a, t);
        bool counts = to.cost <= cutoff && to.cost != INFINITY;
        for (size_t k = 0; k < before.size && counts; k++)
          if (compare_triples(run->task, &before.tokens[k], &to) == 0)
            counts = to.cost < before.tokens[k].cost;
        if (counts && offer(run, list, &to)) {
          back = realloc(back, list->size * sizeof *back);
          for (; num_back < list->size; num_back++) back[num_back] = num_back;
          back[place_of(run, list, &to)] = place_of(run, list, from);
          bool known = false;
          for (size_t k = 0; k < changed.size && !known; k++)
            if (compare_triples(run->task, &changed.tokens[k], &to) == 0)
              changed.tokens[k] = to, known = true;
          if (!known) push(&changed, &to);
        }
      }
    }
    struct list was = frontier;
    frontier = changed;
    changed = was;
  }
  for (size_t i = 0; i < num_back; i++) follow_back(list, back, i);
  free(back);
  free(frontier.tokens);
  free(changed.tokens);
  free(before.tokens);
}

/* --- a step -------------------------------------------------------------------------------- */

struct candidate {
  struct token token;
  int duration;
};

struct candidates {
  struct candidate *data;
  size_t size, room;
};

static void add_candidate(struct candidates *c, const struct token *token, int duration) {
  if (token->cost == INFINITY) return;
  if (c->size == c->room) {
    c->room = 2 * c->room + 64;
    c->data = realloc(c->data, c->room * sizeof *c->data);
  }
  c->data[c->size++] = (struct candidate){*token, duration};
}

static float with_penalty(const struct run *run, const float *row, int column) {
  return column == run->task->blank ? row[column] - run->o->blank_penalty : row[column];
}

static bool is_allowed(const struct run *run, bool blank, int step, int duration) {
  const oracle_transducer *task = run->task;
  if (task->num_durations == 0)
    return blank ? duration == 1 : duration == 0 && step < run->o->max_symbols;
  return blank ? duration > 0 : duration > 0 || step + 1 < run->o->max_symbols;
}

/* All candidates of a source, in the order of arcs, then durations. With `greedy`: the best of them
 * before durations, if it is better than *best. */
static void expand(struct run *run, const struct token *source, int64_t t, int step,
                   struct candidates *out, struct token *best, float *best_base,
                   const float **best_row) {
  const oracle_transducer *task = run->task;
  const float *row = task->log_probs(task->user, t, source->history, source->size);
  int most = task->num_durations > 0 ? task->num_durations : 2;
  for (uint64_t a = task->view.arc_off[source->state]; a < task->view.arc_off[source->state + 1];
       a++) {
    int32_t label = task->view.arcs[a].ilabel;
    if (label == 0) continue;
    run->out->num_arcs++;
    bool blank = label - 1 == task->blank;
    if (!blank && task->num_durations == 0 && step >= run->o->max_symbols) continue;
    struct token token = after(run, source, a, t);
    float base = token.cost, loglike = with_penalty(run, row, label - 1);
    if (run->o->greedy) {
      read_score(&token, base, loglike, run->o->acoustic_scale);
      if (token.cost < best->cost) *best = token, *best_base = base, *best_row = row;
      continue;
    }
    for (int d = 0; d < most; d++) {
      if (!is_allowed(run, blank, step, d)) continue;
      read_score(&token, base,
                 task->num_durations > 0 ? loglike + row[task->num_tokens + d] : loglike,
                 run->o->acoustic_scale);
      add_candidate(out, &token, d);
    }
  }
}

/* The one candidate of a greedy step. */
static void add_greedy(struct run *run, struct token *best, float base, const float *row, int step,
                       struct candidates *out) {
  const oracle_transducer *task = run->task;
  if (best->cost == INFINITY) return;
  int32_t label = task->view.arcs[best->arcs[best->num_arcs - 1]].ilabel;
  bool blank = label - 1 == task->blank;
  float loglike = best->loglikes[best->num_arcs - 1];
  int duration = blank;
  if (task->num_durations > 0) {
    duration = 0;
    for (int d = 1; d < task->num_durations; d++)
      if (row[task->num_tokens + d] > row[task->num_tokens + duration]) duration = d;
    if (!is_allowed(run, blank, step, duration)) duration = 1;
    loglike += row[task->num_tokens + duration];
  }
  read_score(best, base, loglike, run->o->acoustic_scale);
  add_candidate(out, best, duration);
}

static size_t most_tokens(const struct run *run) {
  return run->o->greedy ? 1 : (size_t)run->o->max_hypotheses;
}

static void cut(const struct run *run, struct list *list, float cutoff) {
  sort(run, list);
  while (list->size > 0 && list->tokens[list->size - 1].cost > cutoff) list->size--;
  if (list->size > most_tokens(run)) list->size = most_tokens(run);
}

/* The tokens of `now` are counted, and the first become the sources. */
static void choose(struct run *run) {
  run->out->num_tokens += run->now.size;
  run->sources.size = 0;
  for (size_t i = 0; i < run->now.size; i++) push(&run->sources, &run->now.tokens[i]);
  sort(run, &run->sources);
  if (run->sources.size > most_tokens(run)) run->sources.size = most_tokens(run);
  run->out->num_expanded += run->sources.size;
}

/* It is given in nats of the model. */
static float beam_of(const wf_decoder_options *o) {
  return o->acoustic_scale > 0 ? o->acoustic_scale * o->beam : o->beam;
}

static void do_step(struct run *run, int64_t t, int step) {
  struct candidates c = {0};
  struct token best = {.cost = INFINITY};
  float base = 0, cutoff = FLT_MAX, least = INFINITY;
  const float *row = NULL;
  for (size_t i = 0; i < run->sources.size; i++)
    expand(run, &run->sources.tokens[i], t, step, &c, &best, &base, &row);
  if (run->o->greedy) {
    add_greedy(run, &best, base, row, step, &c);
  } else {
    for (int64_t f = t + 1; f < 64; f++)
      for (size_t i = 0; i < run->waiting[f].size; i++)
        least = fminf(least, run->waiting[f].tokens[i].cost);
    for (size_t i = 0; i < c.size; i++) least = fminf(least, c.data[i].token.cost);
    cutoff = least + beam_of(run->o);
    if (!(cutoff < FLT_MAX)) cutoff = FLT_MAX;
  }
  run->next.size = 0;
  for (size_t i = 0; i < c.size; i++) {
    int64_t frame = t + c.data[i].duration;
    assert_true(frame < 64);
    if (c.data[i].token.cost <= cutoff)
      offer(run, c.data[i].duration == 0 ? &run->next : &run->waiting[frame], &c.data[i].token);
  }
  free(c.data);
  cut(run, &run->next, cutoff);
  for (int64_t f = t + 1; f < 64; f++) cut(run, &run->waiting[f], cutoff);
  close_over_epsilons(run, &run->next, cutoff, t);
  struct list was = run->now;
  run->now = run->next;
  run->next = was;
  choose(run);
}

/* --- frames -------------------------------------------------------------------------------- */

static void begin_frame(struct run *run, int64_t t) {
  float best = INFINITY, beam = run->o->greedy ? FLT_MAX : beam_of(run->o);
  for (size_t i = 0; i < run->waiting[t].size; i++)
    best = fminf(best, run->waiting[t].tokens[i].cost);
  for (int64_t f = t; f < 64; f++)
    for (size_t i = 0; i < run->waiting[f].size; i++) run->waiting[f].tokens[i].cost -= best;
  run->now.size = 0;
  for (size_t i = 0; i < run->waiting[t].size; i++) push(&run->now, &run->waiting[t].tokens[i]);
  cut(run, &run->now, beam);
  close_over_epsilons(run, &run->now, beam, t);
  choose(run);
}

static bool is_anyone_waiting(const struct run *run, int64_t after_frame) {
  for (int64_t f = after_frame + 1; f < 64; f++)
    if (run->waiting[f].size > 0) return true;
  return false;
}

/* --- the end ------------------------------------------------------------------------------- */

static void end_at(oracle_transducer_result *out, int w, int end, const int *frames,
                   const int32_t *labels, int count, int32_t blank_label) {
  int begin = out->words[w].start_frame;
  while (end > begin + 1 && labels[end - 1] == blank_label) end--;
  int last = (int)out->num_decoded;
  out->words[w].start_frame = begin < count ? frames[begin] : last;
  out->words[w].end_frame = end < count ? frames[end] : last;
  if (end > begin && out->words[w].end_frame <= frames[end - 1])
    out->words[w].end_frame = frames[end - 1] + 1;
}

static void report(const struct run *run, const struct token *path, bool final) {
  const oracle_transducer *task = run->task;
  oracle_transducer_result *out = run->out;
  int frames[128], count = 0, context = task->start_context;
  int32_t labels[128];
  double loglike = 0;
  for (int i = 0; i < path->num_arcs; i++) {
    const wf_arc *arc = &task->view.arcs[path->arcs[i]];
    out->graph_cost += (double)arc->weight;
    if (arc->olabel != 0) {
      out->graph_cost -= (double)run->o->word_score;
      out->words[out->num_words++] = (wf_word){arc->olabel, count, 0};
      if (task->scorer != NULL) {
        int at = context * task->scorer->num_words + arc->olabel - 1;
        out->scorer_cost += (double)task->scorer->cost[at];
        context = task->scorer->next[at];
      }
    }
    if (arc->ilabel == 0) continue;
    loglike += (double)path->loglikes[i];
    labels[count] = arc->ilabel;
    frames[count++] = path->frames[i];
  }
  if (final) {
    out->graph_cost += (double)task->view.final_cost[path->state];
    if (task->scorer != NULL) out->scorer_cost += (double)task->scorer->final[context];
  }
  out->acoustic_cost =
      run->o->acoustic_scale == 0 ? 0 : 0 - (double)run->o->acoustic_scale * loglike;
  for (int i = 0; i < count; i++)
    if (labels[i] != task->blank + 1 || out->alignment[frames[i]] == 0)
      out->alignment[frames[i]] = labels[i];
  int end = count;
  for (int w = out->num_words; w-- > 0;) {
    int begin = out->words[w].start_frame;
    end_at(out, w, end, frames, labels, count, task->blank + 1);
    end = begin;
  }
}

static void finish(struct run *run) {
  const oracle_transducer *task = run->task;
  const struct token *best = NULL;
  struct list ends = {0};
  for (int64_t f = task->num_frames + 1; f < 64; f++) {
    for (size_t i = 0; i < run->waiting[f].size; i++)
      offer(run, &run->waiting[task->num_frames], &run->waiting[f].tokens[i]);
    run->waiting[f].size = 0;
  }
  begin_frame(run, task->num_frames);
  run->out->num_decoded = task->num_frames;
  for (size_t i = 0; i < run->now.size; i++) {
    struct token end = run->now.tokens[i];
    end.cost += task->view.final_cost[end.state];
    if (task->scorer != NULL) end.cost += task->scorer->final[end.context];
    if (end.cost != INFINITY) push(&ends, &end);
  }
  sort(run, &ends);
  if (ends.size > 0) best = &ends.tokens[0];
  if (best == NULL) run->out->flags |= WF_RESULT_NOT_FINAL;
  report(run, best != NULL ? best : &run->sources.tokens[0], best != NULL);
  free(ends.tokens);
}

void oracle_transduce(const oracle_transducer *task, const wf_decoder_options *options,
                      oracle_transducer_result *out) {
  struct run run = {.task = task, .o = options, .out = out};
  struct token start = {.state = task->view.start, .context = task->start_context}, first = start;
  *out = (oracle_transducer_result){0};
  push(&run.waiting[0], &start);
  bool died = false;
  for (int64_t t = 0; t < task->num_frames && !died; t++) {
    if (run.waiting[t].size == 0) continue;
    begin_frame(&run, t);
    first = run.sources.tokens[0];
    for (int step = 0; run.sources.size > 0; step++) do_step(&run, t, step);
    died = !is_anyone_waiting(&run, t);
    if (died) out->num_decoded = t;
  }
  if (died) {
    out->flags = WF_RESULT_DIED | WF_RESULT_NOT_FINAL;
    report(&run, &first, false);
  } else {
    finish(&run);
  }
  free(run.now.tokens);
  free(run.next.tokens);
  free(run.sources.tokens);
  for (int f = 0; f < 64; f++) free(run.waiting[f].tokens);
}

/* --- every path ---------------------------------------------------------------------------- */

struct walk {
  const oracle_transducer *task;
  const wf_decoder_options *o;
  double best;
  struct oracle_sentences *sentences;
  int words[ORACLE_SENTENCE], num_words;
};

void oracle_add_sentence(struct oracle_sentences *sentences, const int *words, int size,
                         double cost) {
  for (size_t i = 0; i < sentences->size; i++) {
    struct oracle_sentence *other = &sentences->data[i];
    if (other->size != size || memcmp(other->words, words, (size_t)size * sizeof *words) != 0)
      continue;
    if (cost < other->cost) other->cost = cost;
    return;
  }
  if (sentences->size == sentences->room) {
    sentences->room = 2 * sentences->room + 16;
    sentences->data = realloc(sentences->data, sentences->room * sizeof *sentences->data);
  }
  struct oracle_sentence *sentence = &sentences->data[sentences->size++];
  *sentence = (struct oracle_sentence){.size = size, .cost = cost};
  memcpy(sentence->words, words, (size_t)size * sizeof *words);
}

static void visit(struct walk *walk, int64_t state, int context, const int *history, int size,
                  int64_t t, int step, double cost) {
  const oracle_transducer *task = walk->task;
  const oracle_scorer *scorer = task->scorer;
  if (cost >= walk->best + 8)
    return; /* the rest costs more than -4, and only sentences within 4
               of the best are wanted */
  if (t == task->num_frames) {
    double end = cost + (double)task->view.final_cost[state] +
                 (scorer != NULL ? (double)scorer->final[context] : 0);
    if (end < walk->best) walk->best = end;
    if (walk->sentences != NULL && end != INFINITY)
      oracle_add_sentence(walk->sentences, walk->words, walk->num_words, end);
  }
  const float *row = t < task->num_frames ? task->log_probs(task->user, t, history, size) : NULL;
  for (uint64_t a = task->view.arc_off[state]; a < task->view.arc_off[state + 1]; a++) {
    const wf_arc *arc = &task->view.arcs[a];
    double added = cost + (double)arc->weight;
    int next = context, longer[ORACLE_HISTORY], length = size;
    if (arc->olabel != 0) added -= (double)walk->o->word_score;
    if (arc->olabel != 0 && scorer != NULL) {
      int at = context * scorer->num_words + arc->olabel - 1;
      added += (double)scorer->cost[at];
      next = scorer->next[at];
    }
    if (added == INFINITY || (arc->ilabel != 0 && row == NULL)) continue;
    if (arc->olabel != 0) {
      assert_true(walk->num_words < ORACLE_SENTENCE);
      walk->words[walk->num_words++] = arc->olabel;
    }
    if (arc->ilabel == 0) {
      visit(walk, arc->nextstate, next, history, size, t, step, added);
      walk->num_words -= arc->olabel != 0;
      continue;
    }
    bool blank = arc->ilabel - 1 == task->blank;
    struct run rules = {.task = task, .o = walk->o};
    memcpy(longer, history, (size_t)size * sizeof *longer);
    if (!blank) longer[length++] = arc->ilabel - 1;
    for (int d = 0; d < (task->num_durations > 0 ? task->num_durations : 2); d++) {
      if (!is_allowed(&rules, blank, step, d)) continue;
      double loglike = (double)with_penalty(&rules, row, arc->ilabel - 1) +
                       (task->num_durations > 0 ? (double)row[task->num_tokens + d] : 0);
      if (loglike == -INFINITY) continue;
      int64_t to = t + d < task->num_frames ? t + d : task->num_frames;
      visit(walk, arc->nextstate, next, longer, length, to, d == 0 ? step + 1 : 0,
            added - (double)walk->o->acoustic_scale * loglike);
    }
    walk->num_words -= arc->olabel != 0;
  }
}

double oracle_best_transduction(const oracle_transducer *task, const wf_decoder_options *options,
                                struct oracle_sentences *sentences) {
  struct walk walk = {task, options, INFINITY, sentences};
  const int none[1] = {0};
  visit(&walk, task->view.start, task->start_context, none, 0, 0, 0, 0);
  return walk.best;
}
