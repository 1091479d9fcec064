/* randgen.c - wf_randgen: an fst of random paths that share only the start state. */
#include "base/interrupt.h"
#include "base/option_tables.h"
#include "fstops/path_sampler.h"

/* The first arcs of all paths belong to state 0, so all paths are drawn before they are written. */
typedef struct drawing {
  WF__VEC(uint64_t) arcs; /* arcs of all paths, concatenated */
  WF__VEC(uint64_t) end;  /* where each path ends in `arcs` */
  WF__VEC(float) final_cost;
} drawing;

static wf_status draw(wf__path_sampler *sampler, int32_t npath, drawing *all, wf_error *err) {
  wf__sampled_path path = {0};
  wf_status status = WF_OK;
  for (int32_t k = 0; k < npath && status == WF_OK; k++) {
    WF__TRY_GOTO(status, wf__interrupted_at((uint64_t)k, err), done);
    WF__TRY_GOTO(status, wf__path_sampler_draw(sampler, &path, err), done);
    WF__TRY_GOTO(status, wf__vec_grow(&all->arcs, path.arcs.size, "paths", err), done);
    for (uint64_t i = 0; i < path.arcs.size; i++)
      all->arcs.data[all->arcs.size++] = path.arcs.data[i];
    WF__TRY_GOTO(status, wf__vec_push(&all->end, all->arcs.size, "paths", err), done);
    status = wf__vec_push(&all->final_cost, sampler->view.final_cost[path.end], "paths", err);
  }
done:
  wf__vec_free(&path.arcs);
  return status;
}

/* Writes state 0 with the first arc of every path, then the other states path by path. */
static wf_status write_result(const wf_fst_view *view, const drawing *all, bool keep_weights,
                              wf__csr *csr, wf_error *err) {
  uint32_t next = 1;
  WF__TRY(wf__csr_add_state(csr, INFINITY, err));
  for (uint64_t k = 0, begin = 0; k < all->end.size; begin = all->end.data[k++]) {
    if (begin == all->end.data[k]) {
      csr->final_cost.data[0] = keep_weights ? all->final_cost.data[k] : 0;
      continue;
    }
    if (all->end.data[k] - begin > WF__MAX_STATES - next)
      return wf__fail(err, WF_ERR_LIMIT, "the paths have more than 2^31 - 1 states");
    wf_arc arc = view->arcs[all->arcs.data[begin]];
    arc.nextstate = next;
    if (!keep_weights) arc.weight = 0;
    WF__TRY(wf__csr_push(csr, arc, err));
    next += (uint32_t)(all->end.data[k] - begin);
  }
  next = 1;
  for (uint64_t k = 0, begin = 0; k < all->end.size; begin = all->end.data[k++]) {
    for (uint64_t i = begin; i < all->end.data[k]; i++) {
      bool last = i + 1 == all->end.data[k];
      WF__TRY(wf__csr_add_state(csr, last ? (keep_weights ? all->final_cost.data[k] : 0) : INFINITY,
                                err));
      next++;
      if (last) continue;
      wf_arc arc = view->arcs[all->arcs.data[i + 1]];
      arc.nextstate = next;
      if (!keep_weights) arc.weight = 0;
      WF__TRY(wf__csr_push(csr, arc, err));
    }
  }
  return WF_OK;
}

wf_status wf_randgen(const wf_fst *fst, const wf_randgen_options *options, wf_fst **out,
                     wf_error *err) {
  *out = NULL;
  wf_randgen_options o;
  WF__TRY(wf__options_take(wf__randgen_table(), options, &o, err));
  wf_fst_view view = wf_fst_get_view(fst);
  wf__path_sampler sampler;
  drawing all = {0};
  wf__csr csr = {0};
  wf_status status = wf__path_sampler_init(&sampler, fst, (uint64_t)o.seed, (uint32_t)o.max_length,
                                           o.select == WF_SELECT_LOG_PROB, err);
  bool any = status == WF_OK && wf__path_sampler_any(&sampler);
  if (any) WF__TRY_GOTO(status, draw(&sampler, o.npath, &all, err), done);
  if (any) WF__TRY_GOTO(status, write_result(&view, &all, o.keep_weights, &csr, err), done);
  if (status == WF_OK) status = wf__fst_like(&csr, any ? 0 : -1, fst, out, err);
done:
  wf__csr_free(&csr);
  wf__vec_free(&all.arcs);
  wf__vec_free(&all.end);
  wf__vec_free(&all.final_cost);
  wf__path_sampler_free(&sampler);
  return status;
}
